package hedgerow;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Offset;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * The first rows of one scan in an order, or any of its rows.
 *
 * <pre>
 *     GlobalLimit 10
 *       Offset 5                    15 rows are needed from here on
 *         LocalLimit 15
 *           Sort(x DESC)            or none: then any 15 rows are right
 *             Chain
 * </pre>
 *
 * A LocalLimit without a GlobalLimit above it keeps rows of each task. Spark pushes such limits through unions and outer
 * joins, where a query may need more rows than that.
 *
 * @param above the operators from the limit to the sort, from the top
 * @param first the first term of the order; null: there is no order
 */
record LimitedRows(List<LogicalPlan> above, SortOrder first, long rows, Chain chain) {
    /** Returns the rows that a limit needs; null if they are not those of one scan. */
    static LimitedRows of(GlobalLimit limit) {
        List<LogicalPlan> above = new ArrayList<>();
        long rows = Long.MAX_VALUE;
        LogicalPlan at = limit;
        while (!(at instanceof Sort) && Scala.list(at.children()).size() == 1) {
            if (at instanceof GlobalLimit global) {
                rows = Math.min(rows, number(global.limitExpr()));
            } else if (at instanceof LocalLimit local) {
                if (number(local.limitExpr()) < rows) {
                    return null;
                }
            } else if (at instanceof Offset offset) {
                if (number(offset.offsetExpr()) < 0) {
                    return null;
                }
                rows += number(offset.offsetExpr());
            } else if (!(at instanceof Project)) {
                break;
            }
            above.add(at);
            at = Scala.list(at.children()).get(0);
        }
        if (rows <= 0) {
            return null;
        }
        if (at instanceof Sort sort) {
            above.add(sort);
            Chain chain = sort.global() ? Chain.of(sort.child()) : null;
            return chain == null ? null : new LimitedRows(above, Scala.list(sort.order()).get(0), rows, chain);
        }
        return unordered(above, rows, at);
    }

    /** The projections above the relation belong to the chain. */
    private static LimitedRows unordered(List<LogicalPlan> above, long rows, LogicalPlan at) {
        LogicalPlan top = at;
        List<LogicalPlan> limits = new ArrayList<>(above);
        while (limits.get(limits.size() - 1) instanceof Project project) {
            top = project;
            limits.remove(limits.size() - 1);
        }
        Chain chain = Chain.of(top);
        return chain == null ? null : new LimitedRows(limits, null, rows, chain);
    }

    boolean isDescending() {
        return first.direction().sql().equals("DESC");
    }

    private static long number(Expression e) {
        return e instanceof Literal literal && literal.value() instanceof Integer number ? number : -1;
    }

    /** Returns whether a row that is not read changes no answer; `key`: the first term as a normal tree, or null. */
    boolean neverFails(Allowlist allowed, Expression key) {
        List<Expression> evaluated = key == null ? List.of() : List.of(key);
        for (LogicalPlan operator : above) {
            boolean fails = operator instanceof Sort sort
                ? Scala.list(sort.order()).stream().anyMatch(order -> !allowed.neverFails(order.child())
                    && !evaluated.contains(chain.normal(order.child())))
                : operator instanceof Project project && first == null
                    && Scala.list(project.projectList()).stream().anyMatch(e -> !allowed.neverFails((Expression) e));
            if (fails) {
                return false;
            }
        }
        return chain.neverFails(allowed, evaluated);
    }

    /** Returns the same plan over another relation. */
    LogicalPlan over(LogicalRelation other) {
        return Scala.stacked(above, chain.over(other));
    }

    /** Returns the same plan without rows that do not satisfy a condition on the relation's columns. */
    LimitedRows where(Expression also) {
        return new LimitedRows(above, first, rows, chain.where(also));
    }
}
