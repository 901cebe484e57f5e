package hedgerow;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * A plan over one scan whose rows are those that a condition leaves: any number of projections, a filter, the relation.
 *
 * @param projects from the top
 * @param filter null if there is none
 */
record Chain(List<Project> projects, Filter filter, LogicalRelation relation) {
    /** Returns a plan as a chain; null if it is none. */
    static Chain of(LogicalPlan top) {
        List<Project> projects = new ArrayList<>();
        LogicalPlan at = top;
        while (at instanceof Project project) {
            projects.add(project);
            at = project.child();
        }
        Filter filter = at instanceof Filter lowest ? lowest : null;
        LogicalPlan last = filter == null ? at : filter.child();
        return last instanceof LogicalRelation relation ? new Chain(projects, filter, relation) : null;
    }

    Expression condition() {
        return filter == null ? Literal.TrueLiteral() : filter.condition();
    }

    /** Returns an expression over the chain's output as one over the relation's columns. */
    Expression resolved(Expression e) {
        Expression found = e;
        for (Project project : projects) {
            found = resolved(found, project);
        }
        return found;
    }

    private static Expression resolved(Expression e, Project project) {
        Map<ExprId, Expression> values = new HashMap<>();
        for (NamedExpression column : Scala.list(project.projectList())) {
            if (column instanceof Alias alias) {
                values.put(alias.exprId(), alias.child());
            }
        }
        return e.transformUp(Scala.rewrite(
            node -> node instanceof AttributeReference column ? values.getOrDefault(column.exprId(), node) : node));
    }

    /** Returns an expression over the chain's output as a normal tree over the relation. */
    Expression normal(Expression e) {
        return NormalTree.over(relation).of(resolved(e));
    }

    /**
     * Returns whether no row can make the chain fail, so that a row that is not read changes no answer. `evaluated`:
     * normal trees that have been evaluated on every row of the files that may be skipped.
     */
    boolean neverFails(Allowlist allowed, List<Expression> evaluated) {
        if (!allowed.neverFails(condition())) {
            return false;
        }
        for (int level = 0; level < projects.size(); level++) {
            Chain below = new Chain(projects.subList(level + 1, projects.size()), filter, relation);
            for (NamedExpression column : Scala.list(projects.get(level).projectList())) {
                Expression value = column instanceof Alias alias ? alias.child() : (Expression) column;
                if (!allowed.neverFails(value) && !evaluated.contains(below.normal(value))) {
                    return false;
                }
            }
        }
        return true;
    }

    /** Returns a chain with fewer rows: those that satisfy this condition on the relation's columns, too. */
    Chain where(Expression also) {
        return new Chain(projects, filter == null
            ? new Filter(also, relation) : new Filter(new And(filter.condition(), also), relation), relation);
    }

    /** Returns the same plan over another relation. */
    LogicalPlan over(LogicalRelation other) {
        return Scala.stacked(projects, filter == null ? other : Scala.stacked(List.of(filter), other));
    }
}
