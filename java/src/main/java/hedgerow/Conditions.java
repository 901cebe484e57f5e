package hedgerow;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Contains;
import org.apache.spark.sql.catalyst.expressions.EndsWith;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.GreaterThan;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.LessThan;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Like;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.StartsWith;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Writes conditions for Python: connectives, comparisons of columns and indexed expressions with literals of the same
 * type in Spark's internal form, and indexed conditions. Any other part is unknown.
 *
 * @param items the numbers of the index's expressions, as normal trees
 */
record Conditions(Map<Expression, Integer> items) {
    private static final Wire.Condition UNKNOWN = new Wire.Unknown();
    private static final Map<String, String> FLIPPED = Map.of("<", ">", "<=", ">=", ">", "<", ">=", "<=");

    /** Returns the message for a condition that is a normal tree. */
    Wire.Condition of(Expression e) {
        Integer item = isBoolean(e) ? items.get(e) : null;
        Wire.Condition plain = plain(e);
        if (item == null) {
            return plain;
        }
        Wire.Condition indexed = new Wire.Indexed(item);
        return plain.equals(UNKNOWN) ? indexed : new Wire.And(List.of(indexed, plain));
    }

    private Wire.Condition plain(Expression e) {
        if (e instanceof And and) {
            return new Wire.And(List.of(of(and.left()), of(and.right())));
        }
        if (e instanceof Or or) {
            return new Wire.Or(List.of(of(or.left()), of(or.right())));
        }
        if (e instanceof Not not) {
            return new Wire.Not(of(not.child()));
        }
        if (e instanceof IsNull is) {
            return isNull(is.child());
        }
        if (e instanceof IsNotNull is) {
            Wire.Condition isNull = isNull(is.child());
            return isNull.equals(UNKNOWN) ? UNKNOWN : new Wire.Not(isNull);
        }
        if (e instanceof In in) {
            return listed(in.value(), valuesOf(in));
        }
        if (e instanceof InSet in) {
            return listed(in.child(), Scala.set(in.hset()));
        }
        if (e instanceof Literal literal && isBoolean(e)) {
            return new Wire.Constant((Boolean) literal.value());
        }
        if (isBoolean(e) && (e instanceof AttributeReference || e instanceof GetStructField)) {
            return compare(term(e), "=", new Wire.Value("true", "boolean"));
        }
        String op = opOf(e);
        return op == null ? UNKNOWN : compare(Scala.list(e.children()).get(0), op, Scala.list(e.children()).get(1));
    }

    private static boolean isBoolean(Expression e) {
        return e.dataType() instanceof BooleanType;
    }

    private Wire.Condition isNull(Expression e) {
        Wire.Side term = term(e);
        return term == null ? UNKNOWN : new Wire.IsNull(term);
    }

    private Wire.Condition compare(Expression left, String op, Expression right) {
        if (!left.dataType().equals(right.dataType())) {
            return UNKNOWN;
        }
        Days days = new Days(items);
        Days.Range range = days.of(left, right);
        Wire.Condition byDays = range == null ? UNKNOWN : onDays(range, op);
        if (byDays.equals(UNKNOWN)) {
            range = days.of(right, left);
            byDays = range == null ? UNKNOWN : onDays(range, FLIPPED.getOrDefault(op, op));
        }
        return byDays.equals(UNKNOWN) ? compare(side(left), op, side(right)) : byDays;
    }

    private static Wire.Condition compare(Wire.Side left, String op, Wire.Side right) {
        return left == null || right == null ? UNKNOWN : new Wire.Compare(left, op, right);
    }

    /** Returns a comparison of a timestamp's date as a comparison of the timestamp. */
    private Wire.Condition onDays(Days.Range day, String op) {
        return switch (op) {
            case "=" -> {
                Wire.Condition from = at(day, ">=", day.start());
                yield from.equals(UNKNOWN) ? UNKNOWN : new Wire.And(List.of(from, at(day, "<", day.end())));
            }
            case "<" -> at(day, "<", day.start());
            case "<=" -> at(day, "<", day.end());
            case ">" -> at(day, ">=", day.end());
            case ">=" -> at(day, ">=", day.start());
            default -> UNKNOWN;
        };
    }

