"""Plausible bugs of pruning, and how to plant each of them for a while.

CONDITIONS, RULE                  a file is skipped that has rows for which a condition is true
WHOLE_QUERIES, WHOLE_QUERY_RULE   a query of more than WHERE has a wrong answer: ORDER BY, LIMIT, or aggregates
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import numpy as np

from hedgerow.core.index import aggregates
from hedgerow.core.predicates import step_functions as steps
from hedgerow.core.predicates.nodes import In, IsNull, Prefix
from hedgerow.core.pruning import block_stats as stats
from hedgerow.core.pruning import evaluator as outcomes
from hedgerow.core.pruning import noted_conditions as features
from hedgerow.core.pruning import spark_hash, value_filter
from hedgerow.core.pruning import value_codes as ranks
from hedgerow.core.pruning.block_stats import F_BIT, N_BIT, T_BIT
from hedgerow.spark.start import jar
from hedgerow.tables import settings_fit as session_fit
from hedgerow.tables import table_index
from scripts import build_jar
from tests.property.whole_match_mutants import MUTANTS as OF_STATISTICS
from tests.support.wrong_source import wrong_source

Planted = Callable[[ExitStack], None]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A plausible bug, and how to plant it for a while."""

    name: str
    plant: Planted


# --- ways to plant ---


def instead(module: Any, name: str, new: Callable[[Any], Any]) -> Planted:
    """`new(old)` in place of a function, wherever it was imported to."""

    def plant(stack: ExitStack) -> None:
        old = getattr(module, name)
        changed = new(old)
        for holder in list(sys.modules.values()):
            if getattr(holder, "__name__", "").startswith("hedgerow.") and getattr(holder, name, None) is old:
                stack.enter_context(patch.object(holder, name, changed))

    return plant


def on_class(cls: type[Any], name: str, new: Callable[[Any], Any]) -> Planted:
    """`new(old)` in place of a method."""

    def plant(stack: ExitStack) -> None:
        stack.enter_context(patch.object(cls, name, new(getattr(cls, name))))

    return plant


def term_with(change: Callable[[Any], dict[str, Any]], kinds: tuple[str, ...] = ()) -> Planted:
    """What is known of a term, changed before it is used."""

    def new(old: Any) -> Any:
        def comparable(*args: Any) -> Any:
            found = old(*args)
            return (
                found if found is None or (kinds and found.type.kind not in kinds) else replace(found, **change(found))
            )

        return comparable

    return instead(outcomes, "_comparable", new)


def source(module: ModuleType, right: str, wrong: str) -> Planted:
    """Another text in a module's source."""
    return lambda stack: stack.enter_context(wrong_source(module, right, wrong))


def java(old: str, new: str) -> Planted:
    """Another text in the rule's source."""

    def plant(stack: ExitStack) -> None:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="mutant-")))
        # Py4J caches methods by the name of their class, so each jar has a package of its own.
        package, planted = f"hedgerow_{uuid4().hex}", 0
        for file in build_jar.SOURCES.rglob("*.java"):
            text = file.read_text()
            planted += text.count(old)
            text = text.replace("package hedgerow;", f"package {package};").replace(old, new)
            (folder / file.name).write_text(text)
        if planted != 1:
            raise LookupError(f"the rule has {planted} times {old}")
        path = folder / "mutant.jar"
        classes = folder / "classes"
        build_jar.compile_into(classes, folder)
        build_jar.pack(classes, path)
        stack.enter_context(patch.multiple(jar, PACKAGE=package, jar_path=lambda: path))
        stack.enter_context(patch.dict(jar._gateways, clear=True))  # a jar cannot be loaded twice into one JVM

    return plant


# --- bugs of conditions ---
# A bug of NOT alone cannot be seen here: Spark writes NOT (x > 5) as x <= 5 before it asks us.


def _op(old: str, new: str) -> Planted:
    return instead(steps, "_compare", lambda compare: lambda op, v: compare(new if op == old else op, v))


def _stepwise(node: type[Any], change: Callable[[Any], Any]) -> Planted:
    return instead(
        steps, "stepwise", lambda old: lambda p: change(old(p)) if isinstance(p, node) and old(p) else old(p)
    )


def _in(keep: Callable[[Any], Any]) -> Planted:
    def new(old: Any) -> Any:
        return lambda p: old(replace(p, **{_literals(p): keep(getattr(p, _literals(p)))}) if isinstance(p, In) else p)

    return instead(steps, "stepwise", new)


