package hedgerow;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Stream;
import org.apache.hadoop.fs.Path;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BinaryExpression;
import org.apache.spark.sql.catalyst.expressions.Contains;
import org.apache.spark.sql.catalyst.expressions.EndsWith;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.Like;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.StartsWith;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.ColumnarToRowExec;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.InputAdapter;
import org.apache.spark.sql.execution.LimitExec;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.TakeOrderedAndProjectExec;
import org.apache.spark.sql.execution.UnionExec;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.exchange.Exchange;
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart;
import org.apache.spark.sql.execution.window.WindowExecBase;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/** Notes what a session's queries read of some tables. Spark calls it after each query, on a thread of its own. */
public final class QueryListener extends SparkListener {
    private static final String WHERE = "where";
    private static final int MAX_WAITING = 100_000; // queries whose notes Python has not taken yet

    private final List<String> roots = new CopyOnWriteArrayList<>();
    private final Deque<Wire.QueryNote> waiting = new ArrayDeque<>();
    private final Set<Long> ours = new HashSet<>(); // queries that Hedgerow runs itself
    private final Map<Long, Long> startedAt = new HashMap<>(); // the others, as Spark's event log notes their start
    private final Object session;
    private long lost;

    QueryListener(Object session) {
        this.session = session;
    }

    /** From now on, scans of files below this folder are noted. */
    public void watch(String root) {
        roots.add(root);
    }

    /** Takes out the oldest notes. */
    public synchronized String taken(int most) {
        List<Wire.QueryNote> notes = new ArrayList<>();
        while (notes.size() < most && !waiting.isEmpty()) {
            notes.add(waiting.poll());
        }
        Wire.QueryNotes taken = new Wire.QueryNotes(lost, notes);
        lost = 0;
        return Wire.write(taken);
    }

    @Override
    public void onOtherEvent(SparkListenerEvent event) {
        if (event instanceof SparkListenerSQLExecutionStart start) {
            if (Scala.set(start.jobTags()).contains(UserQueries.OWN)) {
                ours.add(start.executionId());
            } else {
                startedAt.put(start.executionId(), start.time());
            }
        } else if (event instanceof SparkListenerSQLExecutionEnd end) {
            boolean isOurs = ours.remove(end.executionId());
            Long started = startedAt.remove(end.executionId()); // null: before this listener was there
            QueryExecution query = end.qe();
            if (!isOurs && query != null && query.sparkSession() == session && !end.executionFailure().isDefined()) {
                note(query, end, started == null ? end.time() - end.duration() / 1_000_000 : started);
            }
        }
    }

    private void note(QueryExecution query, SparkListenerSQLExecutionEnd end, long start) {
        try {
            Noted noted = new Noted();
            read(query.executedPlan(), null, WHERE, List.of(), noted);
            if (!noted.scans.isEmpty()) {
                keep(new Wire.QueryNote(end.executionId(), start, end.duration() / 1e9,
                    List.copyOf(noted.scans.values()), noted.joins(query.optimizedPlan())));
            }
        } catch (Exception | LinkageError error) {
            PruningRule.LOG.info("Hedgerow does not log a query: " + error);
        }
    }

    private synchronized void keep(Wire.QueryNote note) {
        if (waiting.size() == MAX_WAITING) {
            lost++;
        } else {
            waiting.add(note);
        }
    }

