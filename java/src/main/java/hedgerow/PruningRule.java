package hedgerow;

import java.io.IOException;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.V1WriteCommand;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetScan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The optimizer rule that makes queries skip files.
 *
 * <pre>
 *     Filter(condition)                               Filter(condition)
 *       Relation(files listed by Spark or Delta)  ->    Relation(the same list without the files to skip)
 * </pre>
 *
 * Spark has parsed the query; the rule only reads the plan. It sends the condition to Python, which answers with the
 * files to open (`tables/answers.py`). All other indexed files are left out, by name and size. If anything is unknown
 * or fails, all files stay in place, and the reason is reported.
 */
public final class PruningRule extends Rule<LogicalPlan> {
    /** The reader option by which `route` and `read` mark one query; in an attached session no query needs it. */
    static final String MARK = "hedgerow.route";
    static final Logger LOG = LoggerFactory.getLogger("hedgerow");
    private static final int MAX_LOGGED = 1000; // different lines
    private static final long BLOCK_BYTES = 128L << 20;

    private final ThreadLocal<WeakReference<LogicalPlan>> answered = new ThreadLocal<>();
    private final Set<String> logged = ConcurrentHashMap.newKeySet();
    private final Python python;
    private final OpenedTables tables;
    private final JoinRequests joins;
    private final MoreThanWhere more;
    private volatile boolean isAttached;
    private volatile List<QueryPlan.Decision> last = List.of();
    private volatile boolean isToldBySql;
    private volatile boolean hasTab = true; // until it cannot be made

    PruningRule(Python python) {
        this.python = python;
        this.tables = new OpenedTables(python);
        this.joins = new JoinRequests(tables);
        this.more = new MoreThanWhere(python, tables);
    }

    /** Sets whether the rule prunes every query, or only those that `route` marked. */
    public void attached(boolean every) {
        isAttached = every;
    }

    public boolean isAttached() {
        return isAttached;
    }

    /** Returns the decisions for the scans of the user's last query. */
    public String last() {
        return Wire.write(reports());
    }

    /** Returns the same for a query that shows them: it does not count as the last one. */
    Wire.ScanReport[] lastForSql() {
        isToldBySql = true;
        return reports();
    }

    private Wire.ScanReport[] reports() {
        return last.stream().map(QueryPlan.Decision::report).toArray(Wire.ScanReport[]::new);
    }

    @Override
    public LogicalPlan apply(LogicalPlan plan) {
        WeakReference<LogicalPlan> before = answered.get();
        if (IndexedExpressions.isResolving() || before != null && before.get() == plan) {
            return plan; // the optimizer calls the rule again until nothing changes
        }
        try {
            if (isLeftAlone(plan)) {
                if (Delta.IS_THERE && DeltaFiles.changesRows(plan)) {
                    remember(plan, null);
                }
                return plan;
            }
            if (!SessionSettings.isOn("hedgerow.enabled")) {
                remember(plan, readsFiles(plan) ? List.of() : null);
                return plan;
            }
            python.begin();
            QueryPlan query = new QueryPlan(plan, python, this);
            LogicalPlan found = query.pruned();
            remember(plan, query.decisions());
            answered.set(new WeakReference<>(found));
            return found;
        } catch (Exception | LinkageError error) {
            LOG.info("Hedgerow leaves a query as it is: " + error);
            return plan;
        }
    }

    /** Remembers the decisions for a user's query, which are null if it reads no files. */
    private void remember(LogicalPlan plan, List<QueryPlan.Decision> decisions) {
        if (UserQueries.isOwn()) {
            return;
        }
        if (decisions != null) {
            last = decisions;
            show(decisions);
        } else if (isAttached && !isToldBySql && UserQueries.isUsers(plan)) {
            last = List.of();
        }
        isToldBySql = false;
    }

    /** Shows the decisions in Spark's UI. */
    private void show(List<QueryPlan.Decision> decisions) {
        try {
            if (hasTab && !decisions.isEmpty()) {
                UiTab.note(decisions);
            }
        } catch (Exception | LinkageError error) { // its classes are Spark's own
            hasTab = false;
            LOG.info("Hedgerow has no tab in Spark's UI: " + error);
        }
    }

    /** Returns a plan with the same answer over fewer files; null if WHERE says best which to skip. */
    LogicalPlan overFewerFiles(LogicalPlan node, QueryPlan query) {
        try {
            return more.of(node, query);
        } catch (Exception error) {
            LOG.info("Hedgerow only skips files by WHERE: " + error);
            return null;
        }
    }

