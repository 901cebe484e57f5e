/*
 * The optimizer rule that makes queries skip files. `spark/optimizer/rule.py` compiles it at run time with Spark's own
 * compiler, Janino (hence raw types and no lambdas); `attach.py` adds it to the session's optimizer rules.
 *
 *     Filter(condition)                               Filter(condition)
 *       Relation(files listed by Spark or Delta)  ->    Relation(the same list without the files to skip)
 *
 * Spark has parsed the query; the rule only reads the plan. It sends the condition as JSON to Python, which answers
 * with the files to open (`tables/session_pruning.py`). All other indexed files are left out, by name and size.
 * Settings, expressions and reader options are unknown unless `spark/judged.py` lists them. If anything is unknown or
 * fails, all files stay in place, and the reason is reported.
 */
package hedgerow;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileNotFoundException;
import java.lang.ref.WeakReference;
import java.lang.reflect.Method;
import java.time.Instant;
import java.time.LocalDate;
import java.time.ZoneId;
import java.time.zone.ZoneOffsetTransition;
import java.time.zone.ZoneRulesProvider;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.function.Function;
import java.util.regex.Pattern;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.internal.config.ConfigEntry;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BinaryExpression;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Contains;
import org.apache.spark.sql.catalyst.expressions.EndsWith;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.GreaterThan;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.InputFileBlockStart;
import org.apache.spark.sql.catalyst.expressions.InputFileName;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.LessThan;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Like;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedLambdaVariable;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.RuntimeReplaceable;
import org.apache.spark.sql.catalyst.expressions.StartsWith;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.delta.actions.AddFile; // Delta
import org.apache.spark.sql.delta.stats.DataSize; // Delta
import org.apache.spark.sql.delta.stats.DeltaScan; // Delta
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex; // Delta
import org.apache.spark.sql.execution.ColumnarToRowExec;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.InputAdapter;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.util.AccumulatorV2;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

public class Pruning extends Rule {
    static final String DELTA = "org.apache.spark.sql.delta.";
    /** The reader option by which `route` and `read` mark one query; in an attached session no query needs it. */
    static final String MARK = "hedgerow.route";
    static final int MAX_REMEMBERED = 100; // tables
    private static final Logger LOG = LoggerFactory.getLogger("hedgerow");
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Judged judged;
    private final ThreadLocal answered = new ThreadLocal();
    private final ThreadLocal resolving = new ThreadLocal();
    private final Map remembered = Collections.synchronizedMap(new HashMap());
    private final Set logged = Collections.synchronizedSet(new HashSet());
    private volatile Function python;
    private volatile boolean every;
    private volatile String last = "[]";

    /** A text that begins with a year, so that it names a day by itself. */
    private static final Pattern DATED = Pattern.compile("^\\s*[+-]?\\d{4,}(-|\\s*$)");
    /** A date or timestamp in SQL that does not: the parser asks the clock. */
    private static final Pattern UNDATED = Pattern.compile(
        "(?i)\\b(date|timestamp(_ntz|_ltz)?)\\s*['\"]\\s*(?![+-]?\\d{4,}(-|\\s*['\"]))");
    /** The types that become dates and timestamps without the clock. */
    private static final Pattern NO_TEXT = Pattern.compile(
        "date|timestamp.*|void|boolean|tinyint|smallint|int|bigint|float|double|decimal.*");

    /** `lists` is the JSON of `spark/judged.py`. */
    public Pruning(String lists) throws Exception {
        this.judged = new Judged(JSON.readTree(lists));
    }

    /** Sets the Python object that answers requests. */
    public void answeredBy(Function answers) {
        python = answers;
    }

    /** Sets whether the rule prunes every query, or only those that `routed` marked. */
    public void attached(boolean every) {
        this.every = every;
    }

    public boolean isAttached() {
        return every;
    }

    /** The decisions for the scans of the last query, as JSON. */
    public String last() {
        return last;
    }

    /** The settings that change what a query means or reads, as JSON. */
    public String settings(SQLConf conf) {
        return judged.settings(conf);
    }

    /** The version of the table that a frame reads whole; null if it reads anything else, or in an unusual way. */
    public String version(Dataset frame) throws Exception {
        LogicalPlan plan = frame.queryExecution().analyzed();
        while (plan instanceof SubqueryAlias) {
            plan = ((SubqueryAlias) plan).child();
        }
        return plan instanceof LogicalRelation ? version((LogicalRelation) plan) : null;
    }

    /** The same query, marked so that this rule prunes its scans; null if it reads no files. */
    public Dataset marked(Dataset query) {
        Mark mark = new Mark();
        // Cached data is put in first: Spark would not recognise a marked relation as a cached one.
        LogicalPlan found = (LogicalPlan) query.queryExecution().withCachedData().transformDownWithSubqueries(mark);
        if (!mark.isUsed) {
            return null;
        }
        found.setAnalyzed();
        return Dataset.ofRows(query.sparkSession(), found);
    }

    public TreeNode apply(TreeNode plan) {
        LogicalPlan root = (LogicalPlan) plan;
        WeakReference before = (WeakReference) answered.get();
        if (resolving.get() != null || (before != null && before.get() == plan)) {
            return plan; // the optimizer calls the rule again until nothing changes
        }
        Visit visit = new Visit(this, root);
        try {
            if (!isOn("hedgerow.enabled") || root instanceof Subquery || root instanceof Command || root.isStreaming()
                    || inTransaction()) {
                return plan; // subqueries are handled with the query that contains them
            }
            TreeNode found = (TreeNode) root.transformDownWithSubqueries(visit);
            if (visit.sawFiles) {
                last = "[" + String.join(",", (List) visit.scans) + "]";
            }
            answered.set(new WeakReference(found));
            return found;
        } catch (Exception error) {
            LOG.info("Hedgerow leaves a query as it is: " + error);
            return plan;
        } catch (LinkageError error) {
            LOG.info("Hedgerow leaves a query as it is: " + error);
            return plan;
        }
    }

    /** Whether a Delta transaction is active: in MERGE, UPDATE and DELETE, Delta itself chooses the files. */
    private static boolean inTransaction() throws Exception {
        Class transaction;
        try {
            transaction = Class.forName(
                DELTA + "OptimisticTransaction", true, Thread.currentThread().getContextClassLoader());
        } catch (ClassNotFoundException none) {
            return false;
        }
        return ((Option) transaction.getMethod("getActive", new Class[0]).invoke(null, new Object[0])).isDefined();
    }

    // --- one scan ---

    /** The relation, or a plan over it, without the files to skip; the relation itself if there are none. */
    LogicalPlan pruned(LogicalRelation relation, Expression condition, Visit visit) throws Exception {
        if (!(relation.relation() instanceof HadoopFsRelation) || relation.isStreaming()) {
            return relation;
        }
        FileIndex location = ((HadoopFsRelation) relation.relation()).location();
        if (location instanceof Decided) {
            visit.note(((Decided) location).told());
            return relation;
        }
        if (!isOurs(relation)) {
            return relation;
        }
        visit.sawFiles = true;
        Scan scan = scan(relation);
        if (scan == null) {
            return relation;
        }
        try {
            String unfit = visit.byPlace() == null ? unfit(scan) : visit.byPlace();
            if (unfit != null) {
                return leftAlone(scan, unfit, visit);
            }
            return chosen(scan, condition, visit);
        } catch (Exception error) {
            return leftAlone(scan, error.toString(), visit);
        }
    }

    private static boolean isDelta(FileIndex location) {
        String kind = location.getClass().getName();
        return kind.equals(DELTA + "stats.PreparedDeltaFileIndex") || kind.equals(DELTA + "files.TahoeLogFileIndex");
    }

    /** Whether this rule looks at relations of this kind. */
    private boolean isOurs(LogicalRelation relation) {
        HadoopFsRelation files = (HadoopFsRelation) relation.relation();
        boolean isParquet = files.fileFormat().getClass() == ParquetFileFormat.class
            && files.location() instanceof PartitioningAwareFileIndex;
        return (isDelta(files.location()) || isParquet) && (every || files.options().contains(MARK));
    }

    /** The relation as a scan of a managed table; null if it is not one. */
    private Scan scan(LogicalRelation relation) throws Exception {
        if (!(relation.relation() instanceof HadoopFsRelation) || relation.isStreaming() || !isOurs(relation)) {
            return null;
        }
        HadoopFsRelation files = (HadoopFsRelation) relation.relation();
        FileIndex location = files.location();
        boolean isDelta = isDelta(location);
        String root = isDelta ? call(location, "path").toString() : rootOf((PartitioningAwareFileIndex) location);
        Side side = root == null ? null : Side.of(root, isDelta ? "delta-" : "manifest-", files);
        return side == null ? null : new Scan(root, side, relation, files, location, isDelta);
    }

    /** Why no file of the scan may be skipped, whatever the condition; null if some may. */
    private String unfit(Scan scan) {
        String option = unusualOption(scan.files);
        if (option != null) {
            return "the reader option " + option + " may change what is read";
        }
        if (scan.isDelta) {
            boolean isPrepared = scan.location.getClass().getName().equals(DELTA + "stats.PreparedDeltaFileIndex");
            return isPrepared ? null : "Delta lists its files in another way than for a query that skips";
        }
        if (!scan.files.partitionSchema().isEmpty() || scan.files.bucketSpec().isDefined()) {
            return "the query reads the directory as a partitioned or bucketed table";
        }
        return hasFieldIds(scan.relation) ? "columns may be found by Parquet's field ids" : null;
    }

    /** A reader option that may change what is read; null if there is none. */
    private String unusualOption(HadoopFsRelation files) {
        for (Iterator each = files.options().keysIterator(); each.hasNext();) {
            String option = (String) each.next();
            if (!option.equalsIgnoreCase(MARK) && !judged.isHarmlessOption(option)) {
                return option;
            }
        }
        return null;
    }

    private static boolean hasFieldIds(LogicalRelation relation) {
        return relation.schema().json().indexOf("parquet.field.id") >= 0;
    }

    private LogicalPlan chosen(Scan scan, Expression condition, Visit visit) throws Exception {
        Known known = known(scan);
        if (known.reason != null) {
            return leftAlone(scan, known.reason, visit);
        }
        StringBuilder asked = new StringBuilder();
        StringBuilder partners = new StringBuilder();
        boolean joined = isOn("hedgerow.joins") && visit.edges().isFrom(scan.relation)
            && (joined(scan.relation, known.joins, known, asked, visit) | partners(scan.relation, partners, visit));
        if (condition == null && !joined) {
            visit.note(scan.told(known.name, scan.listed(null), null));
            return scan.relation;
        }
        StringBuilder request = new StringBuilder("{\"ask\":");
        quote(known.handle, request);
        request.append(",\"where\":");
        new Condition(request, known.items).write(normal(condition, scan.relation));
        if (scan.side.hasMore) {
            boolean own = joined || visit.asksForFiles() || hasMetadata(scan.relation) || !scan.isWhole(known.skip);
            request.append(",\"own\":").append(own).append(",\"columns\":");
            names(visit.columnsOf(scan.relation, condition == null ? Literal.TrueLiteral() : condition), request);
        }
        if (joined) {
            request.append(",\"joined\":").append(asked).append(",\"partners\":").append(partners);
        }
        JsonNode answer = JSON.readTree((String) python.apply(request.append("}").toString()));
        if (answer.has("reason")) {
            if (answer.has("forget")) {
                remembered.remove(known.key);
            }
            return leftAlone(scan, at(answer, "reason").asText(), visit);
        }
        return answer.has("instead")
            ? instead(scan, condition, known, at(answer, "instead"), visit)
            : shortened(scan, known, known.skip.where(at(answer, "bits").asText()), visit);
    }

