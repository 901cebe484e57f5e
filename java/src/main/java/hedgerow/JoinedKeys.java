package hedgerow;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeSet;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.execution.InputAdapter;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.exchange.BroadcastExchangeExec;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec;
import org.apache.spark.sql.execution.joins.HashedRelation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.Iterator;

/**
 * The keys of a broadcast, as a condition on the column of the other side that has to equal one of them. A layout can be
 * learned from them, for no condition of the query tells which keys it needs.
 *
 * @param type of the keys; the column's may be narrower
 */
record JoinedKeys(ExprId column, HashedRelation keys, DataType type) {
    private static final long MOST_ROWS = 200_000; // of a broadcast
    private static final int MOST_LISTED = 100;
    private static final int MOST_RANGES = 8;

    /** Returns the keys of a join that has run; null if they are not known, or the other side keeps rows without one. */
    static JoinedKeys of(BroadcastHashJoinExec join) {
        String kind = join.joinType().toString();
        boolean isBuiltLeft = join.buildSide().toString().equals("BuildLeft");
        List<Expression> streamed = Scala.list(isBuiltLeft ? join.rightKeys() : join.leftKeys());
        BroadcastExchangeExec built = broadcast(isBuiltLeft ? join.left() : join.right());
        AttributeReference column = streamed.size() == 1 ? RunTimeJoins.column(streamed.get(0)) : null;
        boolean isKnown = built != null && column != null && (kind.equals("Inner") || kind.equals("LeftSemi"))
            && isWithin(Scala.map(built.metrics()).get("numOutputRows").value());
        return isKnown && built.executeBroadcast().value() instanceof HashedRelation keys
            ? new JoinedKeys(column.exprId(), keys, streamed.get(0).dataType()) : null;
    }

    private static boolean isWithin(long rows) {
        return rows > 0 && rows <= MOST_ROWS; // without rows, it may never have run
    }

    private static BroadcastExchangeExec broadcast(SparkPlan plan) {
        return plan instanceof BroadcastExchangeExec exchange ? exchange
            : plan instanceof QueryStageExec stage ? broadcast(stage.plan())
            : plan instanceof ReusedExchangeExec reused ? broadcast(reused.child())
            : plan instanceof InputAdapter adapter ? broadcast(adapter.child()) : null;
    }

    /** Returns the keys, ascending. */
    private TreeSet<Object> values() {
        TreeSet<Object> values = new TreeSet<>();
        Iterator<InternalRow> rows = keys.asReadOnlyCopy().keys();
        while (rows.hasNext()) {
            InternalRow row = rows.next();
            if (!row.isNullAt(0)) {
                Object value = row.get(0, type);
                values.add(value instanceof UTF8String text ? text.clone() : value);
            }
        }
        return values;
    }

    /**
     * Returns the condition that a column has one of the keys: a few ranges of neighbours, else a list, else ranges. None
     * if it cannot have any.
     */
    Optional<Expression> on(AttributeReference column) {
        List<Literal> literals = values().stream().map(value -> literal(value, column.dataType()))
            .filter(Objects::nonNull).toList();
        if (literals.isEmpty()) {
            return Optional.empty();
        }
        int last = literals.size() - 1;
        List<Integer> gaps = IntStream.range(0, last).boxed().filter(place -> gap(literals, place) != 1).toList();
        if (gaps.size() >= Math.min(MOST_RANGES, last) && literals.size() <= MOST_LISTED) {
            return Optional.of(new In(column, Scala.seq(literals)));
        }
        List<Integer> ends = new ArrayList<>(gaps.stream().filter(place -> gap(literals, place) > 1)
            .sorted(Comparator.comparingDouble((Integer place) -> -gap(literals, place)))
            .limit(MOST_RANGES - 1).sorted().toList());
        ends.add(last);
        Expression found = null;
        int start = 0;
        for (int end : ends) {
            Expression range = new And(new GreaterThanOrEqual(column, literals.get(start)),
                new LessThanOrEqual(column, literals.get(end)));
            found = found == null ? range : new Or(found, range);
            start = end + 1;
        }
        return Optional.of(found);
    }

    /** Returns the distance from a number to the next one; 0 for values of other kinds. */
    private static double gap(List<Literal> literals, int place) {
        return literals.get(place).value() instanceof Number value && literals.get(place + 1).value() instanceof Number next
            ? next.doubleValue() - value.doubleValue() : 0;
    }

    /** Returns a key as a value of a column, whose type may be narrower; null if the column cannot have it. */
    private static Literal literal(Object value, DataType type) {
        if (!(value instanceof Number number)) {
            return new Literal(value, type);
        }
        Number narrow = switch (Scala.typeOf(type)) {
            case "tinyint" -> number.byteValue();
            case "smallint" -> number.shortValue();
            case "int", "date" -> number.intValue();
            default -> number.longValue();
        };
        return narrow.longValue() == number.longValue() ? new Literal(narrow, type) : null;
    }
}