    /**
     * `filter`: the filter above the plan, if nothing stands between that changes the number of rows. `kind`: what the
     * query wants of the rows of the plan. `joined`: the keys that columns of the plan have to have.
     */
    private void read(
            SparkPlan plan, FilterExec filter, String kind, List<JoinedKeys> joined, Noted noted) {
        if (plan instanceof AdaptiveSparkPlanExec adaptive) {
            read(adaptive.executedPlan(), null, kind, joined, noted);
            // Spark has replaced parts of the plan that turned out to have no rows.
            Noted planned = new Noted();
            read(adaptive.initialPlan(), null, kind, joined, planned);
            noted.addOthers(planned);
        } else if (plan instanceof QueryStageExec stage) {
            read(stage.plan(), null, kind, joined, noted);
        } else if (plan instanceof FileSourceScanExec scan) {
            add(scan, filter, kind, joined, noted);
        }
        boolean keepsRows = plan instanceof ProjectExec || plan instanceof WholeStageCodegenExec
            || plan instanceof InputAdapter || plan instanceof ColumnarToRowExec;
        FilterExec above = plan instanceof FilterExec own ? own : keepsRows ? filter : null;
        boolean keepsKind = keepsRows || plan instanceof FilterExec || plan instanceof Exchange
            || plan instanceof AQEShuffleReadExec || plan instanceof UnionExec;
        String below = wanted(plan) != null ? wanted(plan) : keepsKind ? kind : WHERE;
        List<JoinedKeys> needed = joinedBelow(plan, joined);
        Scala.list(plan.children()).forEach(child -> read(child, above, below, needed, noted));
        Scala.list(plan.subqueries()).forEach(query -> read(query, null, WHERE, List.of(), noted));
    }

    /** Returns the keys that columns below an operator have to have, if those above it have to have these. */
    private static List<JoinedKeys> joinedBelow(SparkPlan plan, List<JoinedKeys> joined) {
        if (plan instanceof LimitExec || plan instanceof TakeOrderedAndProjectExec || plan instanceof WindowExecBase) {
            return List.of(); // rows without the keys decide which rows these give
        }
        JoinedKeys keys = plan instanceof BroadcastHashJoinExec join ? JoinedKeys.of(join) : null;
        return keys == null ? joined : Stream.concat(joined.stream(), Stream.of(keys)).toList();
    }

    /** Returns what an operator wants of the rows below it; null if it may want all of them. */
    private static String wanted(SparkPlan plan) {
        return plan instanceof TakeOrderedAndProjectExec ? "top-k"
            : plan instanceof LimitExec ? "limit"
            : plan instanceof BaseAggregateExec ? "aggregates" : null;
    }

    /** Identifies equal scans of a query, of which one is noted. */
    private record ScanKey(String root, List<String> where, List<String> keys, Set<String> columns) {
        /** Returns whether the scans differ at most in their keys, which are known only after a run. */
        boolean isLike(ScanKey other) {
            return root.equals(other.root) && where.equals(other.where) && columns.equals(other.columns);
        }
    }

    /** The noted scans of a query. */
    private static final class Noted {
        final Map<ScanKey, Wire.ScanNote> scans = new LinkedHashMap<>();
        final Map<ExprId, ScanKey> byColumn = new HashMap<>();

        void add(ScanKey key, Wire.ScanNote note, List<AttributeReference> columns) {
            scans.putIfAbsent(key, note);
            columns.forEach(column -> byColumn.putIfAbsent(column.exprId(), key));
        }

        /** Adds scans that are like none of these. */
        void addOthers(Noted planned) {
            planned.scans.keySet().removeIf(own -> scans.keySet().stream().anyMatch(own::isLike));
            scans.putAll(planned.scans);
            planned.byColumn.forEach(byColumn::putIfAbsent);
        }

        /** Returns the joins between these scans, of the query's optimised plan. */
        List<Wire.ScanJoin> joins(LogicalPlan plan) {
            if (scans.size() < 2) {
                return List.of();
            }
            List<ScanKey> places = new ArrayList<>(scans.keySet()); // it may be asked for null: a column of no noted scan
            List<Wire.ScanJoin> found = new ArrayList<>();
            new JoinEdges(plan).forEach(pairs -> {
                int scan = places.indexOf(byColumn.get(pairs.get(0).mine().exprId()));
                int other = places.indexOf(byColumn.get(pairs.get(0).theirs().exprId()));
                if (scan >= 0 && other >= 0 && scan != other) {
                    found.add(new Wire.ScanJoin(scan, pairs.stream().map(pair -> pair.mine().name()).toList(),
                        other, pairs.stream().map(pair -> pair.theirs().name()).toList()));
                }
            });
            return found.stream().distinct().sorted(Comparator.comparing(Wire.ScanJoin::toString)).toList();
        }
    }