    private static boolean isLeftAlone(LogicalPlan plan) {
        // Subqueries are handled with the query that contains them.
        return plan instanceof Subquery || plan.isStreaming() || plan instanceof Command && !writesQuery(plan);
    }

    private static boolean readsFiles(LogicalPlan plan) {
        boolean[] found = {false};
        Scala.forEach(plan, node -> found[0] |= node instanceof LogicalRelation relation
            ? relation.relation() instanceof HadoopFsRelation
            : node instanceof DataSourceV2ScanRelation newer && ScannedFiles.rootOf(newer) != null);
        return found[0];
    }

    /** Returns whether it writes the answer of a query, as INSERT and CREATE TABLE AS SELECT do. */
    private static boolean writesQuery(LogicalPlan plan) {
        return plan instanceof V1WriteCommand || plan instanceof V2WriteCommand;
    }

    /**
     * Returns the relation, or a plan over it, without the files to skip; the relation itself if there are none.
     *
     * @param own the condition of the relation's own filter
     * @param condition the whole condition on its rows, of which the filters above may keep a part
     */
    LogicalPlan pruned(LogicalRelation relation, Expression own, Expression condition, QueryPlan query) {
        Scan scan = null;
        try {
            if (relation.relation() instanceof HadoopFsRelation files
                    && files.location() instanceof FileLists.Decided list) {
                query.note(list.report());
            } else {
                scan = query.scan(relation);
            }
            if (scan == null) {
                return relation;
            }
            return query.unfit() == null
                ? chosen(scan, own, condition, query, true) : leftAlone(scan, query.unfit(), query);
        } catch (Exception error) {
            if (scan != null) {
                return leftAlone(
                    scan, error instanceof IllegalStateException ? error.getMessage() : error.toString(), query);
            }
            LOG.info("Hedgerow leaves a scan as it is: " + error);
            return relation;
        }
    }

    /** Records why no file of a managed table is skipped that is read through DataSource V2. */
    void noteV2(DataSourceV2ScanRelation relation, QueryPlan query) {
        try {
            String root = isAttached ? ScannedFiles.rootOf(relation) : null;
            if (root != null) {
                String reason = "the query reads the table through DataSource V2: " + (
                    relation.scan() instanceof ParquetScan ? "add parquet to spark.sql.sources.useV1SourceList"
                        : "set spark.databricks.delta.v2.enableMode to AUTO");
                query.note(Scan.Side.of(root) == null ? null : new Wire.ScanReport(
                    nameOf(root), 0, 0, 0, 0, 0, reason, Wire.ScanReport.WHERE, null, null, null, null));
            }
        } catch (Exception error) {
            LOG.info("Hedgerow does not note a scan: " + error);
        }
    }

    /** Returns the files of a relation that this rule looks at; null for any other relation. */
    private ScannedFiles scannedFiles(LogicalRelation relation) {
        boolean isOurs = relation.relation() instanceof HadoopFsRelation files
            && (isAttached || Scala.map(files.options()).containsKey(MARK));
        ScannedFiles files = isOurs ? ScannedFiles.of(relation) : null;
        return files == null || files.isDelta() && DeltaFiles.isBeingChanged(files.root()) ? null : files;
    }

    /** Returns a relation as a scan; null if its table is not managed, or its files are chosen already. */
    Scan scan(LogicalRelation relation, QueryPlan query) {
        try {
            ScannedFiles files = scannedFiles(relation);
            if (files == null) {
                return null;
            }
            query.note(null);
            return Scan.of(relation, files);
        } catch (IOException error) {
            LOG.info("Hedgerow leaves a scan as it is: " + error);
            return null;
        }
    }

    /** Leaves the scan as it is and records the reason. */
    private LogicalPlan leftAlone(Scan scan, String reason, QueryPlan query) {
        query.decide(scan, nameOf(scan.root()), scan.count(FileChoice.NONE), reason, Wire.ScanReport.WHERE);
        String line = "Hedgerow opens all files of " + scan.root() + ": " + reason;
        if (logged.size() < MAX_LOGGED && logged.add(line)) {
            LOG.info(line);
        }
        return scan.relation();
    }

    private static String nameOf(String root) {
        return root.substring(root.lastIndexOf('/') + 1);
    }

