package hedgerow;

import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.annotation.JsonTypeInfo;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The messages between the JVM and the Python process that answers it, as JSON. The member "is" names the record;
 * `hedgerow/spark/wire.py` has a dataclass of the same name and fields for each.
 */
@JsonTypeInfo(use = JsonTypeInfo.Id.SIMPLE_NAME, property = "is")
public sealed interface Wire {
    /** Raised with every change of a record. Python names its own in `Lists`, its first message. */
    int VERSION = 13;

    // --- what Python says first ---

    /** The names that the rule looks up; a name on no list is unknown. */
    record Lists(
        int version,
        Set<String> expressions, // allowed classes
        Set<String> replaced, // classes that Spark replaces before the rule runs
        @JsonProperty("never_fail") Set<String> neverFail, // classes whose value no row makes an error
        @JsonProperty("whole_tasks") Set<String> wholeTasks, // operators that see the rows of a task together
        Set<String> repeatable, // operators and aggregates that give the same rows each time
        @JsonProperty("always_stored") Set<String> alwaysStored) // settings that count even at their defaults
        implements Wire {}

    // --- requests ---

    sealed interface Request extends Wire {}

    /** Asks which of these settings and reader options change nothing. Answered by `Harmless`. */
    record Judge(Set<String> settings, Set<String> options) implements Request {}

    /** Opens a table in a state, for a session and the columns that a query sees. Answered by `Opened`. */
    record Open(
        String path,
        long state,
        Map<String, String> settings,
        String schema,
        String delta) // the schema of a Delta table, with its columns' identities; null for Parquet
        implements Request {}

    /** Asks for the files that a query opens. Answered by `Chosen` or `Instead`. */
    record Choose(
        String handle,
        Condition where,
        boolean own, // true: no other files may be read instead of the table's
        List<String> columns, // those that the query reads; null: all
        List<JoinedRows> joined,
        List<EqualColumns> equal, // in all rows that the query needs
        List<Partner> partners) implements Request {}

    /**
     * The rows of the indexed files that a scan reads.
     *
     * @param runs the places where a run of files that the scan lists exactly once begins, and where it ends, in turn: a
     *     message of more than 8 kB to a Python that calls the JVM is slow
     * @param deletedIn the places of files with deleted rows
     * @param deleted how many rows these are; -1: not known
     */
    record ScannedRows(
        int[] runs, @JsonProperty("deleted_in") int[] deletedIn, long[] deleted)
        implements Wire {}

    /** The first term of an ORDER BY. */
    record Order(Side by, boolean descending, @JsonProperty("nulls_first") boolean nullsFirst) implements Wire {}

    /**
     * Asks for files that hold the first `rows` rows of an order, or any rows if it is null. Answered by `Chosen`, or,
     * with `probe`, by `Probe`. Here and below, `where` is the whole condition of the scan: a weaker one is not enough.
     */
    record ChooseRows(String handle, Condition where, ScannedRows scanned, Order order, long rows, boolean probe)
        implements Request {}

    /** Asks for these aggregates over files that need no scan. Answered by `Aggregated`. */
    record Aggregate(String handle, Condition where, ScannedRows scanned, List<Side> groups, List<AggregateValue> values)
        implements Request {}

    /** Asks which values of a column each file may hold. Answered by `Bounds`. */
    record KeyBounds(String handle, Side key) implements Request {}

    sealed interface AggregateValue extends Wire {}

    /** count(of) FILTER (WHERE where); `of` is null for count(*), `where` without a filter. */
    record Count(Side of, Condition where) implements AggregateValue {}

    /** sum(of) FILTER (WHERE where). */
    record Sum(Side of, Condition where, @JsonProperty("as_double") boolean asDouble) implements AggregateValue {}

    /** max(of), if `greatest`, or min(of), with the same filter. */
    record Extreme(Side of, boolean greatest, Condition where) implements AggregateValue {}