    private Wire.Condition at(Days.Range day, String op, long micros) {
        return compare(term(day.column()), op, value(micros, day.column().dataType()));
    }

    private static Collection<Object> valuesOf(In in) {
        List<Object> values = new ArrayList<>();
        for (Expression one : Scala.list(in.list())) {
            boolean isSame = one instanceof Literal && one.dataType().equals(in.value().dataType());
            values.add(isSame ? ((Literal) one).value() : null);
        }
        return values;
    }

    private Wire.Condition listed(Expression value, Collection<Object> values) {
        Wire.Side term = term(value);
        if (term == null || values.isEmpty()) { // Spark says that NULL is not in an empty list
            return UNKNOWN;
        }
        List<String> texts = new ArrayList<>(values.size());
        for (Object one : values) {
            Wire.Value text = value(one, value.dataType());
            if (text == null) {
                return UNKNOWN;
            }
            texts.add(text.text());
        }
        return new Wire.In(term, Scala.typeOf(value), texts);
    }

    private static String opOf(Expression e) {
        return e instanceof EqualTo ? "=" : e instanceof EqualNullSafe ? "<=>" : e instanceof LessThan ? "<"
            : e instanceof LessThanOrEqual ? "<=" : e instanceof GreaterThan ? ">"
            : e instanceof GreaterThanOrEqual ? ">=" : e instanceof StartsWith ? "starts"
            : e instanceof EndsWith ? "ends" : e instanceof Contains ? "contains"
            : e instanceof Like like && like.escapeChar() == '\\' ? "like" : null;
    }

    private Wire.Side side(Expression e) {
        return e instanceof Literal literal ? value(literal.value(), e.dataType()) : term(e);
    }

    /** Returns the message for a data column, a wider cast of one, or an expression of the index; null for others. */
    Wire.Side term(Expression e) {
        boolean isColumn = e instanceof AttributeReference || e instanceof GetStructField;
        Integer item = isColumn ? null : items.get(e);
        if (item != null) {
            return new Wire.Expression(item, Scala.typeOf(e));
        }
        if (e instanceof Cast cast) {
            return widens(cast) ? column(cast.child(), Scala.typeOf(cast)) : null;
        }
        return column(e, null);
    }

    private static boolean widens(Cast cast) {
        DataType from = cast.child().dataType();
        DataType to = cast.dataType();
        return from instanceof NumericType && to instanceof NumericType
            && (Cast.canUpCast(from, to) || to instanceof DoubleType);
    }

    private static Wire.Column column(Expression e, String cast) {
        LinkedList<String> path = new LinkedList<>();
        Expression at = e;
        while (at instanceof GetStructField field) {
            path.addFirst(field.childSchema().fields()[field.ordinal()].name());
            at = field.child();
        }
        if (!(at instanceof AttributeReference column) || !column.exprId().equals(NormalTree.NO_ID)) {
            return null; // no column of the relation
        }
        path.addFirst(column.name());
        return new Wire.Column(path, Scala.typeOf(e), cast);
    }

    /** Returns Spark's internal form of a value, the same in every session; null for a value that has none. */
    private static Wire.Value value(Object value, DataType type) {
        String text = textOf(value, type);
        return text == null ? null : new Wire.Value(text, type.catalogString());
    }

    private static String textOf(Object value, DataType type) {
        if (value instanceof UTF8String string) {
            // No text that a collation compares, and none that is not valid UTF-8.
            boolean isPlain = type.catalogString().equals("string")
                && UTF8String.fromString(string.toString()).equals(string);
            return isPlain ? string.toString() : null;
        }
        if (value instanceof Float number) {
            return Double.toString(number.doubleValue());
        }
        if (value instanceof Decimal number) {
            return number.toJavaBigDecimal().toPlainString();
        }
        if (value instanceof byte[] bytes) {
            return HexFormat.of().formatHex(bytes);
        }
        return value instanceof Number || value instanceof Boolean ? value.toString() : null;
    }
}
