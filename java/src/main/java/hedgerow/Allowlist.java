package hedgerow;

import java.util.Locale;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.analysis.SQLScalarFunction;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.Like;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.expressions.RuntimeReplaceable;
import org.apache.spark.sql.catalyst.expressions.ScalaUDF;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.AtomicType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DatetimeType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Which expressions and operators skipping is sound under: the lists of `spark/judged.py`, and what they leave open.
 *
 * @param functions the names of users' functions that are declared stable
 */
record Allowlist(Wire.Lists lists, Set<String> functions) {
    private static final String HOME = "org.apache.spark.sql.catalyst.expressions.";
    /** A text that begins with a year, so that it names a day by itself. */
    private static final Pattern DATED = Pattern.compile("^\\s*[+-]?\\d{4,}(-|\\s*$)");
    /** The types that become dates and timestamps without the clock. */
    private static final Pattern NO_TEXT = Pattern.compile(
        "date|timestamp.*|void|boolean|tinyint|smallint|int|bigint|float|double|decimal.*");

    Allowlist(Wire.Lists lists) {
        this(lists, Set.of());
    }

    Allowlist with(Set<String> stable) {
        return new Allowlist(lists, stable);
    }

    /** Returns whether an operator sees the rows of a task together. */
    boolean seesWholeTasks(LogicalPlan plan) {
        return lists.wholeTasks().contains(plan.getClass().getSimpleName());
    }

    /** Returns whether an operator or aggregate function gives the same rows each time it runs. */
    boolean isRepeatable(Object part) {
        return lists.repeatable().contains(part.getClass().getSimpleName());
    }

    /** Returns whether nothing in it, as it was analysed, reads the clock, the session or anything but the row. */
    boolean isSteady(Expression e) {
        if (e instanceof SQLScalarFunction sql) { // a function that its body calls may be replaced by another
            return functions.contains(lower(sql.function().name().funcName()))
                && new Allowlist(lists).isSteady(sql.child());
        }
        String name = nameOf(e);
        return (lists.expressions().contains(name) || lists.replaced().contains(name) || isDeclared(e))
            && !(e instanceof Cast cast && readsClock(cast))
            && !(e instanceof RuntimeReplaceable replaced && !isSteady(replaced.replacement()))
            && Scala.list(e.children()).stream().allMatch(this::isSteady);
    }

    /** Returns whether its classes are all on the list, no text is compared by a collation, and equal trees mean the same. */
    boolean knows(Expression e) {
        return (lists.expressions().contains(nameOf(e)) || isDeclared(e))
            && e.deterministic()
            && !Scala.typeOf(e).contains("collate")
            && !(e instanceof Literal literal && mayBeZero(literal))
            && !(e instanceof Cast cast && showsNested(cast))
            && !(e instanceof In in && Scala.list(in.list()).isEmpty())
            && !(e instanceof InSet in && Scala.set(in.hset()).isEmpty())
            && Scala.list(e.children()).stream().allMatch(this::knows);
    }

    /** Returns whether no row makes it fail, in any session. */
    boolean neverFails(Expression e) {
        return lists.neverFail().contains(nameOf(e))
            && !(e instanceof Cast cast && mayFail(cast))
            && !(e instanceof Like like && mayFail(like))
            && Scala.list(e.children()).stream().allMatch(this::neverFails);
    }

    /** Returns whether it calls a declared function in Python, Java or Scala. */
    private boolean isDeclared(Expression e) {
        String name = e instanceof PythonUDF python ? python.name()
            : e instanceof ScalaUDF scala && scala.udfName().isDefined() ? scala.udfName().get() : null;
        return name != null && e.deterministic() && functions.contains(lower(name));
    }

    private static String lower(String name) {
        return name.toLowerCase(Locale.ROOT);
    }

    private static boolean mayFail(Cast cast) {
        DataType from = cast.child().dataType();
        DataType to = cast.dataType();
        boolean isWider = from instanceof NumericType && to instanceof NumericType && Cast.canUpCast(from, to);
        boolean isText = from instanceof AtomicType && Scala.typeOf(cast).equals("string");
        boolean isDay = from instanceof DatetimeType && to instanceof DateType;
        return !(isWider || isText || isDay);
    }

    /** Returns whether its pattern may be no valid one. */
    private static boolean mayFail(Like like) {
        return !(like.right() instanceof Literal pattern && pattern.value() instanceof UTF8String text)
            || text.toString().indexOf(like.escapeChar()) >= 0;
    }

    /** Returns the class of an expression of Spark's own, as the lists name it; nothing for any other. */
    private static String nameOf(Expression e) {
        String name = e.getClass().getName();
        return name.startsWith(HOME) ? name.substring(HOME.length()) : "";
    }

    /** Returns whether the literal is a zero, or a nested value that may hold one: -0.0 and 0.0 are equal in Scala. */
    private static boolean mayBeZero(Literal literal) {
        Object value = literal.value();
        return (value instanceof Double || value instanceof Float) && ((Number) value).doubleValue() == 0
            || !(value == null || value instanceof Number || value instanceof Boolean || value instanceof UTF8String
                || value instanceof Decimal || value instanceof byte[]);
    }

    /** Returns whether it casts an array, map or struct to text, which depends on a setting that is read at the cast. */
    private static boolean showsNested(Cast cast) {
        return cast.dataType() instanceof StringType
            && (cast.child().dataType() instanceof ArrayType || cast.child().dataType() instanceof MapType
                || cast.child().dataType() instanceof StructType);
    }

    /** Returns whether its value depends on the day: 'today' as a date, or a time without a date as a timestamp. */
    private static boolean readsClock(Cast cast) {
        String to = Scala.typeOf(cast);
        String from = Scala.typeOf(cast.child());
        if (!to.contains("timestamp") && !to.contains("date") || NO_TEXT.matcher(from).matches()) {
            return false;
        }
        Object text = cast.child() instanceof Literal literal ? literal.value() : "";
        if (text == null || text instanceof UTF8String && DATED.matcher(text.toString()).find()) {
            return false;
        }
        // In a column, 'today' is no date.
        return !(to.equals("date") && from.equals("string") && !cast.child().foldable());
    }
}
