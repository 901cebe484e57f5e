package hedgerow;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.DataType;
import scala.Function1;
import scala.Option;
import scala.PartialFunction;
import scala.collection.immutable.ArraySeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * Scala's collections, functions and trees, as Java likes them. Eclipse's compiler finds methods of Scala's collections
 * ambiguous, so they are called nowhere.
 */
final class Scala {
    private Scala() {}

    static <T> List<T> list(scala.collection.Seq<T> values) {
        return CollectionConverters.asJava(values);
    }

    static <T> Set<T> set(scala.collection.Set<T> values) {
        return CollectionConverters.asJava(values);
    }

    static <K, V> Map<K, V> map(scala.collection.Map<K, V> values) {
        return CollectionConverters.asJava(values);
    }

    @SuppressWarnings("unchecked") // an array of objects becomes a sequence of any
    static <T> Seq<T> seq(List<? extends T> values) {
        return (Seq<T>) ArraySeq.unsafeWrapArray(values.toArray());
    }

    static <T> Seq<T> none() {
        return seq(List.of());
    }

    /** A rewrite of trees: a node for which `change` returns the same node stays. */
    static <T> PartialFunction<T, T> rewrite(UnaryOperator<T> change) {
        return new AbstractPartialFunction<T, T>() {
            @Override
            public boolean isDefinedAt(T node) {
                return true;
            }

            @Override
            public <A extends T, B> B applyOrElse(A node, Function1<A, B> otherwise) {
                @SuppressWarnings("unchecked") // B is a supertype of T
                B changed = (B) change.apply(node);
                return changed;
            }
        };
    }

    /** Visits all nodes of a plan, those of its subqueries too. */
    static void forEach(LogicalPlan plan, Consumer<LogicalPlan> visit) {
        visit.accept(plan);
        list(plan.children()).forEach(child -> forEach(child, visit));
        list(plan.subqueries()).forEach(query -> forEach(query, visit));
    }

    /** Returns the operators, the first at the top, over another plan than before. */
    static LogicalPlan stacked(List<? extends LogicalPlan> operators, LogicalPlan below) {
        LogicalPlan found = below;
        for (int level = operators.size() - 1; level >= 0; level--) {
            found = operators.get(level).withNewChildren(seq(List.of(found)));
        }
        return found;
    }

    /** Returns an expression as a new column of this name. */
    static Alias alias(Expression e, String name) {
        return new Alias(e, name, NamedExpression.newExprId(), none(), Option.empty(), none());
    }

    /** Returns whether the column is stored: not one of those that tell a row's file. */
    static boolean isData(AttributeReference column) {
        return !column.metadata().contains("__metadata_col");
    }

    static String typeOf(Expression e) {
        return typeOf(e.dataType());
    }

    static String typeOf(DataType type) {
        return type.catalogString();
    }
}
