package hedgerow;

import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.NamedLambdaVariable;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.Metadata;
import scala.Option;

/**
 * Removes from trees the parts that differ between queries: numbers of columns, variables and calls of Python's
 * functions, and the spelling of names. Two such calls are equal if Python gets the same code for them.
 *
 * @param names the relation's data columns
 */
record NormalTree(Map<ExprId, String> names) {
    /** The number of every column of a normal tree. */
    static final ExprId NO_ID = new ExprId(0L, new UUID(0L, 0L));

    static NormalTree over(LogicalRelation relation) {
        Map<ExprId, String> names = new HashMap<>();
        for (AttributeReference column : Scala.list(relation.output())) {
            if (Scala.isData(column)) {
                names.put(column.exprId(), column.name());
            }
        }
        return new NormalTree(names);
    }

    Expression of(Expression e) {
        return e.transform(Scala.rewrite(this::normal));
    }

    private Expression normal(Expression node) {
        if (node instanceof GetStructField field) {
            return new GetStructField(field.child(), field.ordinal(), Option.empty());
        }
        if (node instanceof NamedLambdaVariable variable) {
            return new NamedLambdaVariable(variable.name(), variable.dataType(), true, NO_ID, null);
        }
        if (node instanceof PythonUDF call) {
            return new PythonUDF(call.name(), call.func(), call.dataType(), call.children(), call.evalType(),
                call.udfDeterministic(), NO_ID);
        }
        if (node instanceof AttributeReference column && names.containsKey(column.exprId())) {
            return new AttributeReference(
                names.get(column.exprId()), column.dataType(), true, Metadata.empty(), NO_ID, Scala.none());
        }
        return node;
    }
}
