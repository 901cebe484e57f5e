package hedgerow;

import java.util.Optional;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.InputFileBlockStart;
import org.apache.spark.sql.catalyst.expressions.InputFileName;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * Finds the parts of a plan that give a row another value, or keep another row, if fewer files are read: rand(3) counts
 * the rows of a task, and the rows of a task depend on all files.
 */
final class RowPlaces {
    private RowPlaces() {}

    /** Returns why the answer depends on the place of rows among those that are read; null if it does not. */
    static String matter(LogicalPlan root, Allowlist allowed) {
        String[] reason = {null};
        Scala.forEach(root, plan -> {
            if (allowed.seesWholeTasks(plan)) {
                reason[0] = "the answer of " + plan.nodeName() + " depends on which rows are read together";
            } else if (reason[0] == null && !(plan instanceof LogicalRelation)) {
                Scala.list(plan.expressions()).stream()
                    .map(e -> e.transform(Scala.rewrite(RowPlaces::withoutFile)))
                    .filter(e -> !e.deterministic())
                    .findFirst()
                    .ifPresent(e -> reason[0] =
                        "the value of " + source(e).sql() + " depends on which rows are read together");
            }
        });
        return reason[0];
    }

    /** Returns whether the query reads the file name of a row: then a copy of the row would give another answer. */
    static boolean readFileNames(LogicalPlan root) {
        boolean[] found = {false};
        Scala.forEach(root, plan -> found[0] |= Scala.list(plan.expressions()).stream()
            .anyMatch(e -> e.exists(part -> part.getClass().getSimpleName().startsWith("InputFile"))));
        return found[0];
    }

    /** Returns the innermost expression that is not deterministic. */
    private static Expression source(Expression e) {
        Optional<Expression> below = Scala.list(e.children()).stream().filter(c -> !c.deterministic()).findFirst();
        return below.map(RowPlaces::source).orElse(e);
    }

    /**
     * Puts constants in place of expressions that tell a row's file, which no other file changes, and a value that is
     * not deterministic in place of `_metadata.file_block_start`: how Spark splits files depends on the size of all.
     */
    private static Expression withoutFile(Expression node) {
        if (node instanceof GetStructField field && isMetadata(field.child())) {
            return field.extractFieldName().startsWith("file_block_")
                ? new InputFileBlockStart() : Literal.TrueLiteral();
        }
        if (node instanceof InputFileName) {
            return Literal.TrueLiteral();
        }
        return isMetadata(node) ? new InputFileBlockStart() : node;
    }

    private static boolean isMetadata(Expression node) {
        return node instanceof AttributeReference column && !Scala.isData(column)
            && Scala.typeOf(column).contains("file_block_");
    }
}
