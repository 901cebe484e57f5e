package hedgerow;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.UnaryNode;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;

/** A query's plan: each relation with the filter right above it, and facts about the whole, looked up when needed. */
final class QueryPlan {
    private final LogicalPlan root;
    private final Python python;
    private final PruningRule rule;
    private final List<Decision> decisions = new ArrayList<>();
    private final Set<LogicalPlan> done = Collections.newSetFromMap(new IdentityHashMap<>());
    private final Map<LogicalRelation, Scan> scans = new IdentityHashMap<>();
    private final Map<LogicalRelation, RunTimeJoins.Target> targets = new IdentityHashMap<>();
    private boolean readsFiles;
    private long decidedAt = System.nanoTime(); // the last scan
    private Project above;
    private JoinEdges edges;
    private String unfit;
    private boolean isUnfitKnown;

    QueryPlan(LogicalPlan root, Python python, PruningRule rule) {
        this.root = root;
        this.python = python;
        this.rule = rule;
    }

    /** A decision on a scan. `read`: what is left of its files at run time; null if nothing more is skipped then. */
    record Decision(Wire.ScanReport planned, ReadFiles read) {
        Wire.ScanReport report() {
            return read == null ? planned : read.of(planned);
        }
    }

    /** Returns the plan over fewer files: each relation is replaced by another, or by a plan with the same rows. */
    LogicalPlan pruned() {
        LogicalPlan found = root.transformDownWithSubqueries(Scala.rewrite(this::pruned));
        try {
            return !targets.isEmpty() && RunTimeJoins.areOn() ? new RunTimeJoins(this, targets, python).of(found) : found;
        } catch (Exception | LinkageError error) {
            PruningRule.LOG.info("Hedgerow skips no files at run time: " + error);
            return found;
        }
    }

    /** Remembers a relation whose files the keys of joins may choose at run time. */
    void aim(LogicalRelation relation, RunTimeJoins.Target target) {
        targets.put(relation, target);
    }

    /** Notes that more of a scan's files are skipped at run time. */
    void skipLater(Wire.ScanReport planned, ReadFiles read) {
        decisions.replaceAll(decision -> decision.planned == planned ? new Decision(planned, read) : decision);
    }

    private LogicalPlan pruned(LogicalPlan node) {
        if (node instanceof Project project) {
            above = project; // parents come first
        }
        if (done.contains(node)) {
            return node;
        }
        LogicalPlan shorter = rule.overFewerFiles(node, this);
        if (shorter != null) {
            finish(shorter);
            return shorter;
        }
        PythonFilter python = PythonFilter.of(node);
        if (python != null) {
            return pruned(python, node);
        }
        if (node instanceof Filter filter && filter.child() instanceof LogicalRelation relation) {
            LogicalPlan found = rule.pruned(relation, filter.condition(), filter.condition(), this);
            finish(found);
            return found == relation ? node
                : found instanceof LogicalRelation ? new Filter(filter.condition(), found) : found;
        }
        if (node instanceof LogicalRelation relation) {
            LogicalPlan found = rule.pruned(relation, Literal.TrueLiteral(), Literal.TrueLiteral(), this);
            finish(found);
            return found;
        }
        if (node instanceof DataSourceV2ScanRelation relation) {
            rule.noteV2(relation, this);
        }
        return node;
    }

    private LogicalPlan pruned(PythonFilter filter, LogicalPlan node) {
        LogicalPlan found = rule.pruned(filter.relation(), filter.own(), filter.condition(), this);
        LogicalPlan whole = found == filter.relation() ? node : Scala.stacked(filter.operators(),
            found instanceof LogicalRelation && !filter.own().equals(Literal.TrueLiteral())
                ? new Filter(filter.own(), found) : found);
        for (LogicalPlan at = whole; at != null; at = at instanceof UnaryNode one ? one.child() : null) {
            done.add(at); // the relation at the end, too
        }
        return whole;
    }

    /** Marks operators that need not be looked at again on the way down; WHERE still decides on a filter's files. */
    private void finish(LogicalPlan found) {
        if (!(found instanceof Filter filter && filter.child() instanceof LogicalRelation relation
                && scans.get(relation) != null)) {
            done.add(found);
            Scala.list(found.children()).forEach(this::finish);
        }
    }

    /** Notes a scan; null: one whose table is not managed. */
    void note(Wire.ScanReport report) {
        readsFiles = true;
        if (report != null) {
            decisions.add(new Decision(report, null));
        }
    }

    /** Records how many files of a scan are opened. */
    Wire.ScanReport decide(Scan scan, String table, ScannedFiles.Count opened, String reason, String means) {
        Wire.ScanReport report = report(scan, table, opened, reason, means);
        note(report);
        return report;
    }

    /** Returns how many files of a scan are opened, and the seconds since the decision before. */
    Wire.ScanReport report(Scan scan, String table, ScannedFiles.Count opened, String reason, String means) {
        ScannedFiles.Count total = scan.files().total(scan.count(FileChoice.NONE));
        long before = decidedAt;
        decidedAt = System.nanoTime();
        return new Wire.ScanReport(table, total.files(), opened.files(), total.bytes(), opened.bytes(),
            (decidedAt - before) / 1e9, reason, means, null, null, null, null);
    }

    /** Returns the decisions for the query's scans; null if it reads no files. */
    List<Decision> decisions() {
        return readsFiles ? List.copyOf(decisions) : null;
    }

    /** Returns a relation as a scan; null if its table is not managed. It is looked up once: that lists a folder. */
    Scan scan(LogicalRelation relation) {
        if (!scans.containsKey(relation)) {
            scans.put(relation, rule.scan(relation, this)); // null, too
        }
        return scans.get(relation);
    }

    JoinEdges edges() {
        if (edges == null) {
            edges = new JoinEdges(root);
        }
        return edges;
    }

    /** Returns why no file may be skipped in any scan of the query; null if some may. */
    String unfit() {
        if (!isUnfitKnown) {
            unfit = FileDependence.onAllFiles(root, python.allowed());
            isUnfitKnown = true; // not if that fails: then no scan is pruned
        }
        return unfit;
    }

    boolean readsFileNames() {
        return FileDependence.onFileNames(root);
    }

    /** Returns the columns that the query reads of a relation; null: all. */
    List<String> columnsOf(LogicalRelation relation, Expression condition) {
        boolean isAbove = above != null && (above.child() == relation
            || above.child() instanceof Filter filter && filter.child() == relation);
        if (!isAbove) {
            return null;
        }
        Set<String> found = new HashSet<>();
        Scala.list(above.references().toSeq()).forEach(column -> found.add(column.name()));
        Scala.list(condition.references().toSeq()).stream().map(Attribute::name).forEach(found::add);
        return found.size() < Scala.list(relation.output()).size() ? List.copyOf(found) : null;
    }
}
