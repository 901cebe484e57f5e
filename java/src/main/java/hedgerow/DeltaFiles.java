package hedgerow;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.commands.DeleteCommand;
import org.apache.spark.sql.delta.commands.MergeIntoCommand;
import org.apache.spark.sql.delta.commands.UpdateCommand;
import org.apache.spark.sql.delta.files.TahoeFileIndex;
import org.apache.spark.sql.delta.files.TahoeLogFileIndex;
import org.apache.spark.sql.delta.stats.DataSize;
import org.apache.spark.sql.delta.stats.DeltaScan;
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * Files as Delta lists them. This is the only class that names Delta's: it is loaded only where Delta is.
 *
 * <p>Delta looks at its own lists only, for deletion vectors among others. So the list without the skipped files is a
 * `PreparedDeltaFileIndex` too.
 *
 * @param scan null if Delta lists the files in another way
 */
record DeltaFiles(TahoeFileIndex location, DeltaScan scan) implements ScannedFiles {
    /** Returns the files of a list of Delta's; null if it is none of those that queries read. */
    static DeltaFiles of(FileIndex location) {
        if (location.getClass() == PreparedDeltaFileIndex.class) {
            PreparedDeltaFileIndex list = (PreparedDeltaFileIndex) location;
            return new DeltaFiles(list, list.preparedScan());
        }
        return location.getClass() == TahoeLogFileIndex.class ? new DeltaFiles((TahoeFileIndex) location, null) : null;
    }

    /** Returns whether a list is one of a certain snapshot. */
    static boolean isOfSnapshot(FileIndex location) {
        return location instanceof PreparedDeltaFileIndex;
    }

    /** Returns whether a transaction changes this table: in MERGE, UPDATE and DELETE, Delta itself chooses its files. */
    static boolean isBeingChanged(String root) {
        Option<OptimisticTransaction> active = OptimisticTransaction.getActive();
        return active.isDefined() && active.get().deltaLog().dataPath().toString().equals(root);
    }

    /** Returns whether a plan is that of DELETE, UPDATE or MERGE. */
    static boolean changesRows(LogicalPlan plan) {
        return plan instanceof DeleteCommand || plan instanceof UpdateCommand || plan instanceof MergeIntoCommand;
    }

    /** Returns a text that tells a snapshot from all others, also from one of the same number in a restored backup. */
    static String versionOf(Object delta) {
        Snapshot snapshot = (Snapshot) delta;
        long written = snapshot.logSegment().lastCommitFileModificationTimestamp();
        return "delta " + snapshot.metadata().id() + " " + written + " " + snapshot.version();
    }

    @Override
    public String root() {
        return location.path().toString();
    }

    @Override
    public String unfit(LogicalRelation relation) {
        return scan != null ? null : "Delta has prepared no list of files for this query: "
            + "its sink is of another kind, or spark.databricks.delta.stats.skipping is false";
    }

    @Override
    public Stream<Entry> files() {
        return scan == null ? Stream.empty()
            : Scala.list(scan.files()).stream().map(file -> new Entry(file.path(), file.size(), deletedIn(file)));
    }

    private static long deletedIn(AddFile file) {
        return file.deletionVector() == null ? 0 : file.deletionVector().cardinality();
    }

    @Override
    public Count total(Count listed) {
        if (scan == null) {
            return listed;
        }
        Option<Object> files = scan.total().files();
        Option<Object> bytes = scan.total().bytesCompressed();
        return new Count(files.isDefined() ? (Long) files.get() : listed.files(),
            bytes.isDefined() ? (Long) bytes.get() : listed.bytes());
    }

    @Override
    public boolean isWhole(FileChoice index) {
        return false;
    }

    @Override
    public String deltaSchema() {
        return scan.scannedSnapshot().metadata().schemaString();
    }

    @Override
    public FileIndex without(FileChoice choice, Wire.ScanReport report) {
        return new Pruned((PreparedDeltaFileIndex) location, choice, report);
    }

    @Override
    public boolean canBeNumbered() { // where Delta renames columns, it would look for the number among them
        Map<String, String> settings = Scala.map(scan.scannedSnapshot().metadata().configuration());
        return settings.getOrDefault("delta.columnMapping.mode", "none").equals("none");
    }

    @Override
    public FileIndex numbered(FileIndex listed, FileChoice choice, FileChoice index, Wire.ScanReport report) {
        return new Numbered((PreparedDeltaFileIndex) location, choice, index, report);
    }

