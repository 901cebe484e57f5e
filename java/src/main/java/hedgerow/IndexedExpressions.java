package hedgerow;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.sql.catalyst.QueryPlanningTracker;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SessionState;
import scala.Option;

/**
 * The index's expressions as Spark parses and optimises them here, so that a query's expression is recognised as the
 * same tree. Expressions that cannot be parsed here, or that are not all of allowed classes, are left out.
 */
record IndexedExpressions(Allowlist allowed) {
    /** True on a thread that optimises these expressions: the rule then leaves the plan alone. */
    private static final ThreadLocal<Boolean> IS_RESOLVING = ThreadLocal.withInitial(() -> false);

    static boolean isResolving() {
        return IS_RESOLVING.get();
    }

    /** Returns the trees of the expressions over a relation's columns, with their numbers. */
    Map<Expression, Integer> of(LogicalRelation relation, List<Wire.Item> items) {
        HadoopFsRelation files = (HadoopFsRelation) relation.relation();
        FileIndex none = new FileLists.Pruned(
            files.location(), FileChoice.NONE,
            new Wire.ScanReport("", 0, 0, 0, 0, 0, null, Wire.ScanReport.WHERE, null, null, null, null));
        LogicalRelation leaf = Scan.with(relation, Scan.withData(files, none, files.dataSchema()));
        Map<Expression, Integer> found = new HashMap<>();
        IS_RESOLVING.set(true);
        try {
            if (!resolve(leaf, items, found)) {
                items.forEach(item -> resolve(leaf, List.of(item), found));
            }
        } finally {
            IS_RESOLVING.remove();
        }
        return found;
    }

    /** Puts the items made of allowed expressions into `found`; false if some cannot be analysed. */
    private boolean resolve(LogicalRelation leaf, List<Wire.Item> items, Map<Expression, Integer> found) {
        SparkSession session = (SparkSession) ((HadoopFsRelation) leaf.relation()).sparkSession();
        SessionState state = session.sessionState();
        try {
            List<NamedExpression> columns = new ArrayList<>();
            for (Wire.Item item : items) {
                columns.add(Scala.alias(state.sqlParser().parseExpression(item.text()), "_" + item.number()));
            }
            LogicalPlan analyzed = state.analyzer().executeAndCheck(
                new Project(Scala.seq(columns), leaf), new QueryPlanningTracker(Option.empty()));
            Set<String> steady = steady(analyzed);
            if (state.optimizer().execute(analyzed) instanceof Project optimized) {
                NormalTree normal = NormalTree.over(leaf);
                valuesOf(optimized).forEach((name, value) -> {
                    if (steady.contains(name) && allowed.knows(value)) {
                        found.put(normal.of(value), Integer.valueOf(name.substring(1)));
                    }
                });
            }
            return true;
        } catch (Exception error) {
            return false;
        }
    }

    /** Returns the names of the columns of a plan, as it was analysed, whose value depends on the row alone. */
    Set<String> steady(LogicalPlan analyzed) {
        Set<String> found = new TreeSet<>(); // the optimizer would put in values of the clock and the session
        if (analyzed instanceof Project project) {
            valuesOf(project).forEach((name, value) -> {
                if (allowed.isSteady(value)) {
                    found.add(name);
                }
            });
        }
        return found;
    }

    /** Returns the new columns of a projection, over the columns of the relation below. */
    private static Map<String, Expression> valuesOf(Project project) {
        List<LogicalPlan> below = new ArrayList<>();
        Scala.forEach(project.child(), below::add);
        Definitions definitions = Definitions.of(below);
        Map<String, Expression> found = new HashMap<>();
        for (NamedExpression column : Scala.list(project.projectList())) {
            if (column instanceof Alias alias) {
                found.put(alias.name(), definitions.inlined(alias.child()));
            }
        }
        return found;
    }
}
