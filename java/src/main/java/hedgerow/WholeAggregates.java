package hedgerow;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
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
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * Counts, minima and maxima over all rows of one scan, which the index knows of some files.
 *
 * <pre>
 *     Aggregate(count(*))             Aggregate(sum(part))
 *       Chain                           Union
 *                            ->           LocalRelation(part)           the files that match as a whole
 *                                         Aggregate(count(*) AS part)   the other files
 *                                           Chain
 * </pre>
 *
 * @param functions the aggregates, by the id of their result
 */
record WholeAggregates(Aggregate node, Chain chain, Map<ExprId, AggregateExpression> functions) {
    /** Returns a plan as such aggregates; null if it is none. */
    static WholeAggregates of(Aggregate node) {
        Chain chain = node.groupingExpressions().isEmpty() ? Chain.of(node.child()) : null;
        if (chain == null) {
            return null;
        }
        Map<ExprId, AggregateExpression> functions = new LinkedHashMap<>();
        for (NamedExpression column : Scala.list(node.aggregateExpressions())) {
            collect((Expression) column, functions);
        }
        boolean areKnown = functions.values().stream().allMatch(WholeAggregates::isKnown);
        return functions.isEmpty() || !areKnown ? null : new WholeAggregates(node, chain, functions);
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
        return !e.isDistinct() && e.mode() == Complete$.MODULE$
            && (isOrdered || function instanceof Count count && Scala.list(count.children()).size() == 1);
    }

    private static Expression argument(AggregateExpression e) {
        return Scala.list(e.aggregateFunction().children()).get(0);
    }

    private static boolean countsRows(AggregateExpression e) {
        return e.aggregateFunction() instanceof Count && argument(e) instanceof Literal literal && literal.value() != null;
    }

    /** Returns the aggregates as Python reads them; null if it cannot, or if a row that is not read may fail. */
    List<Wire.AggregateValue> values(Conditions conditions, Allowlist allowed) {
        List<Wire.AggregateValue> found = new ArrayList<>();
        List<Expression> evaluated = new ArrayList<>();
        for (AggregateExpression e : functions.values()) {
            Expression filter = e.filter().isDefined() ? e.filter().get() : null;
            Expression of = chain.normal(argument(e));
            Wire.Side term = countsRows(e) ? null : conditions.term(of);
            if (term == null && !countsRows(e) || filter != null && !allowed.neverFails(filter)) {
                return null;
            }
            Wire.Condition where = filter == null ? null : conditions.of(chain.normal(filter));
            evaluated.add(of);
            found.add(e.aggregateFunction() instanceof Count
                ? new Wire.Count(term, where) : new Wire.Extreme(term, e.aggregateFunction() instanceof Max, where));
        }
        return chain.neverFails(allowed, evaluated) ? found : null;
    }

    /** Returns the aggregates as the sum of these parts and of those over a relation; null: over no other file. */
    LogicalPlan added(List<String> parts, LogicalRelation rest) {
        List<AttributeReference> columns = new ArrayList<>();
        List<Alias> overRest = new ArrayList<>();
        List<Object> values = new ArrayList<>();
        Map<ExprId, Expression> totals = new HashMap<>();
        for (AggregateExpression e : functions.values()) {
            AttributeReference column = new AttributeReference("part" + columns.size(), e.dataType(), e.nullable(),
                Metadata.empty(), NamedExpression.newExprId(), Scala.none());
            totals.put(e.resultId(), rest == null ? column : total(e.aggregateFunction(), column));
            overRest.add(new Alias(
                e, column.name(), NamedExpression.newExprId(), Scala.none(), Option.empty(), Scala.none()));
            values.add(Values.value(parts.get(columns.size()), e.dataType()));
            columns.add(column);
        }
        Seq<InternalRow> row = Scala.seq(List.of(new GenericInternalRow(values.toArray())));
        Seq<Attribute> output = Scala.seq(columns);
        LogicalPlan known = new LocalRelation(output, row, false, Option.empty());
        Seq<NamedExpression> results = Scala.seq(Scala.list(node.aggregateExpressions()).stream()
            .map(column -> (NamedExpression) ((Expression) column).transformUp(Scala.rewrite(
                e -> e instanceof AggregateExpression function ? totals.get(function.resultId()) : e)))
            .toList());
        if (rest == null) {
            return new Project(results, known);
        }
        LogicalPlan scanned = node.copy(Scala.none(), Scala.seq(overRest), chain.over(rest), node.hint());
        return node.copy(Scala.none(), results, new Union(Scala.seq(List.of(known, scanned)), false, false), node.hint());
    }

    private static Expression total(AggregateFunction function, AttributeReference column) {
        if (function instanceof Count) {
            Expression sum = new Sum(column).toAggregateExpression();
            return new Coalesce(Scala.seq(List.of(sum, new Literal(0L, DataTypes.LongType)))); // never NULL, as a count
        }
        return (function instanceof Max ? new Max(column) : new Min(column)).toAggregateExpression();
    }
}