    @Override
    public String version(LogicalRelation relation) {
        return scan == null ? null : versionOf(scan.scannedSnapshot());
    }

    /**
     * Delta's list without the skipped files. Delta still chooses by partitions, and again if other filters reach the
     * scan, as with deletion vectors. Delta compares lists by their scans, so the scan inside is shortened too.
     */
    private static class Pruned extends PreparedDeltaFileIndex implements FileLists.Decided {
        private final FileChoice choice;
        private final Wire.ScanReport report;
        private final Map<String, long[]> groups = new HashMap<>(); // that are read, of files with others

        Pruned(PreparedDeltaFileIndex base, FileChoice choice, Wire.ScanReport report) {
            super(base.spark(), base.deltaLog(), base.path(), base.catalogTableOpt(),
                shorter(base.preparedScan(), choice, report.bytesOpened()), base.versionScanned());
            this.choice = choice;
            this.report = report;
            for (AddFile file : choice.skipsGroups() ? Scala.list(preparedScan().files()) : List.<AddFile>of()) {
                long[] read = choice.groups(file.path(), file.size());
                if (read != null) {
                    groups.put(absolutePath(file.path()).toString(), read);
                }
            }
        }

        private static DeltaScan shorter(DeltaScan scan, FileChoice choice, long bytes) {
            List<AddFile> files = kept(scan.files(), choice);
            DataSize scanned = new DataSize(
                Option.apply(bytes), Option.empty(), Option.apply((long) files.size()), Option.empty());
            return new DeltaScan(scan.version(), Scala.seq(files), scan.total(), scan.partition(), scanned,
                scan.scannedSnapshot(), scan.partitionFilters(), scan.dataFilters(), scan.partitionLikeDataFilters(),
                scan.rewrittenPartitionLikeDataFilters(), scan.unusedFilters(), scan.scanDurationMs(),
                scan.dataSkippingType());
        }

        private static List<AddFile> kept(Seq<AddFile> files, FileChoice choice) {
            return Scala.list(files).stream().filter(file -> !choice.skips(file.path(), file.size())).toList();
        }

        @Override
        public Wire.ScanReport report() {
            return report;
        }

        @Override
        public boolean skipsGroups() {
            return !groups.isEmpty();
        }

        @Override
        public long[] groups(FileStatusWithMetadata file) {
            return groups.get(file.getPath().toString());
        }

        @Override
        public Seq<AddFile> matchingFiles(Seq<Expression> partitionFilters, Seq<Expression> dataFilters) {
            List<Expression> known = Scala.list(dataFilters).stream()
                .filter(e -> !e.exists(part -> part instanceof PlanExpression)) // a threshold is no reason to list again
                .toList();
            return Scala.seq(kept(super.matchingFiles(partitionFilters, Scala.seq(known)), choice));
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Pruned list && list.getClass() == getClass() && super.equals(list)
                && list.choice.equals(choice);
        }

        @Override
        public int hashCode() {
            return super.hashCode();
        }
    }

    /** The same, with each file as a partition of its own, whose last value is its number in the index. */
    private static final class Numbered extends Pruned {
        private final Map<String, Integer> numbers = new HashMap<>();

        Numbered(PreparedDeltaFileIndex base, FileChoice choice, FileChoice index, Wire.ScanReport report) {
            super(base, choice, report);
            for (AddFile file : Scala.list(preparedScan().files())) {
                numbers.put(absolutePath(file.path()).toString(), index.numberOf(file.path(), file.size()));
            }
        }

        @Override
        public Seq<PartitionDirectory> listFiles(Seq<Expression> partitionFilters, Seq<Expression> dataFilters) {
            List<Expression> filters = Scala.list(partitionFilters).stream()
                .filter(e -> !e.exists(part -> part instanceof FilesOfKeys)).toList();
            List<PartitionDirectory> single = Scala.list(super.listFiles(Scala.seq(filters), dataFilters)).stream()
                .flatMap(directory -> Scala.list(directory.files()).stream()
                    .map(file -> new PartitionDirectory(ScannedFiles.withNumber(
                        directory.values(), partitionSchema(),
                        numbers.getOrDefault(file.getPath().toString(), ReadFiles.UNKNOWN)),
                        Scala.seq(List.of(file)))))
                .toList();
            return Scala.seq(single);
        }
    }
}