def _literals(p: In) -> str:
    return next(name for name in p.__dataclass_fields__ if name != "term")


def _array(module: Any, bits: Any) -> Planted:
    """Another NOT, for sets of outcomes."""

    def plant(stack: ExitStack) -> None:
        stack.enter_context(patch.object(module, "NOT_BITS", bits))

    return plant


def _swapped(stack: ExitStack) -> None:
    stack.enter_context(patch.multiple(outcomes, _AND=outcomes._OR, _OR=outcomes._AND))


def _no_nulls(stack: ExitStack) -> None:
    stack.enter_context(patch.object(stats.TermStats, "may_null", property(lambda t: np.zeros(len(t.nulls), bool))))


def _unknown_nulls(stack: ExitStack) -> None:
    """Where few rows are NULL, nobody counts them."""
    stack.enter_context(patch.object(stats.TermStats, "may_null", property(lambda t: np.greater(t.nulls, 3))))


def _by_prefix(old: Any) -> Any:
    def narrow(p: Any, found: Any, known: Any, wanted: Any, part: Any) -> None:
        old(p, found, known, wanted, part)
        name = features.predicate_text(p)[:9]
        for feature_name, feature in known.conditions.items():
            if feature_name[:9] == name:
                found &= feature.bits[part.at]
                return

    return narrow


def _order(stack: ExitStack) -> None:
    """The answer is about the files in another order."""
    from hedgerow.core.index import block_index as views

    cover = views.BlockIndex.choose_files

    def covered(self: Any, *a: Any, **k: Any) -> Any:
        found = cover(self, *a, **k)
        return replace(found, opened=np.roll(found.opened, 1))

    stack.enter_context(patch.object(views.BlockIndex, "choose_files", covered))


def _cut(values: Any) -> list[Any]:
    """Unique, still sorted: a value that meets its neighbour stays as it is."""
    found: list[Any] = []
    for old, new in values:
        found.append(new if (not found or new > found[-1]) else old)
    return found


def _last_code(old: Any) -> Any:
    def code_of(values: Any, value: Any, gap: int = 0) -> int:
        found = int(old(values, value, gap))
        return found + 1 if gap == 0 and found % 2 == 0 and found < 2 * len(values) else found

    return code_of


def _eight_bytes(stack: ExitStack) -> None:
    stack.enter_context(patch.dict(spark_hash._NUMBER_BYTES, {"date": 8}))


