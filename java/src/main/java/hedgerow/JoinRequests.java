package hedgerow;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/** Writes, for a scan, the conditions on rows of other tables that its joins need. */
record JoinRequests(OpenedTables tables) {
    /** `joined`: conditions on the rows to which foreign keys lead; `partners`: other managed tables in the joins. */
    record Requests(List<Wire.JoinedRows> joined, List<Wire.Partner> partners) {
        boolean isEmpty() {
            return joined.isEmpty() && partners.isEmpty();
        }
    }

    Requests of(LogicalRelation relation, OpenedTables.Table table, QueryPlan query) {
        if (!SessionSettings.isOn("hedgerow.joins") || query.edges().from(relation).isEmpty()) {
            return new Requests(List.of(), List.of());
        }
        return new Requests(
            joined(relation, table.joined(), table, query),
            SessionSettings.isOn("hedgerow.partners") ? partners(relation, query) : List.of());
    }

    private List<Wire.JoinedRows> joined(
            LogicalRelation from, List<Wire.Key> keys, OpenedTables.Table table, QueryPlan query) {
        List<Wire.JoinedRows> found = new ArrayList<>();
        for (Wire.Key key : keys) {
            query.edges().to(from, key).forEach(other -> {
                String version = tables.version(other);
                if (version != null && tableOf(version).equals(tableOf(key.version()))) {
                    Wire.Condition where = where(other, tables.itemsOf(table, key, other), query);
                    found.add(new Wire.JoinedRows(key.number(), version, deltaRoot(other), other.schema().json(),
                        where, joined(other, key.joined(), table, query)));
                }
            });
        }
        return found;
    }

    /** Returns the part of a version that tells one table from others: all but a Delta table's time and number. */
    private static String tableOf(String version) {
        return version.startsWith("delta ") ? version.split(" ")[1] : version;
    }

    private static String deltaRoot(LogicalRelation other) {
        ScannedFiles files = ScannedFiles.of(other);
        return files.isDelta() ? files.root() : "";
    }

    private static Wire.Condition where(LogicalRelation of, Map<Expression, Integer> items, QueryPlan query) {
        return new Conditions(items).of(NormalTree.over(of).of(query.edges().condition(of)));
    }

    private List<Wire.Partner> partners(LogicalRelation from, QueryPlan query) {
        List<Wire.Partner> found = new ArrayList<>();
        query.edges().from(from).forEach((other, pairs) -> {
            Scan scan = query.scan(other);
            OpenedTables.Table theirs = scan == null ? null : tables.open(scan);
            if (theirs != null && theirs.reason() == null && scan.isCovered(theirs.index())) {
                List<Wire.ColumnPair> columns = pairs.stream()
                    .map(pair -> new Wire.ColumnPair(
                        pair.mine().name(), pair.theirs().name(), Scala.typeOf(pair.mine())))
                    .toList();
                found.add(new Wire.Partner(theirs.handle(), where(other, theirs.items(), query),
                    joined(other, theirs.joined(), theirs, query), columns));
            }
        });
        return found;
    }
}