    /** A condition on the rows to which a foreign key leads, and on the rows to which their keys lead. */
    record JoinedRows(
        int number, // of the key
        String version,
        String root,
        String schema,
        Condition where,
        List<JoinedRows> joined) implements Wire {}

    /** An opened table whose rows a join needs, with their condition and the joined columns. */
    record Partner(String handle, Condition where, List<JoinedRows> joined, List<ColumnPair> columns) implements Wire {}

    /**
     * Equal columns of two rows.
     *
     * @param left a place among the `JoinedRows` of a request, each before those that its keys lead to; -1: the table
     */
    record EqualColumns(
        int left,
        @JsonProperty("left_column") String leftColumn,
        int right,
        @JsonProperty("right_column") String rightColumn,
        String type) implements Wire {}

    record ColumnPair(String mine, String theirs, String type) implements Wire {}

    // --- answers ---

    sealed interface Answer extends Wire {}

    record Harmless(Set<String> settings, Set<String> options) implements Answer {}

    /**
     * An opened table: the indexed files, the index's expressions as SQL, and the foreign keys that it follows.
     *
     * @param groups the number of row groups of each file that the index describes; empty if it describes none
     * @param starts where each of these row groups begins in its file, file after file
     */
    record Opened(
        String handle,
        String name,
        List<String> files,
        long[] sizes,
        int[] groups,
        long[] starts,
        List<Item> items,
        List<Key> joined) implements Answer {}

    record Item(int number, String text) implements Wire {}

    record Key(
        String name,
        int number,
        List<String> columns,
        List<String> others,
        List<String> types,
        String version,
        List<Item> items,
        List<Key> joined) implements Wire {}

    /** The files to open: a 1 or a 0 for each file of `Opened`, and for each of its row groups; empty: all are read. */
    record Chosen(String bits, String means, @JsonProperty("group_bits") String groupBits) implements Answer {}

    /**
     * The files in which a query looks for a threshold.
     *
     * @param lastValue no value comes after it
     * @param opened the files that may hold the first rows; null: WHERE says best which
     */
    record Probe(String bits, @JsonProperty("last_value") String lastValue, String opened) implements Answer {}

    /**
     * The aggregates over the skipped files.
     *
     * @param bits the files to scan, as in `Chosen`
     * @param rows for each group: its GROUP BY values, then its aggregates, as texts, with null for NULL
     */
    record Aggregated(String bits, List<List<String>> rows) implements Answer {}

    /**
     * The bounds of a column in all files: value i has place 2 i + 1, the gap before it has place 2 i.
     *
     * @param first the first place of each file of `Opened`; after `last` if it has no value
     * @param setOf for each file the number k of the set of its values, from `places[offsets[k]]` on; -1: not known
     * @param lookedUp so many keys may be looked up by `Choose`, for filters of look-ups know more; 0: there are none
     */
    record Bounds(
        List<String> values,
        int[] first,
        int[] last,
        @JsonProperty("set_of") int[] setOf,
        int[] offsets,
        int[] places,
        @JsonProperty("looked_up") int lookedUp) implements Answer {}

    /** Other files to read. `codes`: the values to keep of a hidden column; null: all rows. */
    record Instead(List<String> paths, long[] sizes, String column, long[] codes) implements Answer {}

    /** Why no file may be skipped. `again`: the next query may ask again; `forget`: the handle is no longer known. */
    record Refused(String reason, boolean again, boolean forget) implements Answer {}

    // --- conditions ---

    /** A condition in Spark's internal values, whose meaning no setting changes. Any other part is `Unknown`. */
    sealed interface Condition extends Wire {}

    record And(List<Condition> parts) implements Condition {}

    record Or(List<Condition> parts) implements Condition {}

    record Not(Condition part) implements Condition {}

    record Constant(Boolean value) implements Condition {}

    record IsNull(Side term) implements Condition {}

