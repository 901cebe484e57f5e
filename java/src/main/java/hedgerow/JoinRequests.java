package hedgerow;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/** Writes, for a scan, the conditions on rows of other tables that its joins need. */
record JoinRequests(OpenedTables tables) {
    /**
     * What a scan's joins need.
     *
     * @param joined conditions on the rows to which foreign keys lead
     * @param equal columns of these rows, and of the scan's own
     * @param partners other managed tables in the joins
     * @param unused why the index does not help with a condition on other rows; null if it does
     */
    record Requests(List<Wire.JoinedRows> joined, List<Wire.EqualColumns> equal, List<Wire.Partner> partners,
            String unused) {
        boolean isEmpty() {
            return joined.isEmpty() && partners.isEmpty();
        }
    }

    Requests of(LogicalRelation relation, OpenedTables.Table table, QueryPlan query) {
        if (!SessionSettings.isOn("hedgerow.joins") || query.edges().from(relation).isEmpty()) {
            return new Requests(List.of(), List.of(), List.of(), null);
        }
        List<LogicalRelation> reached = new ArrayList<>();
        return new Requests(
            joined(relation, table.joined(), table, query, reached),
            equal(relation, reached, query),
            SessionSettings.isOn("hedgerow.partners") ? partners(relation, query) : List.of(),
            unused(relation, table, query, reached));
    }

    /** Returns why a condition on rows to which a key leads does not help; null if all do. */
    private static String unused(
            LogicalRelation from, OpenedTables.Table table, QueryPlan query, List<LogicalRelation> reached) {
        return table.joined().stream()
            .filter(key -> query.edges().to(from, key).anyMatch(other ->
                reached.stream().noneMatch(described -> described == other) && query.edges().filters(other)))
            .map(key -> "the rows of " + key.name() + " are not those that the index describes: the query reads another "
                + "table, or it has changed since, and repair() describes it again")
            .findFirst().orElse(null);
    }

    /** Adds to `reached` the relation of each `JoinedRows`, before those that its keys lead to. */
    private List<Wire.JoinedRows> joined(LogicalRelation from, List<Wire.Key> keys, OpenedTables.Table table,
            QueryPlan query, List<LogicalRelation> reached) {
        List<Wire.JoinedRows> found = new ArrayList<>();
        for (Wire.Key key : keys) {
            query.edges().to(from, key).forEach(other -> {
                String version = tables.version(other);
                if (version != null && tableOf(version).equals(tableOf(key.version()))) {
                    reached.add(other);
                    Wire.Condition where = where(other, tables.itemsOf(table, key, other), query);
                    found.add(new Wire.JoinedRows(key.number(), version, deltaRoot(other), other.schema().json(),
                        where, joined(other, key.joined(), table, query, reached)));
                }
            });
        }
        return found;
    }

    /**
     * Returns the columns over which the query joins the relation and those that its keys lead to with each other.
     *
     * <p>A key leads to at most one row. So if a row of the relation takes part in a result, then so do the rows to
     * which its keys lead, and no others of their relations. Every join of the plan compares these rows.
     */
    private static List<Wire.EqualColumns> equal(
            LogicalRelation relation, List<LogicalRelation> reached, QueryPlan query) {
        List<LogicalRelation> all = new ArrayList<>(List.of(relation));
        reached.stream().filter(query.edges()::appearsOnce).forEach(all::add);
        List<Wire.EqualColumns> found = new ArrayList<>();
        for (LogicalRelation left : all) {
            for (LogicalRelation right : all) {
                query.edges().from(left).getOrDefault(right, List.of()).stream()
                    .filter(pair -> Scala.typeOf(pair.mine()).equals(Scala.typeOf(pair.theirs())))
                    .map(pair -> new Wire.EqualColumns(place(left, reached), pair.mine().name(),
                        place(right, reached), pair.theirs().name(), Scala.typeOf(pair.mine())))
                    .forEach(found::add);
            }
        }
        return found;
    }

    private static int place(LogicalRelation relation, List<LogicalRelation> reached) {
        return IntStream.range(0, reached.size()).filter(i -> reached.get(i) == relation).findFirst().orElse(-1);
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
                    joined(other, theirs.joined(), theirs, query, new ArrayList<>()), columns));
            }
        });
        return found;
    }
}