    // --- joined tables ---

    private static boolean isOn(String setting) {
        return !"false".equalsIgnoreCase(SQLConf.get().getConfString(setting, "true"));
    }

    private static Expression normal(Expression condition, LogicalRelation relation) {
        return condition == null ? Literal.TrueLiteral() : (Expression) condition.transform(new Normal(relation));
    }

    /**
     * Writes the conditions on the rows to which foreign keys lead from this relation, if the query joins them, as
     * [{"number": of the key, "version": text, "root": path, "schema": {}, "where": condition, "joined": [...]}, ...]; false
     * if there is none.
     */
    private boolean joined(LogicalRelation from, JsonNode keys, Known known, StringBuilder out, Visit visit)
            throws Exception {
        out.append("[");
        boolean found = false;
        for (int i = 0; i < keys.size(); i++) {
            JsonNode key = at(keys, i);
            for (java.util.Iterator each = visit.edges().to(from, key).iterator(); each.hasNext();) {
                LogicalRelation other = (LogicalRelation) each.next();
                String version = version(other);
                if (version == null || !table(version).equals(table(at(key, "version").asText()))) {
                    continue;
                }
                out.append(found ? "," : "").append("{\"number\":").append(at(key, "number").asInt());
                out.append(",\"version\":");
                quote(version, out);
                FileIndex location = ((HadoopFsRelation) other.relation()).location();
                out.append(",\"root\":");
                quote(isDelta(location) ? call(location, "path").toString() : "", out);
                out.append(",\"schema\":").append(other.schema().json()).append(",\"where\":");
                Expression condition = normal(visit.edges().condition(other), other);
                new Condition(out, itemsOf(known, key, other)).write(condition);
                out.append(",\"joined\":");
                joined(other, at(key, "joined"), known, out, visit);
                out.append("}");
                found = true;
            }
        }
        out.append("]");
        return found;
    }

    /** Of a version, the part that tells one table from others: all of it, but for a Delta table's time and number. */
    private static String table(String version) {
        return version.startsWith("delta ") ? version.split(" ")[1] : version;
    }

    /** The index's expressions over joined rows, recognised in the table that these rows come from. */
    private Map itemsOf(Known known, JsonNode key, LogicalRelation other) throws Exception {
        String name = at(key, "name").asText() + "\n" + other.schema().json();
        Map found = (Map) known.joinedItems.get(name);
        if (found == null) {
            HadoopFsRelation files = (HadoopFsRelation) other.relation();
            found = items(new Scan("", null, other, files, files.location(), false), at(key, "items"));
            known.joinedItems.put(name, found);
        }
        return found;
    }

    /**
     * Writes the managed tables whose rows the joins need, with their own conditions, as
     * [{"ask": handle, "where": condition, "columns": [[mine, theirs], ...]}, ...]; false if there is none.
     */
    private boolean partners(LogicalRelation from, StringBuilder out, Visit visit) throws Exception {
        out.append("[");
        boolean found = false;
        Map tables = isOn("hedgerow.partners") ? visit.edges().from(from) : Collections.EMPTY_MAP;
        for (java.util.Iterator each = tables.entrySet().iterator(); each.hasNext();) {
            Map.Entry entry = (Map.Entry) each.next();
            LogicalRelation other = (LogicalRelation) entry.getKey();
            Scan scan = scan(other);
            Known theirs = scan == null || unfit(scan) != null ? null : known(scan);
            if (theirs == null || theirs.reason != null || !scan.isCovered(theirs.skip)) {
                continue;
            }
            StringBuilder asked = new StringBuilder();
            joined(other, theirs.joins, theirs, asked, visit);
            out.append(found ? "," : "").append("{\"ask\":");
            quote(theirs.handle, out);
            out.append(",\"where\":");
            new Condition(out, theirs.items).write(normal(visit.edges().condition(other), other));
            out.append(",\"joined\":").append(asked).append(",\"columns\":[");
            List pairs = (List) entry.getValue();
            for (int i = 0; i < pairs.size(); i++) {
                AttributeReference[] pair = (AttributeReference[]) pairs.get(i);
                out.append(i > 0 ? ",[" : "[");
                quote(pair[0].name(), out);
                out.append(",");
                quote(pair[1].name(), out);
                out.append(",");
                quote(pair[0].dataType().catalogString(), out);
                out.append("]");
            }
            out.append("]}");
            found = true;
        }
        out.append("]");
        return found;
    }

    /** The version of the table that a relation reads whole; null if it is not known what it reads. */
    private String version(LogicalRelation relation) throws Exception {
        if (!(relation.relation() instanceof HadoopFsRelation) || relation.isStreaming()) {
            return null;
        }
        HadoopFsRelation files = (HadoopFsRelation) relation.relation();
        if (unusualOption(files) != null || hasFieldIds(relation)
                || files.partitionSchema().json().indexOf("timestamp") >= 0) {
            return null; // a time in the name of a folder depends on the time zone
        }
        FileIndex location = files.location();
        if (location.getClass().getName().equals(DELTA + "stats.PreparedDeltaFileIndex")) {
            Object snapshot = call(call(location, "preparedScan"), "scannedSnapshot");
            Object written = call(call(snapshot, "logSegment"), "lastCommitFileModificationTimestamp");
            return "delta " + call(call(snapshot, "metadata"), "id") + " " + written + " " + call(snapshot, "version");
        }
        if (files.fileFormat().getClass() != ParquetFileFormat.class
                || !(location instanceof PartitioningAwareFileIndex)) {
            return null;
        }
        List listed = new ArrayList();
        for (Iterator each = ((PartitioningAwareFileIndex) location).allFiles().iterator(); each.hasNext();) {
            FileStatus file = (FileStatus) each.next();
            listed.add(file.getPath() + "\n" + file.getLen() + "\n" + file.getModificationTime());
        }
        for (int i = 0; i < relation.schema().fields().length; i++) {
            String more = relation.schema().fields()[i].metadata().json();
            if (more.indexOf("DEFAULT") >= 0) { // a value that the catalog gives where a file lacks the column
                listed.add(relation.schema().fields()[i].name() + "\n" + more);
            }
        }
        Collections.sort(listed);
        byte[] digest = java.security.MessageDigest.getInstance("SHA-256").digest(
            String.join("\n", listed).getBytes(java.nio.charset.StandardCharsets.UTF_8));
        return "files " + new java.math.BigInteger(1, digest).toString(16);
    }

    /** Leaves the scan as it is and records the reason. */
    private LogicalPlan leftAlone(Scan scan, String reason, Visit visit) {
        visit.note(scan.told(null, scan.listed(null), reason));
        String line = "Hedgerow opens all files of " + scan.root + ": " + reason;
        if (logged.size() < 1000 && logged.add(line)) {
            LOG.info(line);
        }
        return scan.relation;
    }

    private LogicalPlan shortened(Scan scan, Known known, Skip skip, Visit visit) throws Exception {
        long[][] counts = scan.listed(skip);
        String told = scan.told(known.name, counts, null);
        visit.note(told);
        if (counts[1][0] == counts[2][0]) {
            return scan.relation;
        }
        if (!scan.isDelta) {
            return with(scan, new PrunedIndex(scan.location, skip, counts[1][1], told));
        }
        Class ours = Class.forName(getClass().getName() + "$PrunedDelta", true, getClass().getClassLoader());
        Class[] types = {FileIndex.class, Skip.class, Long.TYPE, String.class};
        Object[] arguments = {scan.location, skip, Long.valueOf(counts[1][1]), told};
        return with(scan, (FileIndex) ours.getMethod("of", types).invoke(null, arguments));
    }

    /** Reads other files with the same rows: a replica's, or the table's own with some copies of rows from others. */
    private static LogicalPlan instead(Scan scan, Expression condition, Known known, JsonNode files, Visit visit) {
        List listed = new ArrayList();
        long bytes = 0;
        for (java.util.Iterator each = at(files, "files").iterator(); each.hasNext();) {
            JsonNode file = (JsonNode) each.next();
            long size = at(file, 1).asLong();
            listed.add(new FileStatus(size, false, 1, 128L << 20, 0, new Path(at(file, 0).asText())));
            bytes += size;
        }
        long[][] counts = scan.listed(null);
        counts[1] = new long[] {listed.size(), bytes};
        String told = scan.told(known.name, counts, null);
        visit.note(told);
        JsonNode codes = at(files, "codes");
        FileIndex location = new OtherFiles(scan.location, listed, bytes, told);
        if (codes == null) {
            return with(scan, location);
        }
        // Copies carry the number of their block and cell in a column that plain readers do not see.
        Seq nothing = CollectionConverters.asScala(new ArrayList()).toSeq();
        AttributeReference number = new AttributeReference(at(files, "column").asText(), DataTypes.LongType, true,
            Metadata.empty(), org.apache.spark.sql.catalyst.expressions.NamedExpression$.MODULE$.newExprId(), nothing);
        List output = new ArrayList(CollectionConverters.asJava(scan.relation.output()));
        output.add(number);
        StructType schema = scan.files.dataSchema().add(number.name(), number.dataType());
        HadoopFsRelation read = scan.files.copy(location, scan.files.partitionSchema(), schema,
            scan.files.bucketSpec(), scan.files.fileFormat(), scan.files.options(), scan.files.sparkSession());
        LogicalRelation relation = scan.relation.copy(read, CollectionConverters.asScala(output).toSeq(),
            scan.relation.copy$default$3(), scan.relation.copy$default$4(), scan.relation.copy$default$5());
        List taken = new ArrayList();
        for (java.util.Iterator each = codes.iterator(); each.hasNext();) {
            taken.add(new Literal(Long.valueOf(((JsonNode) each.next()).asLong()), DataTypes.LongType));
        }
        Expression some = new Or(new IsNull(number), new In(number, CollectionConverters.asScala(taken).toSeq()));
        return new Project((Seq) scan.relation.output(), new Filter(new And(condition, some), relation));
    }

    private static LogicalRelation with(Scan scan, FileIndex location) {
        HadoopFsRelation files = scan.files;
        HadoopFsRelation fewer = files.copy(location, files.partitionSchema(), files.dataSchema(), files.bucketSpec(),
            files.fileFormat(), files.options(), files.sparkSession());
        LogicalRelation found = scan.relation.copy(fewer, scan.relation.copy$default$2(),
            scan.relation.copy$default$3(), scan.relation.copy$default$4(), scan.relation.copy$default$5());
        found.copyTagsFrom(scan.relation);
        return found;
    }

    private static boolean hasMetadata(LogicalRelation relation) {
        for (Iterator each = relation.output().iterator(); each.hasNext();) {
            if (!isData((AttributeReference) each.next())) {
                return true;
            }
        }
        return false;
    }

    static boolean isData(AttributeReference column) {
        return !column.metadata().contains("__metadata_col");
    }