    record In(Side term, String type, List<String> values) implements Condition {}

    record Compare(Side left, String op, Side right) implements Condition {}

    /** A condition that the index has, by its number. */
    record Indexed(int item) implements Condition {}

    record Unknown() implements Condition {}

    sealed interface Side extends Wire {}

    /** A data column by its whole path. `cast`: the wider numeric type that it is compared in; null: its own. */
    record Column(List<String> path, String type, String cast) implements Side {}

    /** An expression that the index has, by its number. */
    record Expression(int item, String type) implements Side {}

    record Value(String text, String type) implements Side {}

    // --- what Python reads from the JVM ---

    /** The version of a table that a relation reads whole, and the reader options that it was read with. */
    record TableVersion(String version, Set<String> options) implements Wire {}

    /**
     * The decision on one scan. `reason`: why the index, or what it knows of joined rows, was not used; null if it was.
     * `means`: "where", "look-up" if filters of look-ups skipped more, or how fewer files were needed than by WHERE:
     * "top-k", "limit" or "aggregates"; "probe" for the files that are read first to find a threshold.
     *
     * @param filesRead those that keys of joins left at run time; null if they have not chosen
     * @param keys the places that these keys have among the bounds of the files, or their number if they are looked up
     * @param keySeconds until the keys were there and had chosen
     */
    record ScanReport(
        String table,
        long files,
        @JsonProperty("files_opened") long filesOpened,
        long bytes,
        @JsonProperty("bytes_opened") long bytesOpened,
        double seconds,
        String reason,
        String means,
        @JsonProperty("files_read") Long filesRead,
        @JsonProperty("bytes_read") Long bytesRead,
        Long keys,
        @JsonProperty("key_seconds") Double keySeconds) implements Wire {
        static final String WHERE = "where";
        static final String PROBE = "probe";

        /** Returns the same decision after keys of joins have skipped more. */
        ScanReport after(long files, long bytes, long keys, double keySeconds) {
            return new ScanReport(table, this.files, filesOpened, this.bytes, bytesOpened, seconds, reason, means,
                filesOpened - files, bytesOpened - bytes, keys, keySeconds);
        }
    }

    /** The scans of a query that has ended. `at`: milliseconds since 1970 at its start; `lost`: unnoted queries before it. */
    record QueryNote(long execution, long at, double seconds, List<ScanNote> scans, List<ScanJoin> joins)
        implements Wire {}

    record ScanNote(
        String root,
        List<String> where,
        List<String> keys,
        Set<String> columns,
        long files,
        long bytes,
        long rows,
        long kept,
        String kind,
        String means,
        long listed)
        implements Wire {}

    /** Rows of a scan matter only if their columns equal those of a row of another; the scans by their places. */
    record ScanJoin(int scan, List<String> columns, int other, @JsonProperty("other_columns") List<String> otherColumns)
        implements Wire {}

    record QueryNotes(long lost, List<QueryNote> notes) implements Wire {}

    // --- JSON ---

    static String write(Object message) {
        try {
            return Json.MAPPER.writeValueAsString(message);
        } catch (JsonProcessingException error) {
            throw new IllegalStateException(error);
        }
    }

    static Answer readAnswer(String text) throws JsonProcessingException {
        return Json.MAPPER.readValue(text, Answer.class);
    }

    /** Reads Python's first message. */
    static Lists readLists(String text) throws JsonProcessingException {
        int version = Json.MAPPER.readTree(text).path("version").asInt();
        if (version != VERSION) {
            throw new IllegalStateException("the jar and the Python package are of different versions of Hedgerow");
        }
        return Json.MAPPER.readValue(text, Lists.class);
    }
}

/** The mapper, made when the first message is written or read. */
final class Json {
    static final ObjectMapper MAPPER = new ObjectMapper();

    static {
        MAPPER.registerSubtypes(Wire.Answer.class.getPermittedSubclasses());
    }

    private Json() {}
}