CONDITIONS = (
    Mutant("<= is read as <", _op("<=", "<")),
    Mutant(">= is read as >", _op(">=", ">")),
    Mutant("NULL is ignored", _no_nulls),
    Mutant("few NULLs are ignored", _unknown_nulls),
    Mutant("IS NULL is NULL on NULL", _stepwise(IsNull, lambda s: replace(s, steps=replace(s.steps, on_null=None)))),
    Mutant("NaN is forgotten", term_with(lambda t: {"nan": np.zeros(len(t.nan), bool)})),
    Mutant("NaN is below every value", on_class(steps.Steps, "at", lambda old: lambda self, value: self.outcomes[0])),
    Mutant("AND and OR change places", _swapped),
    Mutant("OR looks at its first part only", instead(outcomes, "_combined", lambda old: lambda f, a, b: old(f, a, b if f is steps.and3 else a))),
    Mutant("an IN list has one value", _in(lambda some: some[:1])),
    Mutant("an IN list lacks its last value", _in(lambda some: some[:-1] if len(some) > 1 else some)),
    Mutant("a prefix ends at itself", instead(steps, "prefix_end", lambda old: lambda prefix: prefix + "\0")),
    Mutant("a prefix's first letter is left out", _stepwise(Prefix, lambda s: replace(s, steps=replace(s.steps, breaks=tuple((v + "a", side) if i == 0 else (v, side) for i, (v, side) in enumerate(s.steps.breaks)))))),
    Mutant("upper bounds are one value too low", term_with(lambda t: {"high": np.maximum(t.high - 2, t.low).astype(np.int32)})),
    Mutant("lower bounds are one value too high", term_with(lambda t: {"low": np.minimum(t.low + 2, t.high).astype(np.int32)})),
    Mutant("strings are cut to one character", term_with(lambda t: {"values": _cut((v, v[:1]) for v in t.values)}, ("string",))),
    Mutant("timestamps are cut to seconds", term_with(lambda t: {"values": _cut((v, v // 1_000_000 * 1_000_000) for v in t.values)}, ("timestamp", "timestamp_ntz"))),
    Mutant("decimals lose their scale", term_with(lambda t: {"values": _cut((v, v.to_integral_value()) for v in t.values)}, ("decimal",))),
    Mutant("sets of values lack the largest", instead(outcomes, "_narrow_by_sets", lambda old: lambda bits, s, low, sets, of: old(bits, s, low, replace(sets, codes=np.minimum(sets.codes, np.max(sets.codes, initial=0) - 2)), of))),
    Mutant("a value between two known ones is the upper one", instead(ranks, "code_of", _last_code)),
    Mutant("a break at a value lies above it", instead(outcomes, "_steps_passed", lambda old: lambda breaks, codes: np.searchsorted(breaks, codes, side="left"))),
    Mutant("implication stops one step short", instead(steps, "true_within", lambda old: lambda a, b: any(o is True for o in a.outcomes) and any(o is True for o in b.outcomes[:-1]))),
    Mutant("implication ignores NULL", instead(steps, "true_within", lambda old: lambda a, b: old(replace(a, on_null=None), b))),
    Mutant("a feature is found by the beginning of its text", instead(features, "narrow_by_noted_conditions", _by_prefix)),
    Mutant("the opposite feature is read as it is", _array(features, np.arange(8, dtype=np.uint8))),
    Mutant("NOT of NULL is FALSE and TRUE stays", _array(outcomes, np.array([(b & N_BIT and F_BIT) | (b & T_BIT) for b in range(8)], np.uint8))),
    Mutant("two columns: < is read as >", instead(outcomes, "_compare_spans", lambda old: lambda op, *spans: old({"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(op, op), *spans))),
    Mutant("two columns: = is never TRUE where bounds differ", instead(outcomes, "_compare_spans", lambda old: lambda op, a, b, c, d: np.where((op == "=") & ((a != c) | (b != d)), F_BIT, old(op, a, b, c, d)).astype(np.uint8))),
    Mutant("files are in another order", _order),
    Mutant("what was noted under other settings counts", instead(session_fit, "difference", lambda old: lambda written, now: None)),
    Mutant("a filter forgets the last file of a value", on_class(value_filter.Shape, "places", lambda old: lambda self, block, h: old(self, block, h)[:-1])),
    Mutant("a filter's decimals lose their scale", instead(spark_hash, "_without_point", lambda old: lambda value, scale: old(value, 0) if value == value.to_integral_value() else old(value, scale))),
    Mutant("a filter's dates have eight bytes", _eight_bytes),
    Mutant("joined steps keep the first part's NULL", instead(steps, "combine", lambda old: lambda f, a, b: replace(old(f, a, b), on_null=a.on_null if f is steps.or3 else old(f, a, b).on_null))),
)  # fmt: skip

RULE = (
    Mutant("the rule: <=> is written as =", java('e instanceof EqualNullSafe ? "<=>"', 'e instanceof EqualNullSafe ? "="')),
    Mutant("the rule: OR is written as AND", java("return new Wire.Or(", "return new Wire.And(")),
    Mutant("the rule: <= is written as <", java('e instanceof LessThanOrEqual ? "<="', 'e instanceof LessThanOrEqual ? "<"')),
    Mutant("the rule: NOT is left out", java("return new Wire.Not(of(not.child()));", "return of(not.child());")),
    Mutant("the rule: a day begins when it does in UTC", java("LocalDate.ofEpochDay(day).atStartOfDay(zone)", 'LocalDate.ofEpochDay(day).atStartOfDay(ZoneId.of("UTC"))')),
    Mutant("the rule: a day's end belongs to it", java('case "<=" -> at(day, "<", day.end());', 'case "<=" -> at(day, "<", day.start());')),
    Mutant("the rule: IS NULL is written as IS NOT NULL", java("return isNull(is.child());", "return new Wire.Not(isNull(is.child()));")),
    Mutant("the rule: collations are ignored", java('type.catalogString().equals("string")', "!type.catalogString().isEmpty()")),
    Mutant("the rule: types of both sides may differ", java("if (!left.dataType().equals(right.dataType())) {", "if (left == right) {")),
    Mutant("the rule: bits are read one place off", java("bits.charAt(place) == '0'", "bits.charAt((place + 1) % bits.length()) == '0'")),
)  # fmt: skip


# --- bugs of whole queries ---
# Random statistics find more bugs than random tables do: Spark's own files lack cut texts and unknown counts of NULLs.

_SEEN_IN_TABLES = (
    "a strict for a loose comparison: ties are skipped",
    "a loose for a strict threshold: one row too few",
    "NULLS FIRST forgotten for files",
    "NULLS LAST forgotten",
    "NULLs guarantee values",
    "NaN is no greatest value",
    "NaN is the least value in descending order",
    "a file guarantees rows up to its better bound",
    "descending order ascends",
    "a file that may match guarantees rows",
    "deleted rows are guaranteed in order",
    "codes of different parts are compared",
    "deleted rows are guaranteed to a limit",
    "a limit takes one file too few",
    "deletes forgotten in count(x)",
    "count(x) counts NULLs",
    "the greatest value may be deleted",
    "NaN is no greatest value for max",
    "a group of one value forgets its NULLs",
    "deletes forgotten in sum(x)",
    "a sum of NULLs is 0",
    "a file that may have a greater value is skipped",
    "a count beside a maximum forgets files",
    "a filter that may match counts as TRUE",
    "a filter that is FALSE is not heeded",
    "files that are not answered are skipped",
)
_of_statistics = {bug.name: source(bug.module, bug.right, bug.wrong) for bug in OF_STATISTICS}

WHOLE_QUERIES = (
    *(Mutant(name, _of_statistics[name]) for name in _SEEN_IN_TABLES),
    Mutant("deleted rows are not subtracted", source(table_index, "left[file] = left[file] - rows if", "left[file] = left[file] if")),
    Mutant("aggregates of later parts are left out", source(aggregates, "_together(a, x, y) for a, x, y in pairs", "x for a, x, y in pairs")),
)  # fmt: skip

WHOLE_QUERY_RULE = (
    Mutant("the rule: rows before the offset are forgotten", java("rows += number(offset.offsetExpr());", "rows += 0;")),
    Mutant("the rule: DESC is written as ASC", java('first.direction().sql().equals("DESC")', 'first.direction().sql().equals("ASC")')),
    Mutant("the rule: NULLS FIRST is written as NULLS LAST", java('first.nullOrdering().sql().equals("NULLS FIRST")', 'first.nullOrdering().sql().equals("NULLS LAST")')),
    Mutant("the rule: a threshold leaves out its ties", java("? new GreaterThanOrEqual(column, threshold)", "? new org.apache.spark.sql.catalyst.expressions.GreaterThan(column, threshold)")),
    Mutant("the rule: fewer rows than the limit are a threshold", java("new Literal(limited.rows(), DataTypes.LongType)", "new Literal(1L, DataTypes.LongType)")),
    Mutant("the rule: a threshold leaves out NULL", java("new IsNull(column));", "Literal.FalseLiteral());")),
    Mutant("the rule: a threshold heeds no file that the index does not know", java(" && asked.scan.isCovered(index);", ";")),
    Mutant("the rule: WHERE below a limit is left out", java("return filter == null ? Literal.TrueLiteral() : filter.condition();", "return Literal.TrueLiteral();")),
    Mutant("the rule: the last term of an order is the first", java("Scala.list(sort.order()).get(0)", "Scala.list(sort.order()).get(sort.order().size() - 1)")),
    Mutant("the rule: an order skips files that the index does not know", java("index.only(chosen.bits()) : index.where(chosen.bits())", "index.only(chosen.bits()) : index.only(chosen.bits())")),
    Mutant("the rule: aggregates skip files that the index does not know", java("asked.table.index().where(known.bits())", "asked.table.index().only(known.bits())")),
    Mutant("the rule: FILTER is left out", java("Wire.Condition where = filter == null ? null : conditions.of(chain.normal(filter));", "Wire.Condition where = null;")),
    Mutant("the rule: max is written as min", java("e.aggregateFunction() instanceof Max, where", "e.aggregateFunction() instanceof Min, where")),
    Mutant("the rule: files that are scanned add nothing", java("isAllKnown ? null : rest)", "isAllKnown || rest != null ? null : rest)")),
    Mutant("the rule: deletion vectors are not counted", java("file.deletionVector() == null ? 0 : file.deletionVector().cardinality()", "0")),
)  # fmt: skip