    /** The folder of all files; null if there are several folders. */
    private static String rootOf(PartitioningAwareFileIndex location) {
        Seq roots = location.rootPaths();
        if (roots.isEmpty()) {
            return null;
        }
        Path first = (Path) roots.head();
        if (roots.size() == 1) {
            Iterator files = location.allFiles().iterator();
            boolean isFile = files.hasNext() && ((FileStatus) files.next()).getPath().equals(first);
            return (isFile ? first.getParent() : first).toString();
        }
        for (Iterator each = roots.iterator(); each.hasNext();) {
            if (!first.getParent().equals(((Path) each.next()).getParent())) {
                return null;
            }
        }
        return first.getParent().toString();
    }

    // --- the index of a table ---

    /** The table's index under these settings and with these columns; requested from Python once. */
    private Known known(Scan scan) throws Exception {
        String settings = settings(SQLConf.get());
        String schema = scan.relation.schema().json();
        String deltaSchema = null;
        if (scan.isDelta) {
            Object snapshot = call(call(scan.location, "preparedScan"), "scannedSnapshot");
            deltaSchema = (String) call(call(snapshot, "metadata"), "schemaString");
        }
        String key = scan.root + "\n" + scan.side.list + scan.side.time + "\n" + settings + "\n" + schema + "\n" + deltaSchema;
        Known known = (Known) remembered.get(key);
        if (known != null) {
            return known;
        }
        StringBuilder request = new StringBuilder("{\"open\":");
        quote(scan.root, request);
        request.append(",\"list\":");
        quote(scan.side.list, request);
        request.append(",\"settings\":").append(settings).append(",\"schema\":").append(schema);
        if (scan.isDelta) {
            request.append(",\"delta\":").append(deltaSchema);
        }
        JsonNode answer = JSON.readTree((String) python.apply(request.append("}").toString()));
        known = answer.has("reason")
            ? new Known(key, at(answer, "reason").asText())
            : new Known(key, answer, items(scan, at(answer, "items")));
        if (remembered.size() >= MAX_REMEMBERED) {
            remembered.clear();
        }
        if (known.reason == null || !answer.has("again")) {
            remembered.put(key, known);
        }
        return known;
    }

    /**
     * The index's expressions as Spark parses and optimises them here, so that a query's expression is recognised as
     * the same tree. Expressions that cannot be parsed here, or that are not all of allowed classes, are left out.
     */
    private Map items(Scan scan, JsonNode texts) { // [[number, text], ...]
        Map found = new HashMap();
        resolving.set(Boolean.TRUE);
        try {
            LogicalRelation leaf = with(scan, new PrunedIndex(scan.location, Skip.none(), 0L, "{}"));
            List all = new ArrayList();
            for (int i = 0; i < texts.size(); i++) {
                all.add(Integer.valueOf(i));
            }
            if (!resolve(scan, leaf, texts, all, found)) {
                for (int i = 0; i < texts.size(); i++) {
                    resolve(scan, leaf, texts, all.subList(i, i + 1), found);
                }
            }
        } finally {
            resolving.remove();
        }
        return found;
    }

    /** Puts the items made of allowed expressions into `found`; false if some cannot be analysed. */
    private boolean resolve(Scan scan, LogicalRelation leaf, JsonNode texts, List numbers, Map found) {
        org.apache.spark.sql.classic.SparkSession session =
            (org.apache.spark.sql.classic.SparkSession) scan.files.sparkSession();
        Seq nothing = CollectionConverters.asScala(new ArrayList()).toSeq();
        try {
            List columns = new ArrayList();
            for (int i = 0; i < numbers.size(); i++) {
                JsonNode item = at(texts, ((Integer) numbers.get(i)).intValue());
                String text = at(item, 1).asText();
                if (!isDated(text)) {
                    continue;
                }
                columns.add(new Alias(session.sessionState().sqlParser().parseExpression(text), "_" + at(item, 0).asInt(),
                    org.apache.spark.sql.catalyst.expressions.NamedExpression$.MODULE$.newExprId(), nothing, Option.empty(),
                    nothing));
            }
            LogicalPlan plan = new Project(CollectionConverters.asScala(columns).toSeq(), leaf);
            LogicalPlan analyzed = session.sessionState().analyzer().executeAndCheck(plan, new
                org.apache.spark.sql.catalyst.QueryPlanningTracker(Option.empty()));
            LogicalPlan optimized = (LogicalPlan) session.sessionState().optimizer().execute(analyzed);
            if (!(optimized instanceof Project)) {
                return true;
            }
            Set steady = steady(analyzed);
            for (Iterator each = ((Project) optimized).projectList().iterator(); each.hasNext();) {
                Object column = each.next();
                if (column instanceof Alias && steady.contains(((Alias) column).name())
                        && judged.knows(((Alias) column).child())) {
                    Object tree = ((Alias) column).child().transform(new Normal(leaf));
                    found.put(tree, Integer.valueOf(((Alias) column).name().substring(1)));
                }
            }
            return true;
        } catch (Exception error) {
            return false;
        }
    }

    /** Whether all dates and timestamps that the text spells out name a day. */
    public boolean isDated(String text) {
        return !UNDATED.matcher(text).find();
    }

    /** The names of a frame's columns whose value depends on the row alone, as JSON. */
    public String steady(Dataset frame) {
        StringBuilder out = new StringBuilder();
        names(steady(frame.queryExecution().analyzed()), out);
        return out.toString();
    }

    /** Looks at the plan as it was analysed: the optimizer has put in what the clock and the session say. */
    private Set steady(LogicalPlan analyzed) {
        Set found = new TreeSet();
        if (analyzed instanceof Project) {
            for (Iterator each = ((Project) analyzed).projectList().iterator(); each.hasNext();) {
                Object column = each.next();
                if (column instanceof Alias && judged.isSteady(((Alias) column).child())) {
                    found.add(((Alias) column).name());
                }
            }
        }
        return found;
    }

    // --- Delta is used by reflection only: its classes may be absent ---

    static Object call(Object of, String name) throws Exception {
        return of.getClass().getMethod(name, new Class[0]).invoke(of, new Object[0]);
    }

    static JsonNode at(JsonNode node, int place) {
        return (JsonNode) node.get(place); // Janino picks the inherited method, which returns TreeNode
    }

    static JsonNode at(JsonNode node, String name) {
        return (JsonNode) node.get(name);
    }

