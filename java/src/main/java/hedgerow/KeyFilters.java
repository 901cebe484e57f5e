package hedgerow;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.Literal;

/**
 * The filters of look-ups on a column, which tell the files that may hold one of a few keys. Python asks them as it does
 * for `column IN (...)`.
 *
 * @param handle of the table
 * @param column as a normal tree
 * @param choice the files that are skipped already
 * @param most so many keys may be looked up
 * @param leastBytes a look-up should choose among so many bytes of files for each key
 */
record KeyFilters(
        Python python, String handle, Expression column, FileChoice choice, int most, long leastBytes) {
    private static final long LEAST_BYTES = 1L << 20; // a look-up reads a block of the filter for each key

    static KeyFilters of(Python python, String handle, Expression column, FileChoice choice, int most) {
        return new KeyFilters(python, handle, column, choice, most,
            SessionSettings.number("hedgerow.runtimeBytes", LEAST_BYTES));
    }

    /**
     * Returns a 1 for each file that may hold one of these keys; null if that is not known, or too much work.
     *
     * @param isLeft whether the bounds leave a file
     */
    String files(Object[] keys, IntPredicate isLeft) {
        List<Literal> values = Arrays.stream(keys).filter(Objects::nonNull)
            .map(key -> new Literal(key, column.dataType())).toList();
        long left = IntStream.range(0, choice.count()).filter(file -> !choice.skips(file) && isLeft.test(file))
            .mapToLong(choice::bytesOf).sum();
        // A longer list may have been cut, so NULL counts, too.
        if (values.isEmpty() || keys.length > most || left < values.size() * Math.min(leastBytes, LEAST_BYTES)) {
            return null;
        }
        try {
            python.begin();
            Wire.Condition where = new Conditions(Map.of()).of(new In(column, Scala.seq(values)));
            Wire.Answer answer = python.ask(new Wire.Choose(handle, where, true, null, List.of(), List.of(), List.of()));
            return answer instanceof Wire.Chosen chosen && chosen.bits().length() == choice.count() ? chosen.bits() : null;
        } catch (RuntimeException error) {
            PruningRule.LOG.info("Hedgerow looks up no keys of a join: " + error);
            return null;
        }
    }
}