    private LogicalPlan chosen(
            Scan scan, Expression own, Expression condition, QueryPlan query, boolean mayTryAgain) {
        OpenedTables.Table table = tables.open(scan);
        if (table.reason() != null) {
            return leftAlone(scan, table.reason(), query);
        }
        JoinRequests.Requests joined = joins.of(scan.relation(), table, query);
        if (condition.equals(Literal.TrueLiteral()) && joined.isEmpty()) {
            return without(scan, table.index(), table, joined.unused(), Wire.ScanReport.WHERE, query);
        }
        boolean mayRead = scan.side().hasOtherFiles() && joined.isEmpty() && !query.readsFileNames()
            && Scala.list(scan.relation().output()).stream().allMatch(Scala::isData)
            && scan.files().isWhole(table.index());
        Wire.Condition where = new Conditions(table.items()).of(NormalTree.over(scan.relation()).of(condition));
        List<String> columns = mayRead ? query.columnsOf(scan.relation(), own) : null;
        Wire.Answer answer = python.ask(new Wire.Choose(
            table.handle(), where, !mayRead, columns, joined.joined(), joined.equal(), joined.partners()));
        if (answer instanceof Wire.Chosen chosen) {
            FileChoice choice = table.index().where(chosen.bits(), chosen.groupBits());
            return without(scan, choice, table, joined.unused(), chosen.means(), query);
        }
        if (answer instanceof Wire.Instead files) {
            return instead(scan, own, table, files, query);
        }
        Wire.Refused refused = (Wire.Refused) answer;
        if (refused.forget()) {
            tables.forget(table); // Python has, or it is another process
            if (mayTryAgain) {
                return chosen(scan, own, condition, query, false);
            }
        }
        return leftAlone(scan, refused.reason(), query);
    }

    private LogicalRelation without(
            Scan scan, FileChoice choice, OpenedTables.Table table, String unused, String means, QueryPlan query) {
        Wire.ScanReport report = scan.decide(choice, table.name(), unused, means, query);
        if (choice.skipsGroups()) {
            RowGroupScans.planIn(SparkSession.active());
        }
        LogicalRelation found = scan.without(choice, report);
        query.aim(found, new RunTimeJoins.Target(scan, table, choice, report, tables));
        return found;
    }

    /** Reads other files with the same rows: a replica's, or the table's own with some copies of rows from others. */
    private static LogicalPlan instead(
            Scan scan, Expression condition, OpenedTables.Table table, Wire.Instead files, QueryPlan query) {
        List<FileStatus> listed = new ArrayList<>();
        long bytes = 0;
        for (int i = 0; i < files.sizes().length; i++) {
            listed.add(new FileStatus(files.sizes()[i], false, 1, BLOCK_BYTES, 0, new Path(files.paths().get(i))));
            bytes += files.sizes()[i];
        }
        Wire.ScanReport report = query.decide(
            scan, table.name(), new ScannedFiles.Count(listed.size(), bytes), null, Wire.ScanReport.WHERE);
        FileIndex location = new FileLists.Others(scan.files().location(), listed, report);
        return files.codes() == null
            ? scan.reading(location) : withCopies(scan.relation(), location, condition, files);
    }

    /** Copies carry the number of their block and cell in a column that plain readers do not see. */
    private static LogicalPlan withCopies(
            LogicalRelation relation, FileIndex location, Expression condition, Wire.Instead files) {
        AttributeReference number = new AttributeReference(files.column(), DataTypes.LongType, true,
            Metadata.empty(), NamedExpression.newExprId(), Scala.none());
        HadoopFsRelation plain = (HadoopFsRelation) relation.relation();
        StructType schema = plain.dataSchema().add(number.name(), number.dataType());
        List<AttributeReference> output = new ArrayList<>(Scala.list(relation.output()));
        output.add(number);
        LogicalRelation all = relation.copy(Scan.withData(plain, location, schema), Scala.seq(output),
            relation.catalogTable(), relation.isStreaming(), relation.stream());
        List<Expression> codes = new ArrayList<>();
        for (long code : files.codes()) {
            codes.add(new Literal(code, DataTypes.LongType));
        }
        Expression wanted = new Or(new IsNull(number), new In(number, Scala.seq(codes)));
        return new Project(Scala.seq(Scala.list(relation.output())), new Filter(new And(condition, wanted), all));
    }
}
