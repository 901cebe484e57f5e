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
 * The dependence of a query's answer on the files that are read. For example, rand(3) counts the rows of a task, and
 * the rows of a task depend on all files. So with fewer files a row gets another value.
 */
final class FileDependence {
    private FileDependence() {}

    /** Returns why fewer files may change the answer, although they hold all matching rows; null if they cannot. */
    static String onAllFiles(LogicalPlan root, Allowlist allowed) {
        String[] reason = {null};
        Scala.forEach(root, plan -> {
            if (allowed.seesWholeTasks(plan)) {
                reason[0] = "the answer of " + plan.nodeName() + " depends on which rows are read together";
            } else if (reason[0] == null && !(plan instanceof LogicalRelation)) {
                Scala.list(plan.expressions()).stream()
                    .map(e -> e.transform(Scala.rewrite(FileDependence::withoutFile)))
                    .filter(e -> !e.deterministic())
                    .findFirst()
                    .ifPresent(e -> reason[0] =
                        "the value of " + source(e).sql() + " depends on which rows are read together");
            }
        });
        return reason[0];
    }

    /** Returns whether the answer has the name of a row's file: a copy of the row in another file would change it. */
    static boolean onFileNames(LogicalPlan root) {
        boolean[] found = {false};
        Scala.forEach(root, plan -> found[0] |= Scala.list(plan.expressions()).stream()
            .anyMatch(e -> e.exists(part -> part.getClass().getSimpleName().startsWith("InputFile"))));
        return found[0];
    }

    /** Returns an innermost part of an expression that makes it not deterministic. */
    private static Expression source(Expression e) {
        Optional<Expression> below = Scala.list(e.children()).stream().filter(c -> !c.deterministic()).findFirst();
        return below.map(FileDependence::source).orElse(e);
    }

    /**
     * Replaces facts about a row's file, such as its name, by a constant: no other file changes them. Replaces the
     * fields `file_block_...` of `_metadata` by an expression that is not deterministic: the sizes of all files decide
     * how Spark splits each.
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
