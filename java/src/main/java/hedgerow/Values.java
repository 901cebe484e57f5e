package hedgerow;

import java.math.BigDecimal;
import java.util.HexFormat;
import java.util.Set;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.unsafe.types.UTF8String;

/** Reads Spark's internal values from their texts in Python's answers. */
final class Values {
    private static final Set<String> ORDERED = Set.of("tinyint", "smallint", "int", "bigint", "float", "double",
        "boolean", "binary", "date", "timestamp", "timestamp_ntz", "string"); // of no collation

    private Values() {}

    /** Returns whether the index orders values of this type as Spark does. */
    static boolean areOrdered(DataType type) {
        return type instanceof DecimalType || ORDERED.contains(type.catalogString());
    }

    /** Returns the value of an ordered type that a text stands for; null for null. */
    static Object value(String text, DataType type) {
        if (text == null) {
            return null;
        }
        if (type instanceof DecimalType decimal) {
            return Decimal.apply(new BigDecimal(text), decimal.precision(), decimal.scale());
        }
        return switch (type.catalogString()) {
            case "string" -> UTF8String.fromString(text);
            case "binary" -> HexFormat.of().parseHex(text);
            case "boolean" -> Boolean.valueOf(text);
            case "double" -> Double.valueOf(text);
            case "float" -> (float) Double.parseDouble(text);
            case "tinyint" -> Byte.valueOf(text);
            case "smallint" -> Short.valueOf(text);
            case "int", "date" -> Integer.valueOf(text);
            default -> Long.valueOf(text);
        };
    }
}
