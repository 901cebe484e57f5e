"""A managed table as the optimizer rule uses it: under certain settings, with the columns that a query sees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hedgerow.core.arrays import Bools
from hedgerow.core.index.key_bounds import KeyBounds, key_bounds
from hedgerow.core.index.values_in import values_in
from hedgerow.core.index.whole_matches import TypedTerm
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.core.predicates.nodes import TRUE, And, Column, Compare, Feature, Predicate, conjunction, disjunction, lit
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.sql_text import quote_name, term_text
from hedgerow.core.predicates.types import Type
from hedgerow.core.workload.references import Joined
from hedgerow.spark import wire
from hedgerow.spark.session_settings import engines_of
from hedgerow.spark.write.copies import COPY
from hedgerow.tables.cheapest_copy import Copies
from hedgerow.tables.known_files import is_hidden
from hedgerow.tables.lookups import MAX_VALUES
from hedgerow.tables.part import JoinedParts
from hedgerow.tables.stored import StoredTable
from hedgerow.tables.stored_joins import StoredJoin
from hedgerow.tables.table_index import TableIndex
from hedgerow.tables.wire_conditions import value_text

Changed = Callable[[str, str, str, str], "list[tuple[int, int]] | None"]
NO_BOOLS = np.zeros(0, bool)


@dataclass(frozen=True)
class JoinedCondition:
    """A condition of a query on joined rows.

    Args:
        versions: the versions that the query reads, of each table in the chain of keys.
        roots: the places of these tables.
        schema: the columns and types of the last table, as the query sees them, by lower-case name.
    """

    joined: Joined
    versions: tuple[str, ...]
    roots: tuple[str, ...]
    schema: Mapping[str, Type]
    condition: Predicate


@dataclass(frozen=True)
class JoinedEquality:
    """The equality of two columns of joined rows, or of one with a column of the table; `rows`: these joined rows."""

    rows: Sequence[JoinedCondition]
    condition: Predicate


@dataclass(frozen=True)
class RowCondition:
    """The condition of a query on a table's rows: on its own columns, and on the rows that they join.

    `changed`: returns the keys whose rows may differ between two versions of a table, see `changed_keys`."""

    own: Predicate
    joined: Sequence[JoinedCondition]
    changed: Changed
    equal: Sequence[JoinedEquality] = ()

    def fitting(self, stored: Sequence[StoredJoin]) -> Predicate:
        """Return the whole condition for an index that describes these joined rows, perhaps in older versions."""
        by_chain = {j.joined: j for j in stored}
        weakened = [self._weakened(c.condition, [c], by_chain) for c in self.joined]
        weakened += [self._weakened(e.condition, e.rows, by_chain) for e in self.equal]
        return normalise(conjunction(self.own, *weakened))

    def _weakened(
        self, condition: Predicate, rows: Sequence[JoinedCondition], stored: Mapping[Joined, StoredJoin]
    ) -> Predicate:
        """Return a weaker condition on these joined rows: it also holds where one of them may have changed since."""
        cases = [condition]
        for on in rows:
            changed = self._changed_since(on, stored[on.joined]) if on.joined in stored else None
            if changed is None:
                return TRUE
            cases += changed
        return disjunction(*cases)

    def _changed_since(self, on: JoinedCondition, stored: StoredJoin) -> list[Predicate] | None:
        """Return conditions on keys, one of which holds where the joined row may have changed; None: anywhere."""
        if any(str(on.schema.get(name.lower())) != kind for name, kind in stored.columns.items()):
            return None  # the query reads the same files with other types
        cases: list[Predicate] = []
        for place, (before, now, root) in enumerate(zip(stored.versions, on.versions, on.roots, strict=True)):
            if before != now:
                ranges = self.changed(root, before, now, stored.joined.steps[place].other_columns[0])
                if ranges is None:
                    return None
                key = stored.joined.key_of(place)
                cases += [And((Compare(key, ">=", lit(low)), Compare(key, "<=", lit(high)))) for low, high in ranges]
        return cases


@dataclass(frozen=True)
class OpenedTable:
    """A managed table under certain settings, with the columns that a query sees.

    Args:
        parts: the table's parts; parts that describe the same versions of other tables are joined.
        schema: the columns that the query sees with the same types as a part, and the fields of joined rows.
        items: the index's expressions, and its conditions that only Spark can evaluate, without columns.
        joined: the rows of other tables that the index describes, in all their versions.
        stored: a Parquet table, whose copies may be read instead.
    """

    name: str
    parts: Sequence[JoinedParts]
    schema: Mapping[str, Type]
    items: Sequence[Feature]
    joined: Sequence[StoredJoin]
    stored: StoredTable | None
    settings: Mapping[str, str]

    @property
    def files(self) -> list[tuple[str, int]]:
        """The names and sizes of the indexed files."""
        return [file for part in self.parts for file in zip(part.known.names, part.known.sizes.tolist(), strict=True)]

    @cached_property
    def index(self) -> TableIndex:
        """The index of all parts; its entries are in the order of `files`."""
        return TableIndex(self.parts)

    @property
    def row_groups(self) -> tuple[list[int], list[int]]:
        """The number of row groups that the index describes of each of `files`, and where each begins in its file."""
        known = [(len(part.known), part.index.groups) for part in self.parts]
        if all(groups is None for _, groups in known):
            return [], []
        counts = [[0] * n if g is None else np.bincount(g.block, minlength=n).tolist() for n, g in known]
        starts = [g.start.tolist() for _, g in known if g is not None]
        return [n for part in counts for n in part], [start for part in starts for start in part]

    def _opened(self, condition: RowCondition) -> list[Bools]:
        return [part.index.choose_files(condition.fitting(part.joined), copies=False).opened for part in self.parts]

    def within(self, condition: RowCondition, column: Column, seen_as: Column) -> Predicate:
        """Return a condition that all values of a column satisfy in the files to open.

        `seen_as`: the column's name in the condition."""
        indexes = [part.index for part in self.parts]
        return values_in(list(zip(indexes, self._opened(condition), strict=True)), column, seen_as)

    def choose(self, condition: RowCondition, request: wire.Choose) -> wire.Chosen | wire.Instead:
        """Return the files to open: bits for `files`, or other files instead."""
        if self.stored is not None and not request.own:
            copy = self._instead(self.stored, condition, request.columns)
            if copy is not None:
                return copy
        opened = self._opened(condition)
        by_filters = any(
            part.index.filters_skip(condition.fitting(part.joined), bits)
            for part, bits in zip(self.parts, opened, strict=True)
            if part.index.filtered
        )
        means = "look-up" if by_filters else "where"
        return wire.Chosen(bit_text(np.concatenate([*opened, NO_BOOLS])), means, self._row_groups(condition, opened))

    def _row_groups(self, condition: RowCondition, opened: Sequence[Bools]) -> str:
        """Return bits for `row_groups`: those to read of the opened files; empty if that is all of them."""
        read, is_opened = [NO_BOOLS], [NO_BOOLS]
        for part, bits in zip(self.parts, opened, strict=True):
            if part.index.groups is not None:
                read.append(part.index.groups_to_read(condition.fitting(part.joined), bits))
                is_opened.append(bits[part.index.groups.block])
        to_read = np.concatenate(read)
        return "" if np.array_equal(to_read, np.concatenate(is_opened)) else bit_text(to_read)

    def key_bounds(self, key: TypedTerm) -> wire.Bounds | wire.Refused:
        """Return which keys each of `files` may hold."""
        if engines_of(self.settings):
            return wire.Refused("another engine would leave such a scan to Spark")
        stats = [part.index.blocks for part in self.parts]
        has_filter = any(term_text(key.term) in part.index.filtered for part in self.parts)
        bounds = key_bounds(stats, key) or (KeyBounds.unknown(len(self.files)) if has_filter else None)
        if bounds is None:
            return wire.Refused("the index knows no bounds of the key by which it would skip files")
        texts = [value_text(key.type.kind, value) for value in bounds.values]
        return wire.Bounds(
            [text for text in texts if text is not None],
            bounds.first.tolist(),
            bounds.last.tolist(),
            bounds.sets.set_of.tolist(),
            bounds.sets.offsets.tolist(),
            bounds.sets.codes.tolist(),
            MAX_VALUES if has_filter else 0,
        )

    def _instead(
        self, stored: StoredTable, condition: RowCondition, reads: Sequence[str] | None
    ) -> wire.Instead | None:
        """Return the files of a replica, or files with copies, if they are cheaper to read; else None."""
        columns = None if reads is None else [quote_name(name) for name in reads]
        best = Copies.of(stored, self.settings).cheapest(normalise(condition.own), columns)
        if best.table is stored and not any(map(is_hidden, best.files)):
            return None
        sizes, path = best.known.sizes_by_name, best.table.path
        codes, layout = None, best.table.layout
        if best.choice.copied_cells is not None:
            assert isinstance(layout, OverlapLayout)  # no other layout has copies
            codes = [layout.code(block, cell) for block, cell in best.choice.copied_cells]
        return wire.Instead(
            [f"{path}/{name}" for name in best.files],
            [sizes[name] for name in best.files],
            None if codes is None else COPY,
            codes,
        )


def bit_text(opened: Bools) -> str:
    """Return a mask as a text of 0 and 1."""
    return (opened.astype(np.uint8) + ord("0")).tobytes().decode()
