package hedgerow;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.StructType;

/**
 * One scan of a managed table.
 *
 * @param listed what the scan reads if nothing is skipped: made once, because it takes a while for many files
 * @param start nanoseconds
 */
record Scan(
        String root, Side side, LogicalRelation relation, ScannedFiles files, List<ScannedFiles.Entry> listed, long start) {
    /** The folder `_hedgerow` of a managed table. */
    record Side(
        long state, // the number of the newest state
        long time, // a table that is written anew starts with number 1 again
        boolean hasOtherFiles) // whether other files may be read for its own
    {
        /** Null if the table is not managed. */
        private static Side of(String root, HadoopFsRelation files) throws IOException {
            Path side = new Path(root, "_hedgerow");
            FileStatus[] listed;
            try {
                var hadoop = files.sparkSession().sparkContext().hadoopConfiguration();
                listed = side.getFileSystem(hadoop).listStatus(side);
            } catch (FileNotFoundException none) {
                return null;
            }
            Side newest = new Side(-1, 0, false);
            boolean hasOtherFiles = false;
            for (FileStatus file : listed) {
                String name = file.getPath().getName();
                hasOtherFiles |= name.equals("replicas") || name.equals("copies");
                if (name.matches("state-[0-9]{1,18}\\.json")) {
                    long number = Long.parseLong(name.substring(6, name.length() - 5));
                    if (number > newest.state) {
                        newest = new Side(number, file.getModificationTime(), false);
                    }
                }
            }
            return newest.state < 0 ? null : new Side(newest.state, newest.time, hasOtherFiles);
        }
    }

    /** Identifies a table in a state, as a session and a query see it. */
    record Key(
        String root, long state, long time, Map<String, String> settings, String schema, String deltaSchema) {}

    /** Returns a relation as a scan of a managed table; null if it is not one. */
    static Scan of(LogicalRelation relation, ScannedFiles files) throws IOException {
        long start = System.nanoTime();
        String root = files.root();
        Side side = root == null ? null : Side.of(root, relationOf(relation));
        return side == null ? null : new Scan(root, side, relation, files, files.files().toList(), start);
    }

    private static HadoopFsRelation relationOf(LogicalRelation relation) {
        return (HadoopFsRelation) relation.relation();
    }

    Key key(Map<String, String> settings) {
        return new Key(root, side.state, side.time, settings, relation.schema().json(), files.deltaSchema());
    }

    /** Returns the relation with another list of files. */
    LogicalRelation reading(FileIndex location) {
        HadoopFsRelation now = relationOf(relation);
        LogicalRelation found = with(relation, withData(now, location, now.dataSchema()));
        found.copyTagsFrom(relation);
        return found;
    }

    static LogicalRelation with(LogicalRelation relation, HadoopFsRelation files) {
        return relation.copy(
            files, relation.output(), relation.catalogTable(), relation.isStreaming(), relation.stream());
    }

    static HadoopFsRelation withData(HadoopFsRelation files, FileIndex location, StructType data) {
        return files.copy(location, files.partitionSchema(), data, files.bucketSpec(), files.fileFormat(),
            files.options(), files.sparkSession());
    }

    /** Returns whether the index describes every file that the scan may read. */
    boolean isCovered(FileChoice index) {
        return listed.stream().allMatch(file -> index.knows(file.name(), file.bytes()));
    }

    /** Returns the decision to open these of the files that the scan lists. */
    Wire.ScanReport report(String table, ScannedFiles.Count listed, ScannedFiles.Count opened, String means) {
        return report(table, listed, opened, null, means);
    }

    /** Returns the decision to skip these of the files that the scan lists. */
    Wire.ScanReport report(String table, FileChoice choice, String means) {
        return report(table, count(), ScannedFiles.Count.of(
            listed.stream().filter(file -> !choice.skips(file.name(), file.bytes()))), means);
    }

    /** Returns the decision to open all files that the scan lists. */
    Wire.ScanReport leftAlone(String reason) {
        ScannedFiles.Count all = count();
        return report(root.substring(root.lastIndexOf('/') + 1), all, all, reason, Wire.ScanReport.WHERE);
    }

    /** Returns the number of the files that the scan lists. */
    ScannedFiles.Count count() {
        return ScannedFiles.Count.of(listed.stream());
    }

    private Wire.ScanReport report(
            String table, ScannedFiles.Count listed, ScannedFiles.Count opened, String reason, String means) {
        ScannedFiles.Count total = files.total(listed);
        double seconds = (System.nanoTime() - start) / 1e9;
        return new Wire.ScanReport(
            table, total.files(), opened.files(), total.bytes(), opened.bytes(), seconds, reason, means);
    }
}
