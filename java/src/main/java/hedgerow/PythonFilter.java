package hedgerow;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.BaseEvalPython;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.UnaryNode;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * A filter on the results of Python's functions, which Spark evaluates between it and the scan.
 *
 * <pre>
 *     Filter(r > 1)                    the condition on rows of the relation: f(x) > 1 AND y < 5
 *       ArrowEvalPython(f(x) AS r)     its own filter: y < 5
 *         Filter(y < 5)
 *           Relation
 * </pre>
 *
 * @param operators those above the relation and its own filter, the first at the top
 * @param own the condition of the relation's own filter, TRUE without one
 */
record PythonFilter(List<LogicalPlan> operators, LogicalRelation relation, Expression own, Expression condition) {
    /** Null if the node is no such filter. */
    static PythonFilter of(LogicalPlan node) {
        List<LogicalPlan> found = new ArrayList<>();
        LogicalPlan at = node;
        while (at instanceof UnaryNode one && (at instanceof Filter || !found.isEmpty()
                && (at instanceof BaseEvalPython || at instanceof Project))) {
            found.add(at);
            at = one.child();
        }
        if (!(at instanceof LogicalRelation relation) || found.stream().noneMatch(BaseEvalPython.class::isInstance)) {
            return null;
        }
        Definitions definitions = Definitions.of(found);
        Expression condition = Literal.TrueLiteral();
        for (LogicalPlan operator : found) {
            if (operator instanceof Filter filter) {
                condition = new And(condition, definitions.inlined(filter.condition()));
            }
        }
        boolean hasOwn = found.get(found.size() - 1) instanceof Filter;
        Expression own = hasOwn ? ((Filter) found.remove(found.size() - 1)).condition() : Literal.TrueLiteral();
        return new PythonFilter(found, relation, own, condition);
    }
}
