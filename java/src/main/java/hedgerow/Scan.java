package hedgerow;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.StructType;

/**
 * One scan of a managed table.
 *
 * @param listed what the scan reads if nothing is skipped: made once, because it takes a while for many files
 */
record Scan(
        String root, Side side, LogicalRelation relation, ScannedFiles files, List<ScannedFiles.Entry> listed) {
    /** The folder `_hedgerow` of a managed table. */
    record Side(
        long state, // the number of the newest state
        long time, // a table that is written anew starts with number 1 again
        boolean hasOtherFiles) // whether other files may be read for its own
    {
        /** Null if the table is not managed. */
        static Side of(String root) throws IOException {
            Path side = new Path(root, "_hedgerow");
            FileStatus[] listed;
            try {
                listed = side.getFileSystem(SparkContext.getOrCreate().hadoopConfiguration()).listStatus(side);
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
        String root, long state, long time, Map<String, String> settings, String schema, String deltaSchema,
        Map<String, StableFunctions.Declared> stable) {} // users' functions that expressions of the index may call

    /** Returns a relation as a scan of a managed table; null if it is not one. */
    static Scan of(LogicalRelation relation, ScannedFiles files) throws IOException {
        String root = files.root();
        Side side = root == null ? null : Side.of(root);
        return side == null ? null : new Scan(root, side, relation, files, files.files().toList());
    }

    private static HadoopFsRelation relationOf(LogicalRelation relation) {
        return (HadoopFsRelation) relation.relation();
    }

    Key key(Map<String, String> settings, Map<String, StableFunctions.Declared> stable) {
        return new Key(
            root, side.state, side.time, settings, relation.schema().json(), files.deltaSchema(), stable);
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

    /** Returns the number of the files that the scan lists, without those to skip. */
    ScannedFiles.Count count(FileChoice choice) {
        return ScannedFiles.Count.of(listed.stream().filter(file -> !choice.skips(file.name(), file.bytes()))
            .map(file -> file.withBytes(choice.bytesRead(file.name(), file.bytes()))));
    }

    /** Returns the relation with the files that are read first to find a threshold. */
    LogicalRelation probing(FileChoice choice, String table, QueryPlan query) {
        return reading(files.without(
            choice, query.report(this, table, count(choice), null, Wire.ScanReport.PROBE)));
    }

    /** Records that these files are skipped. `unused`: why a part of the index does not help; or null. */
    Wire.ScanReport decide(FileChoice choice, String table, String unused, String means, QueryPlan query) {
        return query.decide(this, table, count(choice), unused, means);
    }

    /** Returns the relation without the files to skip. */
    LogicalRelation without(FileChoice choice, Wire.ScanReport report) {
        return choice.skipsAny(listed) || choice.skipsGroups() ? reading(files.without(choice, report)) : relation;
    }
}
