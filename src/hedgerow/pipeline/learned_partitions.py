"""The layouts of a table's partitions: what `learn_partitions` returns and `apply_partitions` takes, saved as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hedgerow.core.errors import FormatError, HedgerowError
from hedgerow.core.text_file import write_text
from hedgerow.pipeline.learned import Learned, read_text
from hedgerow.spark.storage.delta_log import Snapshot


@dataclass(frozen=True)
class LearnedPartitions(Mapping[str, Learned]):
    """A layout for each of some conditions on a table's partition columns, such as `month = '2026-11'`."""

    layouts: Mapping[str, Learned]

    def __getitem__(self, where: str) -> Learned:
        return self.layouts[where]

    def __iter__(self) -> Iterator[str]:
        return iter(self.layouts)

    def __len__(self) -> int:
        return len(self.layouts)

    def __str__(self) -> str:
        return "\n".join(f"{where}: {learned}" for where, learned in self.layouts.items())

    def to_json(self) -> str:
        layouts = {where: json.loads(learned.to_json()) for where, learned in self.layouts.items()}
        return json.dumps({"hedgerow_partitions": layouts})

    @staticmethod
    def from_json(value: str) -> LearnedPartitions:
        """Read the text of `to_json`; FormatError for any other."""
        try:
            saved = json.loads(value)["hedgerow_partitions"].items()
            return LearnedPartitions({where: Learned.from_json(json.dumps(layout)) for where, layout in saved})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise FormatError("these are no layouts that `learn_partitions` made, or damaged ones") from error

    def save(self, path: str | Path) -> None:
        write_text(path, self.to_json(), "the layout")

    @staticmethod
    def load(path: str | Path) -> LearnedPartitions:
        return LearnedPartitions.from_json(read_text(path))


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