    static void quote(String text, StringBuilder out) {
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < 32 || c > 126) {
                out.append("\\u");
                String code = Integer.toHexString(c);
                for (int n = code.length(); n < 4; n++) {
                    out.append('0');
                }
                out.append(code);
            } else {
                out.append(c);
            }
        }
        out.append('"');
    }

    /** Writes a set of names as JSON; null if there is none. */
    private static void names(Set found, StringBuilder out) {
        if (found == null) {
            out.append("null");
            return;
        }
        out.append("[");
        for (java.util.Iterator each = found.iterator(); each.hasNext();) {
            quote((String) each.next(), out);
            out.append(each.hasNext() ? "," : "");
        }
        out.append("]");
    }

    /** The lists of `spark/judged.py`; any other name is unknown. */
    public static class Judged {
        private final Set expressions;
        private final Set replaced;
        private final Set options;
        private final Set harmless;
        private final Set others;
        private final Set always;
        private final Set onlyWithFieldIds;
        private final Set harmlessExtensions;
        private final Set wholeTasks;
        private final Map decided = Collections.synchronizedMap(new HashMap());

        Judged(JsonNode lists) {
            expressions = texts(at(lists, "expressions"));
            replaced = texts(at(lists, "replaced"));
            options = texts(at(lists, "options"));
            harmless = texts(at(lists, "harmless"));
            others = texts(at(lists, "meaning"));
            others.addAll(texts(at(lists, "reading")));
            always = texts(at(lists, "always"));
            onlyWithFieldIds = texts(at(lists, "only_with_field_ids"));
            harmlessExtensions = texts(at(lists, "harmless_extensions"));
            wholeTasks = texts(at(lists, "whole_tasks"));
        }

        private static Set texts(JsonNode listed) {
            Set found = new HashSet();
            for (java.util.Iterator each = listed.iterator(); each.hasNext();) {
                found.add(((JsonNode) each.next()).asText());
            }
            return found;
        }

        /** Whether an operator looks at a task's rows together. */
        boolean seesWholeTasks(LogicalPlan plan) {
            return wholeTasks.contains(plan.getClass().getSimpleName());
        }

        boolean isHarmlessOption(String name) {
            String plain = name.toLowerCase(java.util.Locale.ROOT);
            return options.contains(plain) || longestFamily(options, plain) >= 0;
        }

        /** A whole name decides before families, a longer family before a shorter one; as in `spark/judged.py`. */
        private boolean isHarmless(String setting) {
            Boolean known = (Boolean) decided.get(setting);
            if (known == null) {
                known = Boolean.valueOf(!others.contains(setting) && (harmless.contains(setting)
                    || longestFamily(harmless, setting) > longestFamily(others, setting)));
                decided.put(setting, known);
            }
            return known.booleanValue();
        }

        private static int longestFamily(Set names, String name) {
            int longest = -1;
            for (java.util.Iterator each = names.iterator(); each.hasNext();) {
                String family = (String) each.next();
                int length = family.length() - 1;
                if (length > longest && family.endsWith("*") && name.startsWith(family.substring(0, length))) {
                    longest = length;
                }
            }
            return longest;
        }

        /** Some settings always, others where they are set to something else than their default. */
        String settings(SQLConf conf) {
            Map found = new TreeMap();
            Map set = CollectionConverters.asJava(conf.getAllConfs());
            for (java.util.Iterator each = set.entrySet().iterator(); each.hasNext();) {
                Map.Entry entry = (Map.Entry) each.next();
                String key = (String) entry.getKey();
                if (!isHarmless(key) && !onlyWithFieldIds.contains(key)) {
                    String value = (String) entry.getValue();
                    ConfigEntry registered = org.apache.spark.sql.internal.SQLConf$.MODULE$.getConfigEntry(key);
                    if (key.equals("spark.sql.extensions")) {
                        value = others(value);
                    }
                    if (value.length() > 0 && (registered == null || !registered.defaultValueString().equals(value))) {
                        found.put(key, value);
                    }
                }
            }
            for (java.util.Iterator each = always.iterator(); each.hasNext();) {
                String key = (String) each.next();
                found.put(key, conf.getConfString(key));
            }
            String[] version = org.apache.spark.package$.MODULE$.SPARK_VERSION().split("[.]");
            found.put("spark.version", version[0] + "." + version[1]);
            // Java's own part: version and language for letters, and the rules of zones whose clocks change.
            boolean isFixed = ZoneId.of(conf.sessionLocalTimeZone(), ZoneId.SHORT_IDS).getRules().isFixedOffset();
            found.put("java.version", System.getProperty("java.specification.version") + " "
                + java.util.Locale.getDefault().getLanguage()
                + (isFixed ? "" : " " + ZoneRulesProvider.getVersions("Europe/Berlin").lastEntry().getKey()));
            StringBuilder out = new StringBuilder("{");
            for (java.util.Iterator each = found.entrySet().iterator(); each.hasNext();) {
                Map.Entry entry = (Map.Entry) each.next();
                quote((String) entry.getKey(), out);
                out.append(":");
                quote((String) entry.getValue(), out);
                out.append(each.hasNext() ? "," : "");
            }
            return out.append("}").toString();
        }

        /** The session's extensions that may bring functions and rules of their own. */
        private String others(String extensions) {
            Set found = new java.util.TreeSet(java.util.Arrays.asList(extensions.split("[, ]+")));
            found.removeAll(harmlessExtensions);
            return String.join(",", found);
        }

        /** The class of an expression of Spark's own, as the lists name it; nothing for any other. */
        private static String nameOf(Expression e) {
            String name = e.getClass().getName();
            String home = "org.apache.spark.sql.catalyst.expressions.";
            return name.startsWith(home) ? name.substring(home.length()) : "";
        }

        /** Whether nothing in it, as it was analysed, asks for the clock, the session or anything but the row. */
        boolean isSteady(Expression e) {
            String name = nameOf(e);
            if (!expressions.contains(name) && !replaced.contains(name) || e instanceof Cast && readsClock((Cast) e)
                    || e instanceof RuntimeReplaceable && !isSteady(((RuntimeReplaceable) e).replacement())) {
                return false;
            }
            for (Iterator each = ((TreeNode) e).children().iterator(); each.hasNext();) {
                if (!isSteady((Expression) each.next())) {
                    return false;
                }
            }
            return true;
        }

        /** Whether its classes are all on the list, no text is compared by a collation, and equal trees mean the same. */
        boolean knows(Expression e) {
            if (!expressions.contains(nameOf(e)) || !e.deterministic()
                    || e.dataType().catalogString().indexOf("collate") >= 0 || e instanceof Literal && isZero((Literal) e)
                    || e instanceof Cast && showsNested((Cast) e) || e instanceof In && ((In) e).list().isEmpty()
                    || e instanceof InSet && ((InSet) e).hset().isEmpty()) {
                return false;
            }
            for (Iterator each = ((TreeNode) e).children().iterator(); each.hasNext();) {
                if (!knows((Expression) each.next())) {
                    return false;
                }
            }
            return true;
        }
    }

    /** Whether the literal is a zero, or a nested value that may contain one: -0.0 and 0.0 are equal in Scala. */
    static boolean isZero(Literal literal) {
        Object value = literal.value();
        return value instanceof Double && ((Double) value).doubleValue() == 0
            || value instanceof Float && ((Float) value).floatValue() == 0
            || !(value == null || value instanceof Number || value instanceof Boolean || value instanceof UTF8String
                || value instanceof Decimal || value instanceof byte[]);
    }

    /** Whether it casts an array, map or struct to text, which depends on a setting that is read at the cast. */
    static boolean showsNested(Cast cast) {
        return cast.dataType() instanceof StringType && (cast.child().dataType() instanceof ArrayType
            || cast.child().dataType() instanceof MapType || cast.child().dataType() instanceof StructType);
    }

    /** Whether the cast's value depends on the day: 'today' as a date, or a time without a date as a timestamp. */
    static boolean readsClock(Cast cast) {
        String to = cast.dataType().catalogString();
        String from = cast.child().dataType().catalogString();
        if (to.indexOf("timestamp") < 0 && to.indexOf("date") < 0 || NO_TEXT.matcher(from).matches()) {
            return false;
        }
        Object text = cast.child() instanceof Literal ? ((Literal) cast.child()).value() : "";
        if (text == null || text instanceof UTF8String && DATED.matcher(text.toString()).find()) {
            return false;
        }
        return !(to.equals("date") && from.equals("string") && !cast.child().foldable()); // a column's 'today' is no date
    }

    /** The folder `_hedgerow` of a managed table: its newest list, and whether other files may be read for its own. */
    public static class Side {
        final String list;
        final long time; // a table that is written anew starts with number 1 again
        final boolean hasMore;

        private Side(String list, long time, boolean hasMore) {
            this.list = list;
            this.time = time;
            this.hasMore = hasMore;
        }

        /** Null if the table is not managed; `kind` is the prefix of the lists' names. */
        static Side of(String root, String kind, HadoopFsRelation files) throws Exception {
            Path side = new Path(root, "_hedgerow");
            FileStatus[] found;
            try {
                found = side.getFileSystem(files.sparkSession().sparkContext().hadoopConfiguration()).listStatus(side);
            } catch (FileNotFoundException none) {
                return null;
            }
            FileStatus newest = null;
            long most = -1;
            boolean hasMore = false;
            for (int i = 0; i < found.length; i++) {
                String name = found[i].getPath().getName();
                hasMore |= name.equals("replicas") || name.equals("copies");
                if (name.startsWith(kind) && name.endsWith(".json")) {
                    String number = name.substring(kind.length(), name.length() - 5);
                    if (number.matches("[0-9]{1,18}") && Long.parseLong(number) > most) {
                        most = Long.parseLong(number);
                        newest = found[i];
                    }
                }
            }
            return newest == null
                ? null : new Side(newest.getPath().getName(), newest.getModificationTime(), hasMore);
        }
    }

    /** One scan of a managed table. */
    public static class Scan {
        final String root;
        final Side side;
        final LogicalRelation relation;
        final HadoopFsRelation files;
        final FileIndex location;
        final boolean isDelta;
        private final long start = System.nanoTime();

        Scan(String root, Side side, LogicalRelation relation, HadoopFsRelation files, FileIndex location, boolean isDelta) {
            this.root = root;
            this.side = side;
            this.relation = relation;
            this.files = files;
            this.location = location;
            this.isDelta = isDelta;
        }

        /** Counts files and bytes: of the table, opened after skipping `skip` (null: none), and listed by the scan. */
        long[][] listed(Skip skip) {
            long[] all = {0, 0};
            long[] opened = {0, 0};
            try {
                if (!isDelta) {
                    for (Iterator each = ((PartitioningAwareFileIndex) location).allFiles().iterator();
                            each.hasNext();) {
                        FileStatus file = (FileStatus) each.next();
                        count(all, file.getLen());
                        if (skip == null || !skip.has(file.getPath().getName(), file.getLen())) {
                            count(opened, file.getLen());
                        }
                    }
                    return new long[][] {all, opened, all};
                }
                Object scan = call(location, "preparedScan");
                Method path = null;
                Method size = null;
                for (Iterator each = ((Seq) call(scan, "files")).iterator(); each.hasNext();) {
                    Object file = each.next();
                    if (path == null) {
                        path = file.getClass().getMethod("path", new Class[0]);
                        size = file.getClass().getMethod("size", new Class[0]);
                    }
                    long bytes = ((Long) size.invoke(file, new Object[0])).longValue();
                    count(all, bytes);
                    if (skip == null || !skip.has((String) path.invoke(file, new Object[0]), bytes)) {
                        count(opened, bytes);
                    }
                }
                Option files = (Option) call(call(scan, "total"), "files");
                Option bytes = (Option) call(call(scan, "total"), "bytesCompressed");
                long[] total = {
                    files.isDefined() ? ((Long) files.get()).longValue() : all[0],
                    bytes.isDefined() ? ((Long) bytes.get()).longValue() : all[1]
                };
                return new long[][] {total, opened, all};
            } catch (Exception unknown) {
                return new long[][] {all, opened, all};
            }
        }

        /** Whether the scan lists exactly the indexed files: only then may other files be read instead. */
        boolean isWhole(Skip known) {
            if (isDelta) {
                return false;
            }
            Set found = new HashSet(); // a path may be given twice, and then its rows are read twice
            for (Iterator each = ((PartitioningAwareFileIndex) location).allFiles().iterator(); each.hasNext();) {
                FileStatus file = (FileStatus) each.next();
                if (!known.knows(file.getPath().getName(), file.getLen()) || !found.add(file.getPath())) {
                    return false;
                }
            }
            return found.size() == known.own();
        }

        /** Whether the index describes every file that the scan may read. */
        boolean isCovered(Skip known) throws Exception {
            if (!isDelta) {
                for (Iterator each = ((PartitioningAwareFileIndex) location).allFiles().iterator(); each.hasNext();) {
                    FileStatus file = (FileStatus) each.next();
                    if (!known.knows(file.getPath().getName(), file.getLen())) {
                        return false;
                    }
                }
                return true;
            }
            for (Iterator each = ((Seq) call(call(location, "preparedScan"), "files")).iterator(); each.hasNext();) {
                Object file = each.next();
                if (!known.knows((String) call(file, "path"), ((Long) call(file, "size")).longValue())) {
                    return false;
                }
            }
            return true;
        }

        private static void count(long[] files, long bytes) {
            files[0]++;
            files[1] += bytes;
        }

        /** The decision as JSON; `table` is null if the index was not used. */
        String told(String table, long[][] counts, String reason) {
            StringBuilder out = new StringBuilder("{\"table\":");
            quote(table == null ? root.substring(root.lastIndexOf('/') + 1) : table, out);
            out.append(",\"files\":").append(counts[0][0]).append(",\"files_opened\":").append(counts[1][0]);
            out.append(",\"bytes\":").append(counts[0][1]).append(",\"bytes_opened\":").append(counts[1][1]);
            out.append(",\"seconds\":").append((System.nanoTime() - start) / 1e9).append(",\"reason\":");
            if (reason == null) {
                out.append("null");
            } else {
                quote(reason, out);
            }
            return out.append("}").toString();
        }
    }

    /** A table's index in Python, under certain settings and for certain columns; or the reason why there is none. */
    public static class Known {
        final String key;
        final String reason;
        final String handle;
        final String name;
        final Skip skip;
        final Map items;
        final JsonNode joins; // the foreign keys whose rows the index describes
        final Map joinedItems = Collections.synchronizedMap(new HashMap());

        Known(String key, String reason) {
            this.key = key;
            this.reason = reason;
            this.handle = null;
            this.name = null;
            this.skip = Skip.none();
            this.items = new HashMap();
            this.joins = JSON.createArrayNode();
        }

        /** `items` maps an expression's tree to its number. */
        Known(String key, JsonNode answer, Map items) {
            this.key = key;
            this.reason = null;
            this.handle = at(answer, "handle").asText();
            this.name = at(answer, "name").asText();
            this.skip = Skip.of(at(answer, "files"));
            this.items = items;
            this.joins = at(answer, "joined");
        }
    }

    /** Marks every relation of files with the option that asks for this rule. */
    public static class Mark extends AbstractPartialFunction {
        boolean isUsed;

        public boolean isDefinedAt(Object node) {
            return node instanceof LogicalRelation
                && ((LogicalRelation) node).relation() instanceof HadoopFsRelation
                && !((HadoopFsRelation) ((LogicalRelation) node).relation()).options().contains(MARK);
        }

        public Object applyOrElse(Object node, scala.Function1 otherwise) {
            if (!isDefinedAt(node)) {
                return otherwise.apply(node);
            }
            isUsed = true;
            LogicalRelation relation = (LogicalRelation) node;
            HadoopFsRelation files = (HadoopFsRelation) relation.relation();
            scala.collection.immutable.Map options =
                (scala.collection.immutable.Map) files.options().updated(MARK, "true");
            HadoopFsRelation asked = files.copy(files.location(), files.partitionSchema(), files.dataSchema(),
                files.bucketSpec(), files.fileFormat(), options, files.sparkSession());
            LogicalRelation found = relation.copy(asked, relation.copy$default$2(), relation.copy$default$3(),
                relation.copy$default$4(), relation.copy$default$5());
            found.copyTagsFrom(relation);
            return found;
        }
    }

    /** Finds relations right below a filter, and those without one. */
    public static class Visit extends AbstractPartialFunction {
        private final Pruning rule;
        private final LogicalPlan root;
        private final List done = new ArrayList();
        private Project above;
        private Edges edges;
        private ByPlace byPlace;
        final List scans = new ArrayList();
        boolean sawFiles;

        Visit(Pruning rule, LogicalPlan root) {
            this.rule = rule;
            this.root = root;
        }

        Edges edges() {
            if (edges == null) {
                edges = new Edges(root);
            }
            return edges;
        }

        void note(String told) {
            sawFiles = true;
            scans.add(told);
        }

        /** Why the answer depends on the place of rows among those that are read, so that all have to be; null if it does not. */
        String byPlace() {
            if (byPlace == null) {
                ByPlace found = new ByPlace(rule.judged);
                root.transformDownWithSubqueries(found);
                byPlace = found; // not if that fails: then no scan is pruned
            }
            return byPlace.reason;
        }

        /** Whether the query reads the file name of a row: then a copy of the row would give another answer. */
        boolean asksForFiles() {
            AsksForFiles asked = new AsksForFiles();
            root.transformAllExpressionsWithSubqueries(asked);
            return asked.found;
        }

        /** The columns that the query reads of a relation; null: all. */
        Set columnsOf(LogicalRelation relation, Expression condition) {
            if (above == null || !(above.child() == relation || (above.child() instanceof Filter
                    && ((Filter) above.child()).child() == relation))) {
                return null;
            }
            Set found = new HashSet();
            for (Iterator each = above.references().$plus$plus(condition.references()).iterator(); each.hasNext();) {
                found.add(((AttributeReference) each.next()).name());
            }
            return found.size() < relation.output().size() ? found : null;
        }

        public boolean isDefinedAt(Object node) {
            return node instanceof LogicalRelation || node instanceof Project
                || (node instanceof Filter && ((Filter) node).child() instanceof LogicalRelation);
        }

        public Object applyOrElse(Object node, scala.Function1 otherwise) {
            if (!isDefinedAt(node)) {
                return otherwise.apply(node);
            }
            for (int i = 0; i < done.size(); i++) {
                if (done.get(i) == node) {
                    return node;
                }
            }
            if (node instanceof Project) {
                above = (Project) node; // parents come first
                return node;
            }
            Filter filter = node instanceof Filter ? (Filter) node : null;
            LogicalRelation relation = (LogicalRelation) (filter == null ? node : filter.child());
            LogicalPlan found = relation;
            try {
                found = rule.pruned(relation, filter == null ? null : filter.condition(), this);
            } catch (Exception error) {
                LOG.info("Hedgerow leaves a scan as it is: " + error);
            }
            finish(found);
            return found == relation ? node
                : filter == null || !(found instanceof LogicalRelation) ? (Object) found
                : new Filter(filter.condition(), found);
        }

        /** Relations that need not be looked at again on the way down. */
        private void finish(LogicalPlan found) {
            done.add(found);
            for (Iterator each = ((TreeNode) found).children().iterator(); each.hasNext();) {
                finish((LogicalPlan) each.next());
            }
        }
    }

    /**
     * The equi-joins of a query, as edges: rows of one relation can change the result only if their column equals a
     * column of some row of the other relation that its filter keeps. To leave out the rest is a semi-join, so any
     * number of edges may be used one after the other.
     */
    public static class Edges {
        private final Map byRelation = new java.util.IdentityHashMap(); // relation -> relation -> list of [mine, theirs]
        private final Map appearances = new HashMap(); // a relation's first column -> conditions right above it, or TRUE

        Edges(LogicalPlan root) {
            read(root);
        }

        private void read(LogicalPlan plan) {
            if (plan instanceof LogicalRelation) {
                appears((LogicalRelation) plan, Literal.TrueLiteral());
            } else if (plan instanceof Filter && ((Filter) plan).child() instanceof LogicalRelation) {
                appears((LogicalRelation) ((Filter) plan).child(), ((Filter) plan).condition());
                readSubqueries(plan);
                return;
            } else if (plan instanceof Join && ((Join) plan).condition().isDefined()) {
                read((Join) plan, (Expression) ((Join) plan).condition().get());
            }
            for (Iterator each = plan.children().iterator(); each.hasNext();) {
                read((LogicalPlan) each.next());
            }
            readSubqueries(plan);
        }

        private void readSubqueries(LogicalPlan plan) {
            for (Iterator each = plan.subqueries().iterator(); each.hasNext();) {
                read((LogicalPlan) each.next());
            }
        }

        private void appears(LogicalRelation relation, Expression condition) {
            List before = appearances(relation);
            if (before.isEmpty() && !relation.output().isEmpty()) {
                before = new ArrayList();
                appearances.put(first(relation), before);
            }
            if (!relation.output().isEmpty()) {
                before.add(condition);
            }
        }

        private List appearances(LogicalRelation relation) {
            List found = relation.output().isEmpty() ? null : (List) appearances.get(first(relation));
            return found == null ? Collections.EMPTY_LIST : found;
        }

        private static Object first(LogicalRelation relation) {
            return ((AttributeReference) relation.output().head()).exprId();
        }

        private void read(Join join, Expression condition) {
            if (condition instanceof And) {
                read(join, ((And) condition).left());
                read(join, ((And) condition).right());
            } else if (condition instanceof EqualTo && ((EqualTo) condition).left() instanceof AttributeReference
                    && ((EqualTo) condition).right() instanceof AttributeReference) {
                AttributeReference left = (AttributeReference) ((EqualTo) condition).left();
                AttributeReference right = (AttributeReference) ((EqualTo) condition).right();
                if (!join.left().outputSet().contains(left)) {
                    AttributeReference other = left;
                    left = right;
                    right = other;
                }
                if (!join.left().outputSet().contains(left) || !join.right().outputSet().contains(right)) {
                    return;
                }
                String kind = kind(join);
                if ("Inner Cross LeftSemi RightOuter".indexOf(kind) >= 0) {
                    add(join.left(), left, join.right(), right);
                }
                if ("Inner Cross LeftSemi LeftOuter LeftAnti".indexOf(kind) >= 0) {
                    add(join.right(), right, join.left(), left);
                }
            }
        }

        private static String kind(Join join) {
            return join.joinType().getClass().getSimpleName().replace("$", "");
        }

        /** Adds edges from the side whose rows may be left out. */
        private void add(LogicalPlan side, AttributeReference mine, LogicalPlan other, AttributeReference theirs) {
            List to = origins(other, theirs.exprId(), false);
            for (java.util.Iterator each = origins(side, mine.exprId(), true).iterator(); each.hasNext();) {
                Object[] from = (Object[]) each.next();
                if (to.size() == 1 && from[0] != ((Object[]) to.get(0))[0]) {
                    add(from, (Object[]) to.get(0));
                }
            }
        }

        private void add(Object[] from, Object[] to) {
            Map edges = (Map) byRelation.get(from[0]);
            if (edges == null) {
                edges = new java.util.IdentityHashMap();
                byRelation.put(from[0], edges);
            }
            List pairs = (List) edges.get(to[0]);
            if (pairs == null) {
                pairs = new ArrayList();
                edges.put(to[0], pairs);
            }
            pairs.add(new AttributeReference[] {(AttributeReference) from[1], (AttributeReference) to[1]});
        }

        /**
         * The relations and their columns that a plan's column comes from, several below a union; none if that is not
         * certain. `droppable`: to leave out a relation's rows with one value must do no more than to leave out the
         * plan's rows with this value. Otherwise each value of the column has to be that of a row of the relation.
         */
        private static List origins(LogicalPlan plan, ExprId id, boolean droppable) {
            if (plan instanceof LogicalRelation) {
                for (Iterator each = plan.output().iterator(); each.hasNext();) {
                    AttributeReference column = (AttributeReference) each.next();
                    if (column.exprId().equals(id) && isData(column)) {
                        return Collections.singletonList(new Object[] {plan, column});
                    }
                }
            } else if (plan instanceof Filter) {
                if (!droppable || ((Filter) plan).condition().deterministic()) {
                    return origins(((Filter) plan).child(), id, droppable);
                }
            } else if (plan instanceof Project) {
                ExprId inner = inner(((Project) plan).projectList(), id, droppable);
                if (inner != null) {
                    return origins(((Project) plan).child(), inner, droppable);
                }
            } else if (plan instanceof Aggregate) {
                Aggregate aggregate = (Aggregate) plan;
                ExprId inner = inner(aggregate.aggregateExpressions(), id, droppable);
                for (Iterator each = aggregate.groupingExpressions().iterator(); each.hasNext();) {
                    Object key = each.next();
                    if (key instanceof AttributeReference && ((AttributeReference) key).exprId().equals(inner)) {
                        return origins(aggregate.child(), inner, droppable);
                    }
                }
            } else if (plan instanceof Join) {
                Join join = (Join) plan;
                String kind = kind(join);
                if ((!droppable || "Inner Cross LeftSemi LeftAnti LeftOuter".indexOf(kind) >= 0) && has(join.left(), id)) {
                    return origins(join.left(), id, droppable);
                }
                if ((!droppable || "Inner Cross RightOuter".indexOf(kind) >= 0) && has(join.right(), id)) {
                    return origins(join.right(), id, droppable);
                }
            } else if (plan instanceof Union && droppable) {
                List found = new ArrayList();
                int place = place(plan.output(), id);
                for (Iterator each = plan.children().iterator(); place >= 0 && each.hasNext();) {
                    LogicalPlan child = (LogicalPlan) each.next();
                    found.addAll(origins(child, ((Attribute) child.output().apply(place)).exprId(), true));
                }
                return found;
            }
            return Collections.EMPTY_LIST;
        }

        /** The column below a list of expressions that has the value of the column `id` above it. */
        private static ExprId inner(Seq expressions, ExprId id, boolean droppable) {
            ExprId found = null;
            for (Iterator each = expressions.iterator(); each.hasNext();) {
                Expression e = (Expression) each.next();
                if (droppable && !e.deterministic()) {
                    return null;
                }
                if (e instanceof AttributeReference && ((AttributeReference) e).exprId().equals(id)) {
                    found = id;
                } else if (e instanceof Alias && ((Alias) e).exprId().equals(id)
                        && ((Alias) e).child() instanceof AttributeReference) {
                    found = ((AttributeReference) ((Alias) e).child()).exprId();
                }
            }
            return found;
        }

        private static boolean has(LogicalPlan plan, ExprId id) {
            return place(plan.output(), id) >= 0;
        }

        private static int place(Seq columns, ExprId id) {
            for (int i = 0; i < columns.size(); i++) {
                if (((Attribute) columns.apply(i)).exprId().equals(id)) {
                    return i;
                }
            }
            return -1;
        }

        boolean isFrom(LogicalRelation relation) {
            return !from(relation).isEmpty();
        }

        /** The relations that edges lead to, with the pairs of columns; of a relation that appears once in the plan. */
        Map from(LogicalRelation relation) {
            Map edges = (Map) byRelation.get(relation);
            return edges == null || appearances(relation).size() != 1 ? Collections.EMPTY_MAP : edges;
        }

        /** The relations that edges over all columns of a foreign key lead to. */
        List to(LogicalRelation relation, JsonNode key) {
            List found = new ArrayList();
            for (java.util.Iterator each = from(relation).entrySet().iterator(); each.hasNext();) {
                Map.Entry entry = (Map.Entry) each.next();
                JsonNode mine = at(key, "columns");
                boolean isWhole = true;
                for (int i = 0; i < mine.size(); i++) {
                    boolean has = false;
                    for (java.util.Iterator pairs = ((List) entry.getValue()).iterator(); pairs.hasNext();) {
                        AttributeReference[] pair = (AttributeReference[]) pairs.next();
                        has |= is(pair[0], at(mine, i), at(at(key, "types"), i))
                            && is(pair[1], at(at(key, "others"), i), at(at(key, "types"), i));
                    }
                    isWhole &= has;
                }
                if (isWhole) {
                    found.add(entry.getKey());
                }
            }
            return found;
        }

        /** Whether the query sees a key's column under its name and with its type: the type says which keys are equal. */
        private static boolean is(AttributeReference seen, JsonNode name, JsonNode type) {
            boolean same = SQLConf.get().caseSensitiveAnalysis() ? seen.name().equals(name.asText())
                : seen.name().equalsIgnoreCase(name.asText());
            return same && seen.dataType().catalogString().equals(type.asText());
        }

        /**
         * What holds on all rows of a relation that are asked for, wherever it appears: Spark repeats a relation in a
         * subquery that makes a Bloom filter of it.
         */
        Expression condition(LogicalRelation relation) {
            List conditions = appearances(relation);
            Expression found = null;
            List parts = conditions.isEmpty() ? Collections.EMPTY_LIST : conjuncts((Expression) conditions.get(0));
            for (java.util.Iterator each = parts.iterator(); each.hasNext();) {
                Expression part = (Expression) each.next();
                boolean isCommon = true;
                for (int i = 1; i < conditions.size(); i++) {
                    boolean has = false;
                    for (java.util.Iterator other = conjuncts((Expression) conditions.get(i)).iterator(); other.hasNext();) {
                        has |= part.semanticEquals((Expression) other.next());
                    }
                    isCommon &= has;
                }
                if (isCommon) {
                    found = found == null ? part : new And(found, part);
                }
            }
            return found;
        }

        private static List conjuncts(Expression condition) {
            List found = new ArrayList();
            if (condition instanceof And) {
                found.addAll(conjuncts(((And) condition).left()));
                found.addAll(conjuncts(((And) condition).right()));
            } else {
                found.add(condition);
            }
            return found;
        }
    }

    /**
     * Finds what gives a row another value, or keeps another row, if fewer files are read: rand(3) counts the rows of
     * a task, and which rows a task gets depends on all files. Changes nothing.
     */
    public static class ByPlace extends AbstractPartialFunction {
        private final Judged judged;
        String reason;

        ByPlace(Judged judged) {
            this.judged = judged;
        }

        public boolean isDefinedAt(Object node) {
            LogicalPlan plan = (LogicalPlan) node;
            if (judged.seesWholeTasks(plan)) {
                reason = "the answer of " + plan.nodeName() + " depends on which rows are read together";
            }
            Iterator each = plan.expressions().iterator();
            while (reason == null && each.hasNext() && !(plan instanceof LogicalRelation)) {
                Expression e = (Expression) ((Expression) each.next()).transform(new PlaceInFile());
                if (!e.deterministic()) {
                    reason = "the value of " + source(e) + " depends on which rows are read together";
                }
            }
            return false;
        }

        public Object applyOrElse(Object node, scala.Function1 otherwise) {
            isDefinedAt(node);
            return otherwise.apply(node);
        }

        /** The text of the innermost expression that is not deterministic. */
        private static String source(Expression e) {
            for (Iterator each = ((TreeNode) e).children().iterator(); each.hasNext();) {
                Expression child = (Expression) each.next();
                if (!child.deterministic()) {
                    return source(child);
                }
            }
            return e.sql();
        }
    }

    /**
     * Puts constants in place of what tells a row's file, which no other file changes, and a value that is not
     * deterministic in place of `_metadata.file_block_start`: how Spark splits files depends on the size of all.
     */
    public static class PlaceInFile extends AbstractPartialFunction {
        public boolean isDefinedAt(Object node) {
            return node instanceof InputFileName || isMetadata(node)
                || node instanceof GetStructField && isMetadata(((GetStructField) node).child());
        }

        public Object applyOrElse(Object node, scala.Function1 otherwise) {
            if (!isDefinedAt(node)) {
                return otherwise.apply(node);
            }
            boolean isField = node instanceof GetStructField
                && !((GetStructField) node).extractFieldName().startsWith("file_block_");
            return isField || node instanceof InputFileName ? Literal.TrueLiteral() : (Object) new InputFileBlockStart();
        }

        private static boolean isMetadata(Object node) {
            return node instanceof AttributeReference && !isData((AttributeReference) node)
                && ((AttributeReference) node).dataType().catalogString().indexOf("file_block_") >= 0;
        }
    }

    /** Finds input_file_name() and the like; changes nothing. */
    public static class AsksForFiles extends AbstractPartialFunction {
        boolean found;

        public boolean isDefinedAt(Object node) {
            found |= node.getClass().getSimpleName().startsWith("InputFile");
            return false;
        }

        public Object applyOrElse(Object node, scala.Function1 otherwise) {
            isDefinedAt(node);
            return otherwise.apply(node);
        }
    }

    /** Removes from trees the parts that differ between queries: numbers of columns and variables, case of fields. */
    public static class Normal extends AbstractPartialFunction {
        static final ExprId NOBODY = new ExprId(0L, new UUID(0L, 0L));
        private final Map names = new HashMap();

        /** Gives columns the relation's names for them: a query may spell them in another case. */
        Normal(LogicalRelation relation) {
            for (Iterator each = relation.output().iterator(); each.hasNext();) {
                AttributeReference column = (AttributeReference) each.next();
                if (isData(column)) {
                    names.put(column.exprId(), column.name());
                }
            }
        }

        public boolean isDefinedAt(Object node) {
            return (node instanceof AttributeReference && names.containsKey(((AttributeReference) node).exprId()))
                || node instanceof GetStructField || node instanceof NamedLambdaVariable;
        }

        public Object applyOrElse(Object node, scala.Function1 otherwise) {
            if (!isDefinedAt(node)) {
                return otherwise.apply(node);
            }
            if (node instanceof GetStructField) {
                GetStructField field = (GetStructField) node;
                return new GetStructField(field.child(), field.ordinal(), Option.empty());
            }
            if (node instanceof NamedLambdaVariable) {
                NamedLambdaVariable variable = (NamedLambdaVariable) node;
                return new NamedLambdaVariable(variable.name(), variable.dataType(), true, NOBODY, null);
            }
            AttributeReference column = (AttributeReference) node;
            String name = (String) names.get(column.exprId());
            return new AttributeReference(name, column.dataType(), true, Metadata.empty(), NOBODY,
                CollectionConverters.asScala(new ArrayList()).toSeq());
        }
    }

    /**
     * Writes a condition as JSON: connectives, comparisons of columns and indexed expressions with literals of the same
     * type in Spark's internal form, and indexed conditions. Any other part is unknown.
     */
    public static class Condition {
        private final StringBuilder out;
        private final Map items;

        Condition(StringBuilder out, Map items) {
            this.out = out;
            this.items = items;
        }

        void write(Expression e) {
            if (e == null) {
                out.append("null");
                return;
            }
            int before = out.length();
            Object item = e.dataType() instanceof BooleanType ? items.get(e) : null;
            if (item != null) { // the indexed condition itself, and its parts
                out.append("[\"and\",[\"item\",").append(item).append("],");
                if (plain(e)) {
                    out.append("]");
                } else {
                    out.setLength(before);
                    out.append("[\"item\",").append(item).append("]");
                }
            } else if (!plain(e)) {
                out.setLength(before);
                out.append("[\"?\"]");
            }
        }

        private boolean plain(Expression e) {
            if (e instanceof And || e instanceof Or || e instanceof Not) {
                out.append(e instanceof And ? "[\"and\"" : e instanceof Or ? "[\"or\"" : "[\"not\"");
                for (Iterator each = ((TreeNode) e).children().iterator(); each.hasNext();) {
                    out.append(",");
                    write((Expression) each.next());
                }
                out.append("]");
                return true;
            }
            if (e instanceof IsNull || e instanceof IsNotNull) {
                Expression child = (Expression) ((TreeNode) e).children().head();
                out.append(e instanceof IsNull ? "[\"null\"," : "[\"not null\",");
                return term(child) && close();
            }
            if (e instanceof In || e instanceof InSet) {
                return listed(e);
            }
            String word = word(e);
            if (word != null) {
                Expression left = (Expression) ((TreeNode) e).children().apply(0);
                Expression right = (Expression) ((TreeNode) e).children().apply(1);
                if (!left.dataType().equals(right.dataType())) {
                    return false;
                }
                if (day(word, left, right) || day(flipped(word), right, left)) {
                    return true;
                }
                out.append("[\"").append(word).append("\",");
                return side(left) && comma() && side(right) && close();
            }
            if (e instanceof Literal && e.dataType() instanceof BooleanType) {
                out.append("[\"const\",").append(((Literal) e).value()).append("]");
                return true;
            }
            if (e.dataType() instanceof BooleanType && (e instanceof AttributeReference || e instanceof GetStructField)) {
                out.append("[\"is\",");
                return term(e) && close();
            }
            return false;
        }

        private boolean listed(Expression e) {
            Expression value = (Expression) ((TreeNode) e).children().head();
            out.append("[\"in\",");
            boolean isEmpty = e instanceof In ? ((In) e).list().isEmpty() : ((InSet) e).hset().isEmpty();
            if (isEmpty || !term(value)) { // of NULL, Spark finds that it is not in an empty list
                return false;
            }
            Iterator each = e instanceof In ? ((In) e).list().iterator() : ((InSet) e).hset().iterator();
            while (each.hasNext()) {
                Object one = each.next();
                if (e instanceof In) {
                    if (!(one instanceof Literal) || !((Literal) one).dataType().equals(value.dataType())) {
                        return false;
                    }
                    one = ((Literal) one).value();
                }
                out.append(",");
                if (!value(one, value.dataType())) {
                    return false;
                }
            }
            return close();
        }

        private static String word(Expression e) {
            return e instanceof EqualTo ? "=" : e instanceof EqualNullSafe ? "<=>" : e instanceof LessThan ? "<"
                : e instanceof LessThanOrEqual ? "<=" : e instanceof GreaterThan ? ">"
                : e instanceof GreaterThanOrEqual ? ">=" : e instanceof StartsWith ? "starts"
                : e instanceof EndsWith ? "ends" : e instanceof Contains ? "contains"
                : e instanceof Like && ((Like) e).escapeChar() == '\\' ? "like" : null;
        }

        private static String flipped(String word) {
            return word.equals("<") ? ">" : word.equals("<=") ? ">=" : word.equals(">") ? "<"
                : word.equals(">=") ? "<=" : word;
        }

        private boolean close() {
            out.append("]");
            return true;
        }

        private boolean comma() {
            out.append(",");
            return true;
        }

        private boolean side(Expression e) {
            return e instanceof Literal ? value(((Literal) e).value(), e.dataType()) : term(e);
        }

        /**
         * Writes {"col": [names], "type": "int"}, the whole path of a data column, or {"item": number, "type": "int"},
         * an expression of the index. A number that is cast to a wider type also has this type, as "cast".
         */
        private boolean term(Expression e) {
            Object item = e instanceof AttributeReference || e instanceof GetStructField ? null : items.get(e);
            if (item != null) {
                out.append("{\"item\":").append(item).append(",\"type\":");
                quote(e.dataType().catalogString(), out);
                out.append("}");
                return true;
            }
            Expression at = e;
            if (e instanceof Cast) {
                at = ((Cast) e).child();
                if (!(at.dataType() instanceof NumericType && e.dataType() instanceof NumericType)
                        || !(Cast.canUpCast(at.dataType(), e.dataType()) || e.dataType() instanceof DoubleType)) {
                    return false;
                }
            }
            DataType type = at.dataType();
            List path = new ArrayList();
            while (at instanceof GetStructField) {
                GetStructField field = (GetStructField) at;
                path.add(0, field.childSchema().fields()[field.ordinal()].name());
                at = field.child();
            }
            if (!(at instanceof AttributeReference) || !((AttributeReference) at).exprId().equals(Normal.NOBODY)) {
                return false; // not a column of the relation
            }
            path.add(0, ((AttributeReference) at).name());
            out.append("{\"col\":[");
            for (int i = 0; i < path.size(); i++) {
                out.append(i > 0 ? "," : "");
                quote((String) path.get(i), out);
            }
            out.append("],\"type\":");
            quote(type.catalogString(), out);
            if (e instanceof Cast) {
                out.append(",\"cast\":");
                quote(e.dataType().catalogString(), out);
            }
            out.append("}");
            return true;
        }

        /** Writes a comparison of a timestamp's date as one of timestamps; false near a change of the zone's clock. */
        private boolean day(String word, Expression left, Expression right) {
            if (!(left instanceof Cast && left.dataType() instanceof DateType && right instanceof Literal)
                    || ((Literal) right).value() == null || word.equals("<=>")) {
                return false;
            }
            Expression column = ((Cast) left).child();
            boolean isLocal = column.dataType() instanceof TimestampNTZType;
            if (!isLocal && !(column.dataType() instanceof TimestampType) || items.containsKey(left)) {
                return false;
            }
            long days = ((Integer) ((Literal) right).value()).longValue();
            if (days < -60000 || days > 200000) { // about the years 1806 to 2517
                return false;
            }
            long start = days * 86400L;
            long end = start + 86400L;
            if (!isLocal) {
                ZoneId zone = ((Cast) left).zoneId();
                ZoneOffsetTransition next = zone.getRules().nextTransition(Instant.ofEpochSecond(start - 3 * 86400L));
                if (next != null && next.getInstant().getEpochSecond() < end + 3 * 86400L) {
                    return false;
                }
                start = LocalDate.ofEpochDay(days).atStartOfDay(zone).toEpochSecond();
                end = LocalDate.ofEpochDay(days + 1).atStartOfDay(zone).toEpochSecond();
            }
            int before = out.length();
            boolean written;
            if (word.equals("=")) {
                out.append("[\"and\",");
                written = against(column, ">=", start) && comma() && against(column, "<", end) && close();
            } else {
                boolean isAtEnd = word.equals("<=") || word.equals(">");
                String bound = word.startsWith("<") ? "<" : ">=";
                written = against(column, bound, isAtEnd ? end : start);
            }
            if (!written) {
                out.setLength(before);
            }
            return written;
        }

        private boolean against(Expression column, String word, long seconds) {
            out.append("[\"").append(word).append("\",");
            return term(column) && comma() && value(Long.valueOf(seconds * 1000000L), column.dataType()) && close();
        }

        /** Writes {"lit": "text", "type": "int"}: Spark's internal form of the value, the same in every session. */
        private boolean value(Object value, DataType type) {
            String text;
            if (value == null) {
                return false;
            } else if (value instanceof UTF8String) {
                text = value.toString();
                if (!UTF8String.fromString(text).equals(value) || !type.catalogString().equals("string")) {
                    return false; // not valid UTF-8, or not compared byte by byte
                }
            } else if (value instanceof Float) {
                text = Double.toString(((Float) value).doubleValue());
            } else if (value instanceof Decimal) {
                text = ((Decimal) value).toJavaBigDecimal().toPlainString();
            } else if (value instanceof byte[]) {
                byte[] bytes = (byte[]) value;
                StringBuilder hex = new StringBuilder();
                for (int i = 0; i < bytes.length; i++) {
                    hex.append(Character.forDigit((bytes[i] >> 4) & 15, 16)).append(Character.forDigit(bytes[i] & 15, 16));
                }
                text = hex.toString();
            } else if (value instanceof Number || value instanceof Boolean) {
                text = value.toString();
            } else {
                return false;
            }
            out.append("{\"lit\":");
            quote(text, out);
            out.append(",\"type\":");
            quote(type.catalogString(), out);
            out.append("}");
            return true;
        }
    }

    /** A list of files that this rule has made. */
    public interface Decided {
        String told();
    }

    /** The files to skip: those of a list with a 0 at their place. All lie below one folder, so names suffice. */
    public static class Skip {
        private final Map places;
        private final long[] sizes;
        private final int own;
        private final String bits;

        private Skip(Map places, long[] sizes, int own, String bits) {
            this.places = places;
            this.sizes = sizes;
            this.own = own;
            this.bits = bits;
        }

        static Skip none() {
            return new Skip(new HashMap(), new long[0], 0, "");
        }

        /** An empty choice; `files` are names and sizes. */
        static Skip of(JsonNode files) {
            Map places = new HashMap();
            long[] sizes = new long[files.size()];
            int own = 0;
            for (int i = 0; i < sizes.length; i++) {
                String name = at(at(files, i), 0).asText();
                places.put(name, Integer.valueOf(i));
                sizes[i] = at(at(files, i), 1).asLong();
                own += name.startsWith("_hedgerow/") ? 0 : 1;
            }
            return new Skip(places, sizes, own, "");
        }

        /** Skips nothing if the number of bits differs from the number of files. */
        Skip where(String bits) {
            return new Skip(places, sizes, own, bits.length() == sizes.length ? bits : "");
        }

        /** The number of files that plain readers see. */
        int own() {
            return own;
        }

        /** Whether the index has this file; a file with another size is a different file. */
        boolean knows(String name, long bytes) {
            Object found = places.get(name);
            return found != null && sizes[((Integer) found).intValue()] == bytes;
        }

        boolean has(String name, long bytes) {
            return bits.length() > 0 && knows(name, bytes)
                && bits.charAt(((Integer) places.get(name)).intValue()) == '0';
        }

        public boolean equals(Object other) {
            return other instanceof Skip && ((Skip) other).bits.equals(bits) && ((Skip) other).places.equals(places)
                && java.util.Arrays.equals(((Skip) other).sizes, sizes);
        }

        public int hashCode() {
            return bits.hashCode();
        }

        public String toString() {
            int files = 0;
            for (int i = 0; i < bits.length(); i++) {
                files += '1' - bits.charAt(i);
            }
            return files + " files";
        }
    }

    /** A list of files that replaces Spark's; equal to another that lists the same, so that equal scans are shared. */
    public abstract static class OwnIndex implements FileIndex, Decided {
        final FileIndex base;
        private final Object choice;
        private final long bytes;
        private final String told;

        OwnIndex(FileIndex base, Object choice, long bytes, String told) {
            this.base = base;
            this.choice = choice;
            this.bytes = bytes;
            this.told = told;
        }

        public String told() {
            return told;
        }

        public String[] inputFiles() {
            List found = new ArrayList();
            Seq none = CollectionConverters.asScala(new ArrayList()).toSeq();
            for (Iterator each = listFiles(none, none).iterator(); each.hasNext();) {
                for (Iterator files = ((PartitionDirectory) each.next()).files().iterator(); files.hasNext();) {
                    found.add(SparkPath.fromPath(((FileStatusWithMetadata) files.next()).getPath()).urlEncoded());
                }
            }
            return (String[]) found.toArray(new String[0]);
        }

        public Seq rootPaths() {
            return base.rootPaths();
        }

        public void refresh() {
            base.refresh();
        }

        public long sizeInBytes() {
            return bytes;
        }

        public StructType partitionSchema() {
            return base.partitionSchema();
        }

        public Option metadataOpsTimeNs() {
            return base.metadataOpsTimeNs();
        }

        public boolean equals(Object other) {
            return other != null && other.getClass() == getClass() && ((OwnIndex) other).base.equals(base)
                && ((OwnIndex) other).choice.equals(choice);
        }

        public int hashCode() {
            return 31 * base.hashCode() + choice.hashCode();
        }
    }

    /** Spark's list of files without the skipped ones. */
    public static class PrunedIndex extends OwnIndex {
        private final Skip skip;

        PrunedIndex(FileIndex base, Skip skip, long bytes, String told) {
            super(base, skip, bytes, told);
            this.skip = skip;
        }

        public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
            List found = new ArrayList();
            for (Iterator each = base.listFiles(partitionFilters, dataFilters).iterator(); each.hasNext();) {
                PartitionDirectory directory = (PartitionDirectory) each.next();
                List kept = new ArrayList();
                for (Iterator files = directory.files().iterator(); files.hasNext();) {
                    FileStatusWithMetadata file = (FileStatusWithMetadata) files.next();
                    if (!skip.has(file.getPath().getName(), file.getLen())) {
                        kept.add(file);
                    }
                }
                found.add(new PartitionDirectory(directory.values(), CollectionConverters.asScala(kept).toSeq()));
            }
            return CollectionConverters.asScala(found).toSeq();
        }

        public String toString() {
            return "Hedgerow(" + base + " without " + skip + ")";
        }
    }

    /** A list of other files that hold the rows that a query needs. */
    public static class OtherFiles extends OwnIndex {
        private final List files;

        OtherFiles(FileIndex base, List files, long bytes, String told) {
            super(base, files, bytes, told);
            this.files = files;
        }

        public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
            List found = new ArrayList();
            for (int i = 0; i < files.size(); i++) {
                found.add(new FileStatusWithMetadata((FileStatus) files.get(i),
                    (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty()));
            }
            List one = new ArrayList();
            one.add(new PartitionDirectory(InternalRow.empty(), CollectionConverters.asScala(found).toSeq()));
            return CollectionConverters.asScala(one).toSeq();
        }

        public String toString() {
            return "Hedgerow(" + files.size() + " other files with the rows of " + base + ")";
        }
    }

    // --- the log of queries ---

    /** Notes what a session's queries read of some tables. Spark calls it after each query, on a thread of its own. */
    public static class Heard extends SparkListener {
        static final int MAX_WAITING = 100000; // queries that nobody has taken yet
        private final List roots = new ArrayList();
        private final ArrayDeque waiting = new ArrayDeque();
        private final Set ours = new HashSet(); // queries that Hedgerow runs itself
        private final Object session;
        private final String tag;
        private long lost;

        /** `tag` marks the jobs of Hedgerow's own queries. */
        public Heard(Object session, String tag) {
            this.session = session;
            this.tag = tag;
        }

        /** From now on, scans of files below this folder are noted. */
        public synchronized void watch(String root) {
            roots.add(root);
        }

        public synchronized void forget(String root) {
            roots.remove(root);
        }

        /** Takes out the oldest notes, each as JSON; the first number says how many were lost. */
        public synchronized String taken(int most) {
            StringBuilder out = new StringBuilder("[").append(lost);
            lost = 0;
            for (int i = 0; i < most && !waiting.isEmpty(); i++) {
                out.append(",").append((String) waiting.poll());
            }
            return out.append("]").toString();
        }

        public void onOtherEvent(SparkListenerEvent event) {
            if (event instanceof SparkListenerSQLExecutionStart) {
                SparkListenerSQLExecutionStart start = (SparkListenerSQLExecutionStart) event;
                if (start.jobTags().contains(tag)) {
                    ours.add(Long.valueOf(start.executionId()));
                }
            } else if (event instanceof SparkListenerSQLExecutionEnd) {
                SparkListenerSQLExecutionEnd end = (SparkListenerSQLExecutionEnd) event;
                boolean isOurs = ours.remove(Long.valueOf(end.executionId()));
                QueryExecution query = end.qe();
                if (!isOurs && query != null && query.sparkSession() == session && !end.executionFailure().isDefined()) {
                    note(query, end.duration());
                }
            }
        }

        private void note(QueryExecution query, long nanos) {
            try {
                Map scans = new LinkedHashMap();
                find(query.executedPlan(), null, scans);
                if (!scans.isEmpty()) {
                    keep("{\"at\":" + (System.currentTimeMillis() - nanos / 1000000) + ",\"seconds\":" + nanos / 1e9
                        + ",\"scans\":[" + String.join(",", (Iterable) scans.values()) + "]}");
                }
            } catch (Exception error) {
                LOG.info("Hedgerow does not log a query: " + error);
            } catch (LinkageError error) {
                LOG.info("Hedgerow does not log a query: " + error);
            }
        }

        private synchronized void keep(String text) {
            if (waiting.size() == MAX_WAITING) {
                lost++;
            } else {
                waiting.add(text);
            }
        }

        private synchronized String[] watched() {
            return (String[]) roots.toArray(new String[0]);
        }

        /** `filter`: the filter above the plan, if nothing stands between that changes the number of rows. */
        private void find(SparkPlan plan, FilterExec filter, Map scans) throws Exception {
            if (plan instanceof AdaptiveSparkPlanExec) {
                find(((AdaptiveSparkPlanExec) plan).executedPlan(), null, scans);
                // Spark has replaced parts of the plan that turned out to have no rows.
                find(((AdaptiveSparkPlanExec) plan).initialPlan(), null, scans);
            } else if (plan instanceof QueryStageExec) {
                find(((QueryStageExec) plan).plan(), null, scans);
            } else if (plan instanceof FileSourceScanExec) {
                add((FileSourceScanExec) plan, filter, scans);
            }
            boolean keeps = plan instanceof ProjectExec || plan instanceof WholeStageCodegenExec
                || plan instanceof InputAdapter || plan instanceof ColumnarToRowExec;
            FilterExec above = plan instanceof FilterExec ? (FilterExec) plan : keeps ? filter : null;
            for (Iterator each = plan.children().iterator(); each.hasNext();) {
                find((SparkPlan) each.next(), above, scans);
            }
            for (Iterator each = plan.subqueries().iterator(); each.hasNext();) {
                find((SparkPlan) each.next(), null, scans);
            }
        }

        private void add(FileSourceScanExec scan, FilterExec filter, Map scans) {
            String root = rootOf(scan.relation().location());
            if (root == null) {
                return;
            }
            Set columns = new TreeSet();
            for (Iterator each = scan.output().iterator(); each.hasNext();) {
                AttributeReference column = (AttributeReference) each.next();
                if (isData(column)) {
                    columns.add(column.name());
                }
            }
            List conditions = new ArrayList();
            collect(scan.partitionFilters(), conditions);
            collect(scan.dataFilters(), conditions);
            Set used = new HashSet(); // columns of conditions that are not TRUE on NULL anyway
            for (int i = 0; i < conditions.size(); i++) {
                Expression condition = (Expression) conditions.get(i);
                for (Iterator each = condition.references().iterator(); each.hasNext();) {
                    Attribute column = (Attribute) each.next();
                    columns.add(column.name());
                    if (!(condition instanceof IsNotNull)) {
                        used.add(column.exprId());
                    }
                }
            }
            StringBuilder out = new StringBuilder("{\"root\":");
            quote(root, out);
            out.append(",\"where\":[");
            String comma = "";
            for (int i = 0; i < conditions.size(); i++) {
                Expression condition = (Expression) conditions.get(i);
                if (condition instanceof IsNotNull && ((IsNotNull) condition).child() instanceof Attribute
                        && used.contains(((Attribute) ((IsNotNull) condition).child()).exprId())) {
                    continue; // Spark adds these by itself
                }
                out.append(comma);
                quote(((Expression) condition.transform(new Written())).sql(), out);
                comma = ",";
            }
            out.append("],\"columns\":");
            names(columns, out);
            String asked = out.toString();
            long rows = metric(scan, "numOutputRows");
            out.append(",\"files\":").append(metric(scan, "numFiles"));
            out.append(",\"bytes\":").append(metric(scan, "filesSize")).append(",\"rows\":").append(rows);
            out.append(",\"kept\":").append(filter == null ? rows : metric(filter, "numOutputRows"));
            scans.putIfAbsent(asked, out.append("}").toString());
        }

        private static void collect(Seq filters, List found) {
            for (Iterator each = filters.iterator(); each.hasNext();) {
                Expression filter = (Expression) each.next();
                HasSubquery has = new HasSubquery();
                filter.transform(has);
                if (!has.found && filter.deterministic()) {
                    found.add(filter);
                }
            }
        }

        /** The watched folder in which the files lie, the deepest; null if there is none, or they are no rows of it. */
        private String rootOf(FileIndex location) {
            String[] known = watched();
            String found = null;
            for (Iterator each = location.rootPaths().iterator(); each.hasNext();) {
                String path = each.next().toString() + "/";
                for (int i = 0; i < known.length; i++) {
                    boolean isBelow = path.startsWith(known[i] + "/");
                    if (isBelow && (path.startsWith(known[i] + "/_hedgerow/") || path.startsWith(known[i] + "/_delta_log/"))) {
                        return null;
                    }
                    if (isBelow && (found == null || found.length() < known[i].length())) {
                        found = known[i];
                    }
                }
            }
            return found;
        }

        private static long metric(SparkPlan plan, String name) {
            Option found = plan.metrics().get(name);
            Long value = found.isDefined() ? (Long) ((AccumulatorV2) found.get()).value() : null;
            return value == null ? 0L : Math.max(0L, value.longValue());
        }
    }

    /** Finds conditions that only the running query knows; changes nothing. */
    public static class HasSubquery extends AbstractPartialFunction {
        boolean found;

        public boolean isDefinedAt(Object node) {
            found |= node instanceof PlanExpression || node.getClass().getSimpleName().startsWith("DynamicPruning");
            return false;
        }

        public Object applyOrElse(Object node, scala.Function1 otherwise) {
            isDefinedAt(node);
            return otherwise.apply(node);
        }
    }

    /** Writes conditions as users do: columns without their table, and LIKE instead of what Spark makes of it. */
    public static class Written extends AbstractPartialFunction {
        public boolean isDefinedAt(Object node) {
            return node instanceof AttributeReference || pattern(node) != null;
        }

        public Object applyOrElse(Object node, scala.Function1 otherwise) {
            if (node instanceof AttributeReference) {
                return ((AttributeReference) node).withQualifier(CollectionConverters.asScala(new ArrayList()).toSeq());
            }
            String pattern = pattern(node);
            return pattern == null ? otherwise.apply(node) : new Like(
                (Expression) ((BinaryExpression) node).left(),
                new Literal(UTF8String.fromString(pattern), DataTypes.StringType), '\\');
        }

        private static String pattern(Object node) {
            boolean isOpenLeft = node instanceof Contains || node instanceof EndsWith;
            boolean isOpenRight = node instanceof Contains || node instanceof StartsWith;
            if (!isOpenLeft && !isOpenRight) {
                return null;
            }
            Object word = ((BinaryExpression) node).right();
            if (!(word instanceof Literal) || !(((Literal) word).value() instanceof UTF8String)) {
                return null;
            }
            String text = ((Literal) word).value().toString().replaceAll("([\\\\%_])", "\\\\$1");
            return (isOpenLeft ? "%" : "") + text + (isOpenRight ? "%" : "");
        }
    }

    // --- Delta begins: removed, with the imports above, where Delta is absent ---

    /**
     * Delta's list without the skipped files. Delta still chooses by partitions, and again if other filters reach the
     * scan, as with deletion vectors. Delta compares lists by their scans, so the scan inside is shortened too.
     */
    public static class PrunedDelta extends PreparedDeltaFileIndex implements Decided {
        private final Skip skip;
        private final String told;

        public static FileIndex of(FileIndex prepared, Skip skip, long bytes, String told) {
            return new PrunedDelta((PreparedDeltaFileIndex) prepared, skip, bytes, told);
        }

        PrunedDelta(PreparedDeltaFileIndex base, Skip skip, long bytes, String told) {
            super(base.spark(), base.deltaLog(), base.path(), base.catalogTableOpt(),
                shorter(base.preparedScan(), skip, bytes), base.versionScanned());
            this.skip = skip;
            this.told = told;
        }

        private static DeltaScan shorter(DeltaScan scan, Skip skip, long bytes) {
            Seq files = kept(scan.files(), skip);
            Option none = Option.empty();
            DataSize scanned = new DataSize(
                Option.apply(Long.valueOf(bytes)), none, Option.apply(Long.valueOf(files.size())), none);
            return new DeltaScan(scan.version(), files, scan.total(), scan.partition(), scanned,
                scan.scannedSnapshot(), scan.partitionFilters(), scan.dataFilters(), scan.partitionLikeDataFilters(),
                scan.rewrittenPartitionLikeDataFilters(), scan.unusedFilters(), scan.scanDurationMs(),
                scan.dataSkippingType());
        }

        public String told() {
            return told;
        }

        public Seq matchingFiles(Seq partitionFilters, Seq dataFilters) {
            return kept(super.matchingFiles(partitionFilters, dataFilters), skip);
        }

        private static Seq kept(Seq files, Skip skip) {
            List found = new ArrayList();
            for (Iterator each = files.iterator(); each.hasNext();) {
                AddFile file = (AddFile) each.next();
                if (!skip.has(file.path(), file.size())) {
                    found.add(file);
                }
            }
            return CollectionConverters.asScala(found).toSeq();
        }

        public boolean equals(Object other) {
            return other instanceof PrunedDelta && super.equals(other) && ((PrunedDelta) other).skip.equals(skip);
        }

        public int hashCode() {
            return super.hashCode();
        }
    }

    // --- Delta ends ---
}
