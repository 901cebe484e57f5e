package hedgerow;

import java.util.Arrays;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NullsLast$;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.ScalarSubquery;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import scala.Option;

/**
 * A threshold for the first rows of an order, which the query finds itself in a few files.
 *
 * <pre>
 *     Filter(condition AND (x &gt;= threshold OR x IS NULL))       threshold: IF(count(x) = k, min(x), last value)
 *       Relation                                                  Limit k
 *                                                                   Sort(x DESC NULLS LAST)
 *                                                                     Chain over a few files
 * </pre>
 *
 * These k rows have at least this value, whichever files they are from. So no row beyond it is among the first. Spark
 * compares the value with the bounds of row groups, and reads few of them. NULL stays for all orders.
 */
final class Threshold {
    private static final int MAX_ROWS = 10_000; // of a limit: they are sorted once more
    private static final Set<String> PUSHED =
        Set.of("tinyint", "smallint", "int", "bigint", "date", "timestamp", "timestamp_ntz");

    private Threshold() {}

    /** Returns whether Spark would compare a threshold with the bounds of row groups. */
    static boolean fits(LimitedRows limited) {
        Chain chain = limited.chain();
        return limited.first() != null
            && SQLConf.get().parquetFilterPushDown()
            && limited.rows() <= MAX_ROWS
            && chain.resolved(limited.first().child()) instanceof AttributeReference column
            && (column.dataType() instanceof DecimalType || PUSHED.contains(Scala.typeOf(column)))
            && !isPartition(column, chain.relation())
            && Scala.list(chain.over(chain.relation()).subqueriesAll()).isEmpty();
    }

    private static boolean isPartition(AttributeReference column, LogicalRelation relation) {
        String[] names = ((HadoopFsRelation) relation.relation()).partitionSchema().fieldNames();
        return Arrays.asList(names).contains(column.name());
    }

    /** Returns the condition that rows up to the threshold satisfy; `last`: no value comes after it. */
    static Expression condition(LimitedRows limited, LogicalRelation few, String last) {
        SortOrder first = limited.first();
        Expression column = limited.chain().resolved(first.child());
        Alias key = Scala.alias(first.child(), "x");
        AttributeReference x = (AttributeReference) key.toAttribute();
        LogicalPlan keys = new Project(Scala.seq(List.of(key)), limited.chain().over(few));
        SortOrder order = new SortOrder(x, first.direction(), NullsLast$.MODULE$, Scala.none());
        Literal k = new Literal((int) limited.rows(), DataTypes.IntegerType);
        LogicalPlan best = new GlobalLimit(k, new LocalLimit(k, new Sort(
            Scala.seq(List.of(order)), true, keys, Option.empty())));
        AggregateFunction end = limited.isDescending() ? new Min(x) : new Max(x);
        Expression isFull = new GreaterThanOrEqual(
            new Count(Scala.seq(List.of(x))).toAggregateExpression(), new Literal(limited.rows(), DataTypes.LongType));
        Alias value = Scala.alias(new If(isFull, end.toAggregateExpression(),
            new Literal(Values.value(last, column.dataType()), column.dataType())), "threshold");
        Expression threshold = new ScalarSubquery(
            new Aggregate(Scala.none(), Scala.seq(List.of(value)), best, Option.empty()),
            Scala.none(), NamedExpression.newExprId(), Scala.none(), Option.empty(), Option.empty(), Option.empty());
        return new Or(limited.isDescending()
            ? new GreaterThanOrEqual(column, threshold) : new LessThanOrEqual(column, threshold), new IsNull(column));
    }
}
