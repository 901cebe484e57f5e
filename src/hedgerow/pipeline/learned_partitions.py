"""The layouts of a table's partitions: what `learn_partitions` returns and `apply_partitions` takes, saved as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hedgerow.core.errors import HedgerowError
from hedgerow.pipeline.learned_layouts import LearnedLayouts, layouts_of
from hedgerow.spark.storage.delta_log import Snapshot


@dataclass(frozen=True)
class LearnedPartitions(LearnedLayouts):
    """A layout for each of some conditions on a table's partition columns, such as `month = '2026-11'`."""

    MADE_BY = "learn_partitions"

    def __str__(self) -> str:
        return "\n".join(f"{where}: {learned}" for where, learned in self.layouts.items())

    def to_json(self) -> str:
        return json.dumps({"hedgerow_partitions": self._saved()})

    @classmethod
    def _of_saved(cls, saved: dict[str, Any]) -> LearnedPartitions:
        return LearnedPartitions(layouts_of(saved["hedgerow_partitions"]))


def files_of(snapshot: Snapshot, conditions: Sequence[str]) -> dict[str, list[str]]:
    """Return the files of each condition on partitions; HedgerowError if one has none, or two share a file."""
    owner: dict[str, str] = {}
    files = {where: snapshot.names_where(where) for where in conditions}
    for where, names in files.items():
        if not names:
            raise HedgerowError(f"no partition of {snapshot.log.path} has {where}")
        for name in names:
            if owner.setdefault(name, where) != where:
                raise HedgerowError(f"{owner[name]} and {where} share a partition, which can have only one layout")
    return files
