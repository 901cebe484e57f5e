"""The plan of a rewrite: the layout, the items that the index describes, and the options for writing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from hedgerow.core.layouts.base import Layout
from hedgerow.core.predicates.nodes import Column, Feature, Predicate
from hedgerow.spark.compute.joins import NO_JOINS, Joins
from hedgerow.spark.write.writing import Writing
from hedgerow.tables.entry import Entry, Fields
from hedgerow.tables.stored_joins import to_store


@dataclass(frozen=True)
class Plan:
    """A rewrite that `apply` will make.

    Args:
        name: the table's name in workloads.
        predicates: the conditions of the queries that the layout was learned from.
        items: the expressions and conditions that the index describes.
        origin: see `Entry`.
        joins: the rows of other tables that the layout and the index use.
        lookups: columns that get filters for look-ups, beside those that the predicates look up.
        wave_bytes: the most bytes of old files that are rewritten at once.
        where: the files to rewrite in place, as a condition on partitions or as names; None: all files.
        batch: a rollback takes back all rewrites of a batch; None: only this one.
    """

    layout: Layout
    name: str
    predicates: Sequence[Predicate]
    items: Sequence[Feature]
    origin: Mapping[str, Any]
    writing: Writing
    joins: Joins = NO_JOINS
    lookups: Sequence[Column] = ()
    wave_bytes: float = inf
    where: str | Sequence[str] | None = None
    batch: str | None = None

    def entry(self, fields: Fields, settings: Mapping[str, str], items: Sequence[Feature]) -> Entry:
        """Return the entry of a part that has no id and no files yet."""
        joined = to_store(self.joins, (*items, *self.layout.features))
        return Entry("", "", "", fields, settings, self.writing, tuple(items), joined=joined, origin=self.origin)
