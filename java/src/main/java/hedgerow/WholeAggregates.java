package hedgerow;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.EvalMode;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.UnscaledValue;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.Average;
import org.apache.spark.sql.catalyst.expressions.aggregate.Complete$;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.Metadata;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * Counts, sums, minima and maxima over the rows of one scan, all together or by groups. The index knows their values
 * over the rows of some files.
 *
 * <pre>
 *     Aggregate(k, count(*))          Aggregate(k, sum(part))
 *       Chain                           Union
 *                            ->           LocalRelation(k, part)           the files that match as a whole
 *                                         Aggregate(k, count(*) AS part)   the other files
 *                                           Chain
 * </pre>
 *
 * Spark computes an average from a sum and a count, so both take its place. It adds up integers as doubles, which is
 * exact while the sums are small.
 *
 * @param groups the columns of GROUP BY
 * @param functions the aggregates, by the id of their result
 * @param asDoubles those of the sums that Spark adds up as doubles
 */
record WholeAggregates(
        Aggregate node,
        Chain chain,
        List<AttributeReference> groups,
        Map<ExprId, AggregateExpression> functions,
        Set<ExprId> asDoubles) {
    /** Returns a plan as such aggregates; null if it is none. */
    static WholeAggregates of(Aggregate original) {
        Chain chain = Chain.of(original.child());
        if (chain == null) {
            return null;
        }
        Set<ExprId> asDoubles = new HashSet<>();
        Aggregate node = withoutAverages(original, asDoubles);
        List<AttributeReference> groups = new ArrayList<>();
        for (Expression group : Scala.list(node.groupingExpressions())) {
            if (!(group instanceof AttributeReference column) || !Values.areOrdered(column.dataType())) {
                return null;
            }
            groups.add(column);
        }
        Map<ExprId, AggregateExpression> functions = new LinkedHashMap<>();
        for (NamedExpression column : Scala.list(node.aggregateExpressions())) {
            collect((Expression) column, functions);
        }
        boolean areKnown = functions.values().stream().allMatch(WholeAggregates::isKnown);
        boolean isEmpty = groups.isEmpty() && functions.isEmpty();
        return isEmpty || !areKnown ? null : new WholeAggregates(node, chain, groups, functions, asDoubles);
    }

    private static Aggregate withoutAverages(Aggregate node, Set<ExprId> asDoubles) {
        List<NamedExpression> columns = Scala.list(node.aggregateExpressions()).stream()
            .map(column -> (NamedExpression) ((Expression) column).transformUp(Scala.rewrite(
                e -> e instanceof AggregateExpression function && function.aggregateFunction() instanceof Average average
                    ? quotient(function, average, asDoubles) : e)))
            .toList();
        return node.copy(node.groupingExpressions(), Scala.seq(columns), node.child(), node.hint());
    }

    /** Returns Spark's own last step of an average, over its sum and its count. */
    private static Expression quotient(AggregateExpression e, Average average, Set<ExprId> asDoubles) {
        List<AttributeReference> buffer = Scala.list(average.aggBufferAttributes());
        AggregateExpression sum = e.copy(
            new Sum(average.child()), e.mode(), e.isDistinct(), e.filter(), NamedExpression.newExprId());
        AggregateExpression count = e.copy(
            new Count(Scala.seq(List.of(average.child()))), e.mode(), e.isDistinct(), e.filter(),
            NamedExpression.newExprId());
        DataType type = buffer.get(0).dataType();
        if (type instanceof DoubleType) {
            asDoubles.add(sum.resultId());
        }
        Map<ExprId, Expression> parts = Map.of(
            buffer.get(0).exprId(), new Cast(sum, type, Option.empty(), EvalMode.LEGACY()),
            buffer.get(1).exprId(), count);
        return average.evaluateExpression().transformUp(Scala.rewrite(
            node -> node instanceof AttributeReference part ? parts.getOrDefault(part.exprId(), part) : node));
    }

    private static void collect(Expression e, Map<ExprId, AggregateExpression> functions) {
        if (e instanceof AggregateExpression function) {
            functions.put(function.resultId(), function);
        } else {
            Scala.list(e.children()).forEach(child -> collect(child, functions));
        }
    }

    private static boolean isKnown(AggregateExpression e) {
        AggregateFunction function = e.aggregateFunction();
        boolean isOrdered = (function instanceof Min || function instanceof Max) && Values.areOrdered(e.dataType());
        boolean isExact = function instanceof Sum
            && (e.dataType() instanceof LongType || e.dataType() instanceof DecimalType);
        return !e.isDistinct() && e.mode() == Complete$.MODULE$
            && (isOrdered || isExact || function instanceof Count count && Scala.list(count.children()).size() == 1);
    }

    /** Returns the argument; Spark sums short decimals as integers. */
    private static Expression argument(AggregateExpression e) {
        Expression first = Scala.list(e.aggregateFunction().children()).get(0);
        return first instanceof UnscaledValue unscaled ? unscaled.child() : first;
    }

    private static boolean countsRows(AggregateExpression e) {
        return e.aggregateFunction() instanceof Count && argument(e) instanceof Literal literal && literal.value() != null;
    }

    /** Returns whether a few rows can make a sum overflow, so that all rows must be known to have small values. */
    boolean sumsLongs() {
        return !asDoubles.isEmpty() || functions.values().stream().anyMatch(
            e -> e.aggregateFunction() instanceof Sum && argument(e).dataType() instanceof LongType);
    }

    /** Returns the columns of GROUP BY as Python reads them; null if it cannot. */
    List<Wire.Side> keys(Conditions conditions) {
        List<Wire.Side> keys = new ArrayList<>();
        groups.forEach(group -> keys.add(conditions.term(chain.normal(group))));
        return keys.contains(null) ? null : keys;
    }

    /** Returns the aggregates as Python reads them; null if it cannot, or if a row that is not read may fail. */
    List<Wire.AggregateValue> values(Conditions conditions, Allowlist allowed) {
        List<Wire.AggregateValue> found = new ArrayList<>();
        List<Expression> evaluated = new ArrayList<>();
        groups.forEach(group -> evaluated.add(chain.normal(group)));
        for (AggregateExpression e : functions.values()) {
            Expression filter = e.filter().isDefined() ? e.filter().get() : null;
            Expression of = chain.normal(argument(e));
            Wire.Side term = countsRows(e) ? null : conditions.term(of);
            if (term == null && !countsRows(e) || filter != null && !allowed.neverFails(filter)) {
                return null;
            }
            Wire.Condition where = filter == null ? null : conditions.of(chain.normal(filter));
            evaluated.add(of);
            found.add(e.aggregateFunction() instanceof Count ? new Wire.Count(term, where)
                : e.aggregateFunction() instanceof Sum ? new Wire.Sum(term, where, asDoubles.contains(e.resultId()))
                : new Wire.Extreme(term, e.aggregateFunction() instanceof Max, where));
        }
        return chain.neverFails(allowed, evaluated) ? found : null;
    }

    /**
     * Returns the aggregates as those of known rows and of a relation, added up.
     *
     * @param rows for each group its values, then those of the aggregates
     * @param rest null: there is no other file
     */
    LogicalPlan added(List<List<String>> rows, LogicalRelation rest) {
        List<AttributeReference> columns = new ArrayList<>();
        List<Alias> overRest = new ArrayList<>();
        Map<ExprId, Expression> results = new HashMap<>();
        for (AttributeReference group : groups) {
            AttributeReference column = column(group.name(), group, group.metadata());
            overRest.add(Scala.alias(group, column.name()));
            columns.add(column);
            results.put(group.exprId(), column);
        }
        Seq<Expression> keys = Scala.seq(columns);
        for (AggregateExpression e : functions.values()) {
            AttributeReference column = column("part" + columns.size(), e, Metadata.empty());
            overRest.add(Scala.alias(e, column.name()));
            columns.add(column);
            results.put(e.resultId(), rest == null ? column : total(e, column));
        }
        Seq<NamedExpression> output = Scala.seq(
            Scala.list(node.aggregateExpressions()).stream().map(column -> result(column, results)).toList());
        LogicalPlan known = new LocalRelation(
            Scala.seq(columns), Scala.seq(rows.stream().map(this::row).toList()), false, Option.empty());
        if (rest == null) {
            return new Project(output, known);
        }
        LogicalPlan scanned =
            node.copy(node.groupingExpressions(), Scala.seq(overRest), chain.over(rest), node.hint());
        return node.copy(keys, output, new Union(Scala.seq(List.of(known, scanned)), false, false), node.hint());
    }

    private static AttributeReference column(String name, Expression of, Metadata metadata) {
        return new AttributeReference(
            name, of.dataType(), of.nullable(), metadata, NamedExpression.newExprId(), Scala.none());
    }

    /** Returns an output column over the parts, under its name and id. */
    private static NamedExpression result(NamedExpression column, Map<ExprId, Expression> results) {
        Expression e = ((Expression) column).transformUp(Scala.rewrite(node -> results.getOrDefault(
            node instanceof AggregateExpression function ? function.resultId()
                : node instanceof AttributeReference group ? group.exprId() : null, node)));
        return column instanceof AttributeReference
            ? new Alias(e, column.name(), column.exprId(), column.qualifier(), Option.empty(), Scala.none())
            : (NamedExpression) e;
    }

    private InternalRow row(List<String> texts) {
        List<Object> values = new ArrayList<>();
        groups.forEach(group -> values.add(Values.value(texts.get(values.size()), group.dataType())));
        functions.values().forEach(e -> values.add(value(texts.get(values.size()), e)));
        return new GenericInternalRow(values.toArray());
    }

    private static Object value(String text, AggregateExpression e) {
        boolean isUnscaled = text != null && e.dataType() instanceof LongType
            && argument(e).dataType() instanceof DecimalType && e.aggregateFunction() instanceof Sum;
        return isUnscaled
            ? (Object) new BigDecimal(text).setScale(((DecimalType) argument(e).dataType()).scale())
                .unscaledValue().longValueExact()
            : Values.value(text, e.dataType());
    }

    private static Expression total(AggregateExpression e, AttributeReference part) {
        AggregateFunction function = e.aggregateFunction();
        if (function instanceof Count) {
            Expression sum = new Sum(part).toAggregateExpression();
            return new Coalesce(Scala.seq(List.of(sum, new Literal(0L, DataTypes.LongType)))); // never NULL, as a count
        }
        Expression total =
            ((AggregateFunction) function.withNewChildren(Scala.seq(List.of(part)))).toAggregateExpression();
        DataType type = e.dataType(); // a sum of decimals has more digits than they have
        return total.dataType().equals(type) ? total : new Cast(total, type, Option.empty(), EvalMode.ANSI());
    }
}
