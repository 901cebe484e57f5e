"""The result of `learn` and input of `apply`: a layout and the facts of its making, saved as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hedgerow.core.errors import FormatError, HedgerowError, counted
from hedgerow.core.html import html_table
from hedgerow.core.layouts.base import Layout
from hedgerow.core.layouts.layout_json import LAYOUT_CLASSES, checked
from hedgerow.core.learning.seconds import Estimate
from hedgerow.core.predicates.nodes import Column, Predicate
from hedgerow.core.predicates.predicate_json import decode, encode
from hedgerow.core.text_file import write_text
from hedgerow.core.workload.references import Joined, Reference
from hedgerow.core.workload.summaries import Summary
from hedgerow.pipeline.query_kinds import QueryKind

OF_TABLES = '{"hedgerow_tables"'  # how saved layouts of several tables begin
OF_PARTITIONS = '{"hedgerow_partitions"'  # the same of several partitions
LEARNED_FORMAT = 1


@dataclass(frozen=True)
class Learned:
    """A layout with the queries and parameters that it was learned from.

    `replicas`: layouts for full copies of the table, to be written beside it; a query reads the copy that serves it
    best.
    """

    layout: Layout
    table: str
    predicates: tuple[Predicate, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    noted: tuple[Predicate, ...] = ()  # conditions whose outcomes the index should hold, whatever the layout
    sort_by: str | None = None  # the column that rows of a block should be sorted by, as SQL writes it
    joined: tuple[Joined, ...] = ()  # the rows of other tables that the layout and its queries need
    summed: tuple[Column, ...] = ()  # the columns whose sums the index should hold
    described: tuple[Column, ...] = ()  # other columns that the index should describe: the keys of joins
    replicas: tuple[Learned, ...] = ()
    fit_seconds: float | None = None  # the learner's own time, without Spark's passes; not saved
    estimate: Estimate | None = None  # of the queries' seconds, as measured here; not saved
    usual: Estimate | None = None  # the same at the usual speed of such a place, which decides; not saved
    kinds: tuple[QueryKind, ...] = ()  # the kinds of queries, with their gains and losses; not saved

    @property
    def blocks(self) -> int:
        return self.layout.blocks

    @property
    def copies(self) -> tuple[Learned, ...]:
        """This layout and those of the replicas."""
        return (self, *self.replicas)

    @property
    def slower(self) -> tuple[QueryKind, ...]:
        """The kinds of queries that would be slower than in the table as it is."""
        return tuple(kind for kind in self.kinds if kind.change == "slower")

    def seconds(self) -> dict[str, float | None]:
        """Return a query's estimated seconds in the layout and in the table as it is, named as in a score."""
        if self.estimate is None:
            return {"seconds": None, "seconds_now": None}
        return {"seconds": self.estimate.then, "seconds_now": self.estimate.now}

    def __str__(self) -> str:
        origin = f" by {self.provenance['learner']}" if "learner" in self.provenance else ""
        beside = f", and {counted(len(self.replicas), 'replica')}" if self.replicas else ""
        return f"a {self.layout.kind} layout of {self.table}{origin}: {self.blocks:,} blocks{beside}"

    def _repr_html_(self) -> str:
        shown = ("learner", "source", "block_rows", "sample_rows", "seed")
        facts = [(name, self.provenance[name]) for name in shown if name in self.provenance]
        facts += [("queries", len(self.predicates)), ("sorted by", self.sort_by)]
        return html_table([("layout", self), *facts, *[("seconds", self.estimate)] * (self.estimate is not None)])

    def to_json(self) -> str:
        saved = replace(self, fit_seconds=None, estimate=None, usual=None, kinds=())
        return json.dumps({"hedgerow_learned": LEARNED_FORMAT, **encode(saved)})

    @staticmethod
    def from_json(value: str) -> Learned:
        """Read the text of `to_json`; FormatError for any other."""
        try:
            saved = json.loads(value)
            written_by = saved.pop("hedgerow_learned")
            if written_by != LEARNED_FORMAT:
                raise FormatError(f"this layout was written by another Hedgerow (format {written_by})")
            learned: Learned = decode(saved, (Learned, Joined, Reference, Summary, *LAYOUT_CLASSES))
            for copy in learned.copies:
                _check(copy)
            return learned
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if value.startswith(OF_TABLES):
                raise FormatError("these are layouts of several tables: read them with LearnedTables.load") from error
            if value.startswith(OF_PARTITIONS):
                raise FormatError("these are layouts of partitions: read them with LearnedPartitions.load") from error
            raise FormatError("this is no layout that `learn` made, or a damaged one") from error

    def save(self, path: str | Path) -> None:
        write_text(path, self.to_json(), "the layout")

    @staticmethod
    def load(path: str | Path) -> Learned:
        return Learned.from_json(read_text(path))


def _check(learned: Learned) -> None:
    """Raise TypeError if a member has another type, or FormatError if the layout is damaged."""
    checked(learned.layout)
    is_whole = all(isinstance(p, Predicate) for p in (*learned.predicates, *learned.noted))
    if not (is_whole and isinstance(learned.table, str) and isinstance(learned.sort_by, str | None)):
        raise TypeError("a member of another type")


def read_text(path: str | Path) -> str:
    """Read the text of a layout; HedgerowError if that fails."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise HedgerowError(f"the layout {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise FormatError(f"{path} is no layout that `learn` made") from error
