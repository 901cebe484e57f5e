package hedgerow;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.type.TypeReference;
import java.util.List;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Function;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.FileScan;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;
import scala.collection.immutable.Map;

/** The methods that Python calls; answers are JSON of `Wire` records. */
public final class Gateway {
    private final Allowlist allowed;

    /** `lists`: Python's first message. */
    public Gateway(String lists) throws JsonProcessingException {
        this.allowed = new Allowlist(Wire.readLists(lists));
    }

    /** Returns a new rule that this function answers. */
    public PruningRule rule(Function<String, String> python) {
        return new PruningRule(new Caller(allowed, python));
    }

    /** The Python that calls this gateway. */
    private record Caller(Allowlist allowed, Function<String, String> python) implements Python {
        @Override
        public String answer(String request) {
            return python.apply(request);
        }
    }

    /** Returns a listener for the queries of a session. */
    public QueryListener listener(Object session) {
        return new QueryListener(session);
    }

    /** Returns all settings of a session that are not at their defaults, and some that always count. */
    public String settings(SparkSession session) {
        return Wire.write(SessionSettings.changed(session, allowed));
    }

    /** Declares a function of the session stable; returns false if the session has none of that name. */
    public boolean declare(SparkSession session, String name, String version) {
        return StableFunctions.declare(session, name, version);
    }

    /** Returns the types that the session's declared functions return, by name in lower case. */
    public String stable(SparkSession session) {
        TreeMap<String, String> found = new TreeMap<>();
        StableFunctions.of(session).forEach((name, declared) -> found.put(name, declared.returned()));
        return Wire.write(found);
    }

    /** Returns the version of the table that a frame reads whole; null if it reads anything else. */
    public String version(Dataset<Row> frame) {
        LogicalPlan plan = frame.queryExecution().analyzed();
        while (plan instanceof SubqueryAlias alias) {
            plan = alias.child();
        }
        Wire.TableVersion version =
            plan instanceof LogicalRelation relation ? ScannedFiles.versionOf(relation) : null;
        return version == null ? null : Wire.write(version);
    }

    /** Returns the text that tells a Delta table's snapshot from all others. */
    public String deltaVersion(Object snapshot) {
        return DeltaFiles.versionOf(snapshot);
    }

    /** Returns the names of a frame's columns whose value depends on the row alone, as a JSON list. */
    public String steady(Dataset<Row> frame) {
        Set<String> stable = StableFunctions.of(frame.sparkSession()).keySet();
        Set<String> names = new IndexedExpressions(allowed.with(stable)).steady(frame.queryExecution().analyzed());
        return Wire.write(names);
    }

    /** Returns the same query, marked so that the rule prunes its scans; null if it reads no files. */
    public Dataset<Row> marked(Dataset<Row> query) {
        // Cached data is put in first: Spark would not recognise a marked relation as a cached one.
        LogicalPlan plan = query.queryExecution().withCachedData();
        LogicalPlan marked = plan.transformDownWithSubqueries(Scala.rewrite(Gateway::mark));
        if (marked == plan) {
            return null;
        }
        marked.setAnalyzed();
        return Dataset.ofRows(query.sparkSession(), marked);
    }

    /**
     * Returns the rows of some files, of which a task reads each row group by itself: `_metadata.file_block_start` tells it.
     *
     * @param starts JSON: where the row groups of each file begin, by the last part of the file's path
     */
    public Dataset<Row> divided(Dataset<Row> rows, String starts) throws JsonProcessingException {
        java.util.Map<String, List<Long>> groups =
            Json.MAPPER.readValue(starts, new TypeReference<java.util.Map<String, List<Long>>>() {});
        RowGroupScans.planIn(rows.sparkSession());
        LogicalPlan plan = rows.queryExecution().analyzed().transformDown(Scala.rewrite(node -> divided(node, groups)));
        return Dataset.ofRows(rows.sparkSession(), plan);
    }

    private static LogicalPlan divided(LogicalPlan node, java.util.Map<String, List<Long>> starts) {
        return node instanceof LogicalRelation relation && relation.relation() instanceof HadoopFsRelation files
            ? Scan.with(relation, Scan.withData(
                files, new FileLists.Divided(files.location(), starts), files.dataSchema())) : node;
    }

    /** Returns how many files the scans of a query list, each file once, and their bytes. */
    public String listed(Dataset<Row> query) {
        TreeMap<String, Long> sizes = new TreeMap<>();
        Scala.list(query.queryExecution().optimizedPlan().collectLeaves()).forEach(leaf -> {
            FileIndex files = leaf instanceof LogicalRelation relation
                && relation.relation() instanceof HadoopFsRelation of ? of.location()
                : leaf instanceof DataSourceV2ScanRelation relation && relation.scan() instanceof FileScan scan
                ? scan.fileIndex() : null;
            if (files != null) {
                Scala.list(files.listFiles(Scala.none(), Scala.none())).forEach(directory ->
                    Scala.list(directory.files()).forEach(file -> sizes.put(file.getPath().toString(), file.getLen())));
            }
        });
        return Wire.write(List.of(sizes.size(), sizes.values().stream().mapToLong(Long::longValue).sum()));
    }

    /** Returns a column with the footers of Parquet files, read where the column is evaluated; see `FileParts`. */
    public Column footers(SparkSession session, Column path, Column size) {
        return functions.udf(new FileParts(session.sessionState().newHadoopConf()).footers(), DataTypes.BinaryType)
            .apply(path, size);
    }

    /** Returns a column with parts of files, see `FileParts`. */
    public Column parts(SparkSession session, Column path, Column size, Column starts, Column lengths) {
        return functions.udf(new FileParts(session.sessionState().newHadoopConf()).parts(),
            DataTypes.createArrayType(DataTypes.BinaryType)).apply(path, size, starts, lengths);
    }

    private static LogicalPlan mark(LogicalPlan node) {
        if (!(node instanceof LogicalRelation relation)
                || !(relation.relation() instanceof HadoopFsRelation files)
                || Scala.map(files.options()).containsKey(PruningRule.MARK)) {
            return node;
        }
        @SuppressWarnings("unchecked") // Java does not see the type that Scala gives
        Map<String, String> options = (Map<String, String>) files.options().updated(PruningRule.MARK, "true");
        LogicalRelation marked = Scan.with(relation, files.copy(files.location(), files.partitionSchema(),
            files.dataSchema(), files.bucketSpec(), files.fileFormat(), options, files.sparkSession()));
        marked.copyTagsFrom(relation);
        return marked;
    }
}
