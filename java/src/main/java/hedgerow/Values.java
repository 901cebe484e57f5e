package hedgerow;

import java.math.BigDecimal;
import java.util.HexFormat;
import java.util.Set;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.unsafe.types.UTF8String;

/** Reads Spark's internal values from their texts in Python's answers. */
final class Values {
    private static final Set<String> OTHERS = Set.of("bigint", "timestamp", "timestamp_ntz", "string");

    private Values() {}

    /** Returns whether the index orders values of this type as Spark does; not texts that a collation compares. */
    static boolean areOrdered(DataType type) {
        return type instanceof ByteType || type instanceof ShortType || type instanceof IntegerType
            || type instanceof DateType || type instanceof FloatType || type instanceof DoubleType
            || type instanceof DecimalType || type instanceof BooleanType || type instanceof BinaryType
            || OTHERS.contains(type.catalogString());
    }

    /** Returns the value that a text stands for; null for null. */
    static Object value(String text, DataType type) {
        if (text == null) {
            return null;
        }
        if (type instanceof StringType) {
            return UTF8String.fromString(text);
        }
        if (type instanceof ByteType) {
            return Byte.valueOf(text);
        }
        if (type instanceof ShortType) {
            return Short.valueOf(text);
        }
        if (type instanceof IntegerType || type instanceof DateType) {
            return Integer.valueOf(text);
        }
        if (type instanceof FloatType) {
            return (float) Double.parseDouble(text);
        }
        if (type instanceof DoubleType) {
            return Double.valueOf(text);
        }
        if (type instanceof DecimalType decimal) {
            return Decimal.apply(new BigDecimal(text), decimal.precision(), decimal.scale());
        }
        if (type instanceof BooleanType) {
            return Boolean.valueOf(text);
        }
        return type instanceof BinaryType ? HexFormat.of().parseHex(text) : (Object) Long.valueOf(text);
    }
}
