package hedgerow;

import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;

/** The lists of files that take the place of Spark's. */
final class FileLists {
    private FileLists() {}

    /** A list of files that this rule has made. */
    interface Decided {
        Wire.ScanReport report();

        /** Returns whether some row groups of listed files are skipped. */
        boolean skipsGroups();

        /** Returns the row groups of a listed file that are read, as `FileChoice.groups`. */
        long[] groups(FileStatusWithMetadata file);

        /** Returns whether neighbouring row groups are read together. */
        default boolean joinsGroups() {
            return true;
        }
    }

    /** A list in place of Spark's; equal to another that lists the same, so that equal scans are shared. */
    private abstract static class Replacement<T> implements FileIndex, Decided {
        final FileIndex base;
        final T choice;
        private final Wire.ScanReport report;

        Replacement(FileIndex base, T choice, Wire.ScanReport report) {
            this.base = base;
            this.choice = choice;
            this.report = report;
        }

        @Override
        public Wire.ScanReport report() {
            return report;
        }

        @Override
        public boolean skipsGroups() {
            return false;
        }

        @Override
        public long[] groups(FileStatusWithMetadata file) {
            return null;
        }

        @Override
        public String[] inputFiles() {
            return Scala.list(listFiles(Scala.none(), Scala.none())).stream()
                .flatMap(directory -> Scala.list(directory.files()).stream())
                .map(file -> SparkPath.fromPath(file.getPath()).urlEncoded())
                .toArray(String[]::new);
        }

        @Override
        public Seq<Path> rootPaths() {
            return base.rootPaths();
        }

        @Override
        public void refresh() {
            base.refresh();
        }

        @Override
        public long sizeInBytes() {
            return report.bytesOpened();
        }

        @Override
        public StructType partitionSchema() {
            return base.partitionSchema();
        }

        @Override
        public Option<Object> metadataOpsTimeNs() {
            return base.metadataOpsTimeNs();
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Replacement<?> list && list.getClass() == getClass() && list.base.equals(base)
                && list.choice.equals(choice);
        }

        @Override
        public int hashCode() {
            return 31 * base.hashCode() + choice.hashCode();
        }
    }

    /** Spark's list without the skipped files. */
    static final class Pruned extends Replacement<FileChoice> {
        Pruned(FileIndex base, FileChoice choice, Wire.ScanReport report) {
            super(base, choice, report);
        }

        @Override
        public Seq<PartitionDirectory> listFiles(Seq<Expression> partitionFilters, Seq<Expression> dataFilters) {
            List<PartitionDirectory> kept = Scala.list(base.listFiles(partitionFilters, dataFilters)).stream()
                .map(directory -> new PartitionDirectory(directory.values(), kept(directory.files())))
                .toList();
            return Scala.seq(kept);
        }

        @Override
        public boolean skipsGroups() {
            return choice.skipsGroups();
        }

        @Override
        public long[] groups(FileStatusWithMetadata file) {
            return choice.groups(file.getPath().getName(), file.getLen());
        }

        private Seq<FileStatusWithMetadata> kept(Seq<FileStatusWithMetadata> files) {
            Stream<FileStatusWithMetadata> kept = Scala.list(files).stream()
                .filter(file -> !choice.skips(file.getPath().getName(), file.getLen()));
            return Scala.seq(kept.toList());
        }

        @Override
        public String toString() {
            return "Hedgerow(" + base + " without " + choice + ")";
        }
    }

    /** A list in which each file is a partition of its own, with its number in the index as the partition's value. */
    static final class Numbered extends Replacement<FileChoice> {
        Numbered(FileIndex base, FileChoice index, Wire.ScanReport report) {
            super(base, index, report);
        }

        @Override
        public Seq<PartitionDirectory> listFiles(Seq<Expression> partitionFilters, Seq<Expression> dataFilters) {
            List<PartitionDirectory> single = Scala.list(base.listFiles(Scala.none(), dataFilters)).stream()
                .flatMap(directory -> Scala.list(directory.files()).stream()
                    .map(file -> new PartitionDirectory(ScannedFiles.withNumber(directory.values(),
                        base.partitionSchema(), choice.numberOf(file.getPath().getName(), file.getLen())),
                        Scala.seq(List.of(file)))))
                .toList();
            return Scala.seq(single);
        }

        @Override
        public boolean skipsGroups() {
            return base instanceof Decided list && list.skipsGroups();
        }

        @Override
        public long[] groups(FileStatusWithMetadata file) {
            return base instanceof Decided list ? list.groups(file) : null;
        }

        @Override
        public String toString() {
            return base.toString();
        }
    }

    /** Spark's list of files, each of whose row groups is read by itself. */
    static final class Divided extends Replacement<Map<String, List<Long>>> {
        /** `starts`: where the row groups of each file begin, by the last part of the file's path. */
        Divided(FileIndex base, Map<String, List<Long>> starts) {
            super(base, starts, null);
        }

        @Override
        public Seq<PartitionDirectory> listFiles(Seq<Expression> partitionFilters, Seq<Expression> dataFilters) {
            return base.listFiles(partitionFilters, dataFilters);
        }

        @Override
        public boolean skipsGroups() {
            return true;
        }

        @Override
        public long[] groups(FileStatusWithMetadata file) {
            List<Long> starts = choice.getOrDefault(file.getPath().getName(), List.of());
            long[] ranges = new long[2 * starts.size()];
            for (int i = 0; i < starts.size(); i++) {
                ranges[2 * i] = starts.get(i);
                ranges[2 * i + 1] = i + 1 < starts.size() ? starts.get(i + 1) : file.getLen();
            }
            return starts.isEmpty() ? null : ranges;
        }

        @Override
        public boolean joinsGroups() {
            return false;
        }

        @Override
        public long sizeInBytes() {
            return base.sizeInBytes();
        }

        @Override
        public String toString() {
            return base.toString();
        }
    }

    /** A list of other files that hold the rows that a query needs. */
    static final class Others extends Replacement<List<FileStatus>> {
        Others(FileIndex base, List<FileStatus> files, Wire.ScanReport report) {
            super(base, files, report);
        }

        @Override
        public Seq<PartitionDirectory> listFiles(Seq<Expression> partitionFilters, Seq<Expression> dataFilters) {
            List<FileStatusWithMetadata> listed = choice.stream()
                .map(file -> new FileStatusWithMetadata(file, Map$.MODULE$.empty()))
                .toList();
            return Scala.seq(List.of(new PartitionDirectory(InternalRow.empty(), Scala.seq(listed))));
        }

        @Override
        public String toString() {
            return "Hedgerow(" + choice.size() + " other files with the rows of " + base + ")";
        }
    }
}
