package hedgerow;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.BaseEvalPython;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;

/**
 * What operators compute for those above: new columns, and the results of Python's functions. Spark evaluates these in
 * operators of their own, and the arguments of functions in SQL in a projection below.
 */
record Definitions(Map<ExprId, Expression> values) {
    static Definitions of(List<LogicalPlan> operators) {
        Map<ExprId, Expression> found = new HashMap<>();
        for (LogicalPlan node : operators) {
            if (node instanceof Project project) {
                for (NamedExpression column : Scala.list(project.projectList())) {
                    if (column instanceof Alias alias) {
                        found.put(alias.exprId(), alias.child());
                    }
                }
            }
            if (node instanceof BaseEvalPython python) {
                List<? extends Expression> calls = Scala.list(python.udfs());
                for (int i = 0; i < calls.size(); i++) {
                    found.put(Scala.list(python.resultAttrs()).get(i).exprId(), calls.get(i));
                }
            }
        }
        return new Definitions(found);
    }

    /** Returns the expression with the definitions of its columns in their place. */
    Expression inlined(Expression e) {
        return e.transform(Scala.rewrite(node -> node instanceof AttributeReference column
            && values.containsKey(column.exprId()) ? inlined(values.get(column.exprId())) : node));
    }
}
