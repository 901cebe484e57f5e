"""Planted bugs of answers from statistics, each of which random cases have to find within 10,000.

python -m tests.property.whole_match_mutants [--seed N] [--only WORD]
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from random import Random
from types import ModuleType

from hedgerow.core.index import aggregates, any_rows, top_k, whole_matches
from hedgerow.core.pruning import combine_stats
from tests.property import test_whole_matches as machine
from tests.support.wrong_source import wrong_source

MOST = 10_000


@dataclass(frozen=True)
class Mutant:
    """A plausible bug: the same source with another text in one place."""

    name: str
    module: ModuleType
    check: str
    right: str
    wrong: str


def _first(name: str, right: str, wrong: str) -> Mutant:
    return Mutant(name, top_k, "first rows", right, wrong)


def _probe(name: str, right: str, wrong: str) -> Mutant:
    return Mutant(name, top_k, "probes", right, wrong)


def _aggregate(name: str, right: str, wrong: str) -> Mutant:
    return Mutant(name, aggregates, "aggregates", right, wrong)


def _matched(name: str, check: str, right: str, wrong: str) -> Mutant:
    return Mutant(name, whole_matches, check, right, wrong)


MUTANTS = (
    _first("a strict for a loose comparison: ties are skipped", "first_places <= threshold", "first_places < threshold"),
    _first("a loose for a strict threshold: one row too few", "searchsorted(rows_up_to, k)", "searchsorted(rows_up_to, k - 1)"),
    _first("NULLS FIRST forgotten for files", "np.where(self.stats.may_null, np.int32(0), first)", "first"),
    _first("NULLS LAST forgotten", "return 0 if self.order.nulls_first else self.nan + 2", "return 0"),
    _first("NULLs guarantee values", "0, rows - nulls)", "0, rows)"),
    _first("deleted NULLs still guarantee NULLs", "0, nulls - deleted)", "0, nulls)"),
    _first("deleted rows are thought to be NULLs", "0, rows - nulls)", "0, matched.records[whole] - nulls)"),
    _first("unknown NULLs are none", "np.where(nulls == UNKNOWN_NULLS, 0, rows - nulls)", "rows - np.maximum(0, nulls)"),
    _first("NaN is no greatest value", "np.where(t.nan, np.int32(self.nan), greatest)", "greatest"),
    _first("NaN is the least value in descending order", "return self.nan + 1 - codes if", "return (self.nan + 1 - codes) % (self.nan + 1) if"),
    _first("a file guarantees rows up to its better bound", "np.bincount(last[whole]", "np.bincount(self._ends[0][whole]"),
    _first("descending order ascends", "if self.order.descending else codes + 1", "if False else codes + 1"),
    _matched("a file that may match guarantees rows", "first rows", "(outcomes == T_BIT)", "(outcomes & T_BIT > 0)"),
    _matched("deleted rows are guaranteed in order", "first rows", "(left > 0), index.blocks.rows, left)", "(left > 0), left, index.blocks.rows)"),
    _matched("rows of unknown number are guaranteed", "first rows", "& (left > 0), index.blocks.rows, left)", ", index.blocks.rows, np.where(left < 0, index.blocks.rows, left))"),
    Mutant("codes of different parts are compared", combine_stats, "first rows", "recode_tables(places_of_part, len(values))", "recode_tables(np.arange(len(t.values), dtype=np.int32), len(values))"),
    _probe("a value in a gap is taken for the one after it", "(code - 1) // 2 if", "code // 2 if"),
    _probe("rows that are not read have no later value", "line.last_places[with_value].max()", "line.last_places[probed[-1]]"),
    _probe("unknown bounds are bounds", "(stats.low > 0) & (stats.high < 2 * len(stats.values)) &", "(stats.low >= 0) &"),
    _probe("descending values ascend", "place if self.order.descending else place - 1\n        return", "place\n        return"),
    _matched("deleted rows are guaranteed to a limit", "any rows", "np.where(self.whole, self.left, 0)", "np.where(self.whole, self.records, 0)"),
    _matched("a file that may match serves a limit", "any rows", "(outcomes == T_BIT)", "(outcomes & T_BIT > 0)"),
    Mutant("a limit takes one file too few", any_rows, "any rows", "searchsorted(rows, k)) + 1", "searchsorted(rows, k, side='right'))"),
    _aggregate("deletes forgotten in count(x)", "((term.nulls > 0) & ~matched.has_deletes)", "(term.nulls > 0)"),
    _aggregate("count(x) counts NULLs", "matched.left - term.nulls)", "matched.left)"),
    _aggregate("unknown NULLs are none in count(x)", "(term.nulls == 0) | all_null", "(term.nulls <= 0) | all_null"),
    _aggregate("the greatest value may be deleted", "(codes % 2 == 1) & ~matched.has_deletes & _is_uncut", "(codes % 2 == 1) & _is_uncut"),
    _aggregate("a bound in a gap is an extreme", "term.has_value & (codes % 2 == 1) &", "term.has_value &"),
    _aggregate("a cut text is an extreme", "& _is_uncut(term)", ""),
    _aggregate("NaN is no greatest value for max", "is_attained &= ~term.nan", "pass"),
    _aggregate("0.0 stands for -0.0", "np.asarray((codes == zero) & (zero % 2 == 1), bool)", "np.zeros(len(codes), bool)"),
    _aggregate("a group of one value forgets its NULLs", "& ~term.nan & (term.nulls == 0), bool)", "& ~term.nan, bool)"),
    _aggregate("a group of one value forgets its NaN", "(term.low % 2 == 1) & ~term.nan & (term.nulls", "(term.low % 2 == 1) & (term.nulls"),
    _aggregate("two values in one gap are one group", "(term.low == term.high) & (term.low % 2 == 1)", "(term.low == term.high)"),
    _aggregate("deletes forgotten in sum(x)", "(codes % 2 == 1) & ~matched.has_deletes | all_null", "(codes % 2 == 1) | all_null"),
    _aggregate("an unknown sum is its limit", "(sums.low == sums.high) & (codes % 2 == 1)", "(codes >= 0)"),
    _aggregate("a sum of NULLs is 0", "np.where(all_null, _NULL, codes), is_exact, stats=sums)", "codes, is_exact, stats=sums)"),
    _aggregate("a file that may have a greater value is skipped", "(term.high <= codes.max())", "(term.low <= codes.max())"),
    _aggregate("a file with NaN is below the maximum", "is_beaten &= ~term.nan", "pass"),
    _aggregate("a count beside a maximum forgets files", "if not isinstance(a, Extreme) or a.where != TRUE or term is None:", "if term is None:"),
    _aggregate("a part without values makes a sum NULL", "return y if x is None else x", "return None"),
    _aggregate("only the greatest value makes a sum overflow", "for end in ends)", "for end in ends[1:])"),
    _aggregate("a double has all digits of a BIGINT", "_MAX_AS_DOUBLE if a.as_double else _MAX_BIGINT", "_MAX_BIGINT"),
    _aggregate("a sum without bounds cannot overflow", "ends[1] % 2 == 0:\n        return inf", "ends[1] % 2 == 0:\n        return 0"),
    _aggregate("each file has one value to add up", "int(matched.records[opened].sum())", "int(opened.sum())"),
    _aggregate("a filter that may match counts as TRUE", "outcomes & T_BIT == 0, outcomes == T_BIT", "outcomes & T_BIT == 0, outcomes & T_BIT > 0"),
    _aggregate("a filter that is FALSE is not heeded", "never | (always & part.is_exact), always, part", "never | (always & part.is_exact), None, part"),
    _aggregate("files that are not answered are skipped", "matched.opened & ~answered", "matched.opened & ~matched.whole"),
)  # fmt: skip


def cases_until_found(mutant: Mutant, first_seed: int) -> int | None:
    """The number of random cases until one fails; None if none of MOST does."""
    with wrong_source(mutant.module, mutant.right, mutant.wrong):
        for i in range(MOST):
            random = Random(first_seed + i)
            case = machine.a_case(random)
            try:
                machine.CHECKS[mutant.check](random, case)
            except AssertionError:
                return i + 1
            except Exception:
                continue  # after an error all files are opened, so it is no wrong answer
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    missed = 0
    for mutant in MUTANTS:
        if options.only in mutant.name:
            cases = cases_until_found(mutant, options.seed)
            missed += cases is None
            print(f"{'MISSED' if cases is None else cases:>8}  {mutant.check}: {mutant.name}", flush=True)
    return missed


if __name__ == "__main__":
    sys.exit(main())
