package hedgerow;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetScan;
import org.apache.spark.sql.types.StructType;

/** The files of a scan: the part that differs between the formats. */
sealed interface ScannedFiles permits ParquetFiles, DeltaFiles {
    /** A listed file. `name`: its path below the root of the table; `deleted`: how many of its rows are deleted. */
    record Entry(String name, long bytes, long deleted) {
        Entry withBytes(long read) {
            return new Entry(name, read, deleted);
        }
    }

    /** Numbers of files and bytes. */
    record Count(long files, long bytes) {
        static Count of(Stream<Entry> files) {
            long[] sums = {0, 0};
            files.forEach(file -> {
                sums[0]++;
                sums[1] += file.bytes();
            });
            return new Count(sums[0], sums[1]);
        }
    }

    FileIndex location();

    /** Returns the folder of the table; null if there is more than one. */
    String root();

    /** Returns why no file may be skipped, whatever the condition; null if some may. */
    String unfit(LogicalRelation relation);

    /** Returns the files that the scan reads if nothing is skipped. */
    Stream<Entry> files();

    /** Returns the number of the table's files, of which the scan has listed some. */
    Count total(Count listed);

    /** Returns whether the scan reads exactly the indexed files, so that other files may be read instead. */
    boolean isWhole(FileChoice index);

    default boolean isDelta() {
        return !(this instanceof ParquetFiles);
    }

    /** Returns the schema of a Delta table, as Delta has it; null for Parquet. */
    String deltaSchema();

    /** Returns the list without the skipped files. */
    FileIndex without(FileChoice choice, Wire.ScanReport report);

    /** Returns whether each file may be a partition of its own. */
    boolean canBeNumbered();

    /**
     * Returns the list without the skipped files, in which each file is a partition of its own with its number.
     *
     * @param location Spark's list, or one that `without` has made
     */
    FileIndex numbered(FileIndex location, FileChoice choice, FileChoice index, Wire.ScanReport report);

    /** Returns the values of a partition, with a number after them. */
    static InternalRow withNumber(InternalRow values, StructType partitions, int number) {
        List<Object> all = new ArrayList<>(Scala.list(values.toSeq(partitions)));
        all.add(number);
        return new GenericInternalRow(all.toArray());
    }

    /** Returns a text that tells these files from those of any other version of any table; null if there is none. */
    String version(LogicalRelation relation);

    /** Returns the files of a relation; null if the rule knows no such relation. */
    static ScannedFiles of(LogicalRelation relation) {
        if (!(relation.relation() instanceof HadoopFsRelation files) || relation.isStreaming()) {
            return null;
        }
        if (files.location().getClass().getName().startsWith(DELTA)) {
            return DeltaFiles.of(files.location());
        }
        return files.fileFormat().getClass() == ParquetFileFormat.class
            && files.location() instanceof PartitioningAwareFileIndex location ? new ParquetFiles(location) : null;
    }

    /** Returns the folder of a table that is read through DataSource V2; null if the rule knows no such scan. */
    static String rootOf(DataSourceV2ScanRelation relation) {
        if (relation.scan() instanceof ParquetScan scan) {
            return new ParquetFiles(scan.fileIndex()).root();
        }
        Table table = relation.relation().table();
        try { // by name: not every release of Delta has this class
            return table.getClass().getName().equals("io.delta.spark.internal.v2.catalog.DeltaV2Table")
                ? table.getClass().getMethod("getTablePath").invoke(table).toString() : null;
        } catch (ReflectiveOperationException error) {
            return null;
        }
    }

    /** The package of Delta's classes: `DeltaFiles` is loaded only where one of them was seen. */
    String DELTA = "org.apache.spark.sql.delta.";

    static boolean hasFieldIds(LogicalRelation relation) {
        return relation.schema().json().contains("parquet.field.id");
    }

    /** Returns the names of a relation's reader options, without the mark of this rule. */
    static Set<String> options(LogicalRelation relation) {
        Map<String, String> options = Scala.map(((HadoopFsRelation) relation.relation()).options());
        return options.keySet().stream()
            .filter(name -> !name.equalsIgnoreCase(PruningRule.MARK))
            .collect(Collectors.toSet());
    }

    /** Returns the version of the table that a relation reads whole; null if it is not known what it reads. */
    static Wire.TableVersion versionOf(LogicalRelation relation) {
        ScannedFiles files = of(relation);
        // A time in the name of a folder depends on the time zone.
        if (files == null || hasFieldIds(relation)
                || ((HadoopFsRelation) relation.relation()).partitionSchema().json().contains("timestamp")) {
            return null;
        }
        String version = files.version(relation);
        return version == null ? null : new Wire.TableVersion(version, options(relation));
    }
}
