package hedgerow;

import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * Skips more files than WHERE does, for ORDER BY with LIMIT, for LIMIT, and for counts, sums, minima and maxima.
 *
 * <p>`tables/more_than_where.py` answers from the files that match the condition as a whole. So the whole condition is
 * sent. If Python does not understand a part of it, no file matches as a whole.
 */
record MoreThanWhere(Python python, OpenedTables tables) {
    /** One scan of an opened table, whose index can answer. */
    private record Asked(Scan scan, OpenedTables.Table table, Chain chain) {
        Conditions conditions() {
            return new Conditions(table.items());
        }

        Wire.Condition where() {
            return conditions().of(chain.normal(chain.condition()));
        }

        Wire.ScannedRows scanned() {
            return table.index().scanned(scan.listed());
        }

        /** Returns the relation without the files to skip, and notes it; null if nothing is skipped. */
        LogicalRelation without(FileChoice choice, String means, QueryPlan query) {
            return choice.skipsAny(scan.listed())
                ? scan.without(choice, scan.decide(choice, table.name(), null, means, query)) : null;
        }
    }

    /** Returns the same query over fewer files; null if WHERE says best which to skip. */
    LogicalPlan of(LogicalPlan node, QueryPlan query) {
        if (node instanceof GlobalLimit limit) {
            return of(LimitedRows.of(limit), query);
        }
        return node instanceof Aggregate aggregate && SessionSettings.isOn("hedgerow.aggregates")
            ? of(WholeAggregates.of(aggregate), query) : null;
    }

    private LogicalPlan of(LimitedRows limited, QueryPlan query) {
        if (limited == null || !SessionSettings.isOn(limited.first() == null ? "hedgerow.limit" : "hedgerow.topk")) {
            return null;
        }
        Asked asked = asked(limited.chain(), query);
        SortOrder first = limited.first();
        Expression key = asked == null || first == null ? null : asked.chain.normal(first.child());
        Wire.Side by = key == null ? null : asked.conditions().term(key);
        boolean isKnown = first == null || by != null && Values.areOrdered(key.dataType());
        if (asked == null || !isKnown || !limited.neverFails(python.allowed(), key)) {
            return null;
        }
        Wire.Order order = first == null ? null : new Wire.Order(
            by, limited.isDescending(), first.nullOrdering().sql().equals("NULLS FIRST"));
        FileChoice index = asked.table.index();
        boolean mayProbe = Threshold.fits(limited) && asked.scan.isCovered(index);
        Wire.Answer answer = python.ask(new Wire.ChooseRows(
            asked.table.handle(), asked.where(), asked.scanned(), order, limited.rows(), mayProbe));
        if (answer instanceof Wire.Probe probe) {
            LogicalRelation few = asked.scan.probing(index.where(probe.bits()), asked.table.name(), query);
            LimitedRows shorter = limited.where(Threshold.condition(limited, few, probe.lastValue()));
            LogicalRelation found =
                probe.opened() == null ? null : asked.without(index.where(probe.opened()), "top-k", query);
            return shorter.over(found == null ? limited.chain().relation() : found);
        }
        if (!(answer instanceof Wire.Chosen chosen)) {
            return null;
        }
        FileChoice choice = first == null ? index.only(chosen.bits()) : index.where(chosen.bits());
        LogicalRelation found = asked.without(choice, chosen.means(), query);
        return found == null ? null : limited.over(found);
    }

    private LogicalPlan of(WholeAggregates wanted, QueryPlan query) {
        Asked asked = wanted == null ? null : asked(wanted.chain(), query);
        boolean isFit = asked != null && !(wanted.sumsLongs() && !asked.scan.isCovered(asked.table.index()));
        List<Wire.Side> keys = isFit ? wanted.keys(asked.conditions()) : null;
        List<Wire.AggregateValue> values = keys == null ? null : wanted.values(asked.conditions(), python.allowed());
        if (values == null || asked.table.refused().contains(List.of(keys, values))) {
            return null;
        }
        Wire.Answer answer = python.ask(
            new Wire.Aggregate(asked.table.handle(), asked.where(), asked.scanned(), keys, values));
        if (answer instanceof Wire.Refused refused && !refused.again() && !refused.forget()) {
            asked.table.refuse(List.of(keys, values));
        }
        if (!(answer instanceof Wire.Aggregated known)) {
            return null;
        }
        FileChoice choice = asked.table.index().where(known.bits());
        LogicalRelation rest = known.rows().isEmpty() ? null : asked.without(choice, "aggregates", query);
        boolean isAllKnown = asked.scan.listed().stream().allMatch(file -> choice.skips(file.name(), file.bytes()));
        return rest == null ? null : wanted.added(known.rows(), isAllKnown ? null : rest);
    }

    /** Returns the scan of a chain; null if all its files must be read, or its index cannot be used. */
    private Asked asked(Chain chain, QueryPlan query) {
        LogicalRelation relation = chain.relation();
        Scan scan = query.scan(relation);
        boolean isFit = scan != null
            && Scala.list(relation.output()).stream().allMatch(Scala::isData)
            && query.unfit() == null;
        OpenedTables.Table table = isFit ? tables.open(scan) : null;
        return table == null || table.reason() != null ? null : new Asked(scan, table, chain);
    }
}
