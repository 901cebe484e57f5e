package hedgerow;

import java.time.Instant;
import java.time.LocalDate;
import java.time.ZoneId;
import java.time.zone.ZoneOffsetTransition;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/**
 * Turns a date of a timestamp into a range of timestamps. Spark casts by Java's rules of time zones, which differ from
 * Python's in some zones. So only Java does this for queries.
 *
 * @param items the expressions of the index, which are compared as they are
 */
record Days(Map<Expression, Integer> items) {
    private static final long DAY = 86_400L; // seconds
    private static final long FIRST = -60_000, LAST = 200_000; // days since 1970: about the years 1806 to 2517
    private static final long MARGIN = 3 * DAY;

    /** The timestamps of a day, in microseconds: `start` belongs to it, `end` does not. */
    record Range(Expression column, long start, long end) {}

    /** Returns the range of `CAST(column AS DATE)` at a literal; null for others, and near a change of the zone's clock. */
    Range of(Expression dated, Expression literal) {
        if (!(dated instanceof Cast cast && cast.dataType() instanceof DateType && literal instanceof Literal value)
                || value.value() == null || items.containsKey(dated)) {
            return null;
        }
        Expression column = cast.child();
        boolean isLocal = column.dataType() instanceof TimestampNTZType;
        long day = ((Integer) value.value()).longValue();
        if (!isLocal && !(column.dataType() instanceof TimestampType) || day < FIRST || day > LAST) {
            return null;
        }
        if (isLocal) {
            return new Range(column, micros(day * DAY), micros((day + 1) * DAY));
        }
        ZoneId zone = cast.zoneId();
        Instant before = Instant.ofEpochSecond(day * DAY - MARGIN);
        ZoneOffsetTransition next = zone.getRules().nextTransition(before);
        if (next != null && next.getInstant().getEpochSecond() < (day + 1) * DAY + MARGIN) {
            return null;
        }
        return new Range(column, micros(startOf(day, zone)), micros(startOf(day + 1, zone)));
    }

    private static long startOf(long day, ZoneId zone) {
        return LocalDate.ofEpochDay(day).atStartOfDay(zone).toEpochSecond();
    }

    private static long micros(long seconds) {
        return seconds * 1_000_000L;
    }
}