    private void add(FileSourceScanExec scan, FilterExec filter, String kind, List<JoinedKeys> joined, Noted noted) {
        String root = rootOf(scan.relation().location());
        Wire.ScanReport report = scan.relation().location() instanceof FileLists.Decided list ? list.report() : null;
        if (root == null || report != null && report.means().equals(Wire.ScanReport.PROBE)) {
            return; // a probe reads for a scan that is noted
        }
        List<Expression> conditions = Stream
            .concat(Scala.list(scan.partitionFilters()).stream(), Scala.list(scan.dataFilters()).stream())
            .filter(condition -> condition.deterministic() && !condition.exists(QueryListener::isOfTheRun))
            .toList();
        List<AttributeReference> read = Scala.list(scan.output()).stream()
            .filter(c -> c instanceof AttributeReference column && Scala.isData(column)
                && !RunTimeJoins.isNumber(column.name()))
            .map(AttributeReference.class::cast).toList();
        Set<String> columns = new TreeSet<>(read.stream().map(AttributeReference::name).toList());
        Set<ExprId> used = new HashSet<>(); // columns of conditions that are not TRUE on NULL anyway
        for (Expression condition : conditions) {
            for (Attribute column : Scala.list(condition.references().toSeq())) {
                columns.add(column.name());
                if (!(condition instanceof IsNotNull)) {
                    used.add(column.exprId());
                }
            }
        }
        List<String> where = texts(conditions.stream()
            .filter(e -> !(e instanceof IsNotNull is && is.child() instanceof Attribute column
                && used.contains(column.exprId())))); // Spark adds these by itself
        List<String> keys = texts(read.stream().flatMap(column -> joined.stream()
            .filter(own -> own.column().equals(column.exprId())).flatMap(own -> own.on(column).stream())));
        long rows = metric(scan, "numOutputRows");
        long files = metric(scan, "numFiles");
        Wire.ScanNote note = new Wire.ScanNote(root, where, keys, columns, files, metric(scan, "filesSize"), rows,
            filter == null ? rows : metric(filter, "numOutputRows"), kind, report == null ? "" : report.means(),
            report == null ? files : report.files());
        noted.add(new ScanKey(root, where, keys, columns), note, read);
    }

    private static List<String> texts(Stream<Expression> conditions) {
        return conditions.map(e -> e.transform(Scala.rewrite(QueryListener::asWritten)).sql()).toList();
    }

    /** Returns whether only the running query knows its value. */
    private static boolean isOfTheRun(Expression e) {
        return e instanceof PlanExpression || e.getClass().getSimpleName().startsWith("DynamicPruning");
    }

    /** Returns the watched folder in which the files lie, the deepest; null if there is none, or they are no rows of it. */
    private String rootOf(FileIndex location) {
        String found = null;
        for (Path listed : Scala.list(location.rootPaths())) {
            String path = listed + "/";
            for (String root : roots) {
                if (path.startsWith(root + "/_hedgerow/") || path.startsWith(root + "/_delta_log/")) {
                    return null;
                }
                if (path.startsWith(root + "/") && (found == null || found.length() < root.length())) {
                    found = root;
                }
            }
        }
        return found;
    }

    private static long metric(SparkPlan plan, String name) {
        SQLMetric metric = Scala.map(plan.metrics()).get(name);
        return metric == null ? 0L : Math.max(0L, metric.value());
    }

    /** Writes a condition as users do: columns without their table, and LIKE instead of the operators for it. */
    private static Expression asWritten(Expression node) {
        if (node instanceof AttributeReference column) {
            return column.withQualifier(Scala.none());
        }
        boolean isOpenLeft = node instanceof Contains || node instanceof EndsWith;
        boolean isOpenRight = node instanceof Contains || node instanceof StartsWith;
        if (!(isOpenLeft || isOpenRight) || !(node instanceof BinaryExpression search)
                || !(search.right() instanceof Literal word && word.value() instanceof UTF8String text)) {
            return node;
        }
        String plain = text.toString().replaceAll("([\\\\%_])", "\\\\$1");
        String pattern = (isOpenLeft ? "%" : "") + plain + (isOpenRight ? "%" : "");
        return new Like(search.left(), new Literal(UTF8String.fromString(pattern), DataTypes.StringType), '\\');
    }
}
