package hedgerow;

import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.ObjectType;
import scala.Option;

/**
 * Which keys each file may hold. The bounds of all files stand on one line: value i has place 2 i + 1, and the gap before
 * it has place 2 i. A file may hold the keys from its first place to its last one, or those of its set.
 *
 * @param values an int[], a long[] or an Object[], sorted
 */
record FileBounds(Object values, Wire.Bounds files) {
    private static final List<String> INTEGERS = List.of("tinyint", "smallint", "int", "bigint");

    static FileBounds of(Wire.Bounds bounds, DataType key) {
        Stream<Object> values = bounds.values().stream().map(text -> Values.value(text, key));
        Class<?> kind = kindOf(key);
        Object sorted = kind == int.class ? values.mapToInt(value -> (Integer) value).toArray()
            : kind == long.class ? values.mapToLong(value -> (Long) value).toArray() : values.toArray();
        return new FileBounds(sorted, bounds);
    }

    /** Returns whether keys of a type can be found among the bounds of a column: no other value may equal a key. */
    static boolean fit(DataType key, DataType column) {
        int width = INTEGERS.indexOf(Scala.typeOf(column));
        boolean isWidened = width >= 0 && INTEGERS.indexOf(Scala.typeOf(key)) > width;
        return kindOf(key) != null && (isWidened || key.equals(column));
    }

    private static Class<?> kindOf(DataType key) {
        return key instanceof DecimalType ? Object.class : switch (Scala.typeOf(key)) {
            case "int", "date" -> int.class;
            case "bigint", "timestamp", "timestamp_ntz" -> long.class;
            case "string" -> Object.class; // of no collation
            default -> null;
        };
    }

    /** Returns where a key stands in the sorted values, as `Arrays.binarySearch` says it: Spark's executors know it. */
    Expression search(Expression key) {
        Expression sorted = new Literal(values, new ObjectType(values.getClass()));
        return new StaticInvoke(Arrays.class, DataTypes.IntegerType, "binarySearch", Scala.seq(List.of(sorted, key)),
            Scala.none(), true, false, true, Option.empty());
    }

    /** Returns the places of keys, or of the results of `search`. */
    BitSet places(Object[] keys, boolean areSearched) {
        BitSet places = new BitSet();
        for (Object key : keys) {
            if (key != null) {
                int found = areSearched ? (Integer) key : search(key);
                places.set(found >= 0 ? 2 * found + 1 : -2 * (found + 1));
            }
        }
        return places;
    }

    private int search(Object key) {
        return values instanceof int[] ints ? Arrays.binarySearch(ints, (Integer) key)
            : values instanceof long[] longs ? Arrays.binarySearch(longs, (Long) key)
            : Arrays.binarySearch((Object[]) values, key);
    }

    /** Returns whether a file may hold one of the keys at these places. */
    boolean mayHold(int file, BitSet keys) {
        int set = files.setOf()[file];
        if (set >= 0) {
            return Arrays.stream(files.places(), files.offsets()[set], files.offsets()[set + 1]).anyMatch(keys::get);
        }
        int next = keys.nextSetBit(files.first()[file]);
        return next >= 0 && next <= files.last()[file];
    }

    /** Returns whether keys have different places. If not, only filters of look-ups tell the files of a key apart. */
    boolean divide() {
        return !files.values().isEmpty();
    }

    /** Returns whether the bounds describe so many files. */
    boolean areOf(int count) {
        return files.first().length == count && files.last().length == count && files.setOf().length == count;
    }

    @Override
    public String toString() {
        return "bounds of " + files.first().length + " files";
    }
}
