package hedgerow;

import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;

/** The tables that Python has opened, remembered. */
final class OpenedTables {
    private static final int MAX_REMEMBERED = 100;

    private final Map<Scan.Key, Table> remembered = Collections.synchronizedMap(new HashMap<>());
    private final Python python;
    private final SessionSettings settings;

    OpenedTables(Python python) {
        this.python = python;
        this.settings = new SessionSettings(python);
    }

    /** A table's index in Python, under certain settings and for certain columns; or the reason why there is none. */
    record Table(
        Scan.Key key,
        String reason,
        String handle,
        String name,
        FileChoice index,
        Map<Expression, Integer> items, // the numbers of the index's expressions
        List<Wire.Key> joined, // the foreign keys whose rows the index describes
        Map<String, Map<Expression, Integer>> joinedItems,
        Set<List<?>> refused, // groups and aggregates that the index answers for no file
        Map<List<?>, Optional<FileBounds>> bounds) { // of columns, by the type of a join's key
        private static final int MAX_REFUSED = 1000;

        private static Table refused(Scan.Key key, String reason) {
            return new Table(key, reason, null, null, FileChoice.NONE, Map.of(), List.of(), Map.of(), Set.of(), Map.of());
        }

        void refuse(List<?> aggregates) {
            if (refused.size() < MAX_REFUSED) {
                refused.add(aggregates);
            }
        }
    }

    /** Returns the table that a scan reads. */
    Table open(Scan scan) {
        String unfit = settings.unfit(scan);
        if (unfit != null) {
            return Table.refused(null, unfit);
        }
        Map<String, StableFunctions.Declared> stable = StableFunctions.of(sessionOf(scan.relation()));
        Scan.Key key = scan.key(settings.relevant(SQLConf.get(), stable), stable);
        Table table = remembered.get(key);
        if (table != null) {
            return table;
        }
        Wire.Answer answer = python.ask(
            new Wire.Open(scan.root(), key.state(), key.settings(), key.schema(), key.deltaSchema()));
        if (answer instanceof Wire.Opened opened) {
            table = new Table(key, null, opened.handle(), opened.name(),
                FileChoice.of(opened.files(), opened.sizes(), opened.groups(), opened.starts()),
                itemsOf(key, scan.relation(), opened.items()), opened.joined(), new ConcurrentHashMap<>(), ConcurrentHashMap.newKeySet(),
                new ConcurrentHashMap<>());
        } else {
            Wire.Refused refused = (Wire.Refused) answer;
            table = Table.refused(key, refused.reason());
            if (refused.again()) {
                return table;
            }
        }
        if (remembered.size() >= MAX_REMEMBERED) {
            remembered.clear();
        }
        remembered.put(key, table);
        return table;
    }

    /** Returns which keys of a type each file of a table may hold in a column; null if that is not known. */
    FileBounds bounds(Table table, LogicalRelation relation, AttributeReference column, DataType key) {
        Wire.Side side = new Conditions(Map.of()).term(NormalTree.over(relation).of(column));
        List<?> name = List.of(side, key);
        if (!table.bounds.containsKey(name)) {
            Wire.Answer answer = python.ask(new Wire.KeyBounds(table.handle, side));
            if (answer instanceof Wire.Refused refused && (refused.again() || refused.forget())) {
                return null;
            }
            FileBounds bounds = answer instanceof Wire.Bounds found ? FileBounds.of(found, key) : null;
            table.bounds.put(name,
                Optional.ofNullable(bounds).filter(known -> known.areOf(table.index.count())));
        }
        return table.bounds.get(name).orElse(null);
    }

    void forget(Table table) {
        remembered.remove(table.key);
    }

    private static SparkSession sessionOf(LogicalRelation relation) {
        return (SparkSession) ((HadoopFsRelation) relation.relation()).sparkSession();
    }

    /** Returns the index's expressions, recognised in a relation; none if a function was declared anew meanwhile. */
    private Map<Expression, Integer> itemsOf(Scan.Key key, LogicalRelation relation, List<Wire.Item> items) {
        Map<Expression, Integer> found =
            new IndexedExpressions(python.allowed().with(key.stable().keySet())).of(relation, items);
        return key.stable().equals(StableFunctions.of(sessionOf(relation))) ? found : Map.of();
    }

    /** Returns the version of the table that a relation reads whole; null if it may not be known what it reads. */
    String version(LogicalRelation relation) {
        Wire.TableVersion read = ScannedFiles.versionOf(relation);
        return read == null || settings.unusualOption(read.options()) != null ? null : read.version();
    }

    /** Returns the index's expressions over joined rows, recognised in the table that these rows come from. */
    Map<Expression, Integer> itemsOf(Table table, Wire.Key key, LogicalRelation other) {
        return table.joinedItems.computeIfAbsent(
            key.name() + "\n" + other.schema().json(), name -> itemsOf(table.key, other, key.items()));
    }
}
