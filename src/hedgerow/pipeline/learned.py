"""What `learn` returns and `apply` takes: a layout, and what is known of how it was made; as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.core.errors import FormatError, HedgerowError
from hedgerow.core.layouts.base import Layout, layout_from_dict, layout_to_dict
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.core.predicates.predicate_json import decode_predicate, encode
from hedgerow.spark.optimizer.attach import last_query as last_query

if TYPE_CHECKING:
    pass

VERSION = 1


@dataclass(frozen=True)
class Learned:
    """A layout with what `apply` needs to know of its making."""

    layout: Layout
    table: str
    predicates: tuple[Predicate, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    noted: tuple[Predicate, ...] = ()  # conditions whose outcomes the index should hold, whatever the layout
    fit_seconds: float | None = None  # how long the learner thought, Spark's passes apart; not saved

    @property
    def blocks(self) -> int:
        return self.layout.blocks

    def __str__(self) -> str:
        made = f" by {self.provenance['learner']}" if "learner" in self.provenance else ""
        return f"a {self.layout.kind} layout of {self.table}{made}: {self.blocks:,} blocks"

    def to_json(self) -> str:
        return json.dumps(
            {
                "hedgerow_learned": VERSION,
                "table": self.table,
                "provenance": dict(self.provenance),
                "warnings": self.warnings,
                "layout": layout_to_dict(self.layout),
                "predicates": [encode(p) for p in self.predicates],
                "noted": [encode(p) for p in self.noted],
            }
        )

    @staticmethod
    def from_json(value: str) -> Learned:
        """What `to_json` wrote; FormatError for anything else."""
        try:
            found = json.loads(value)
            if found["hedgerow_learned"] > VERSION:
                raise FormatError(f"this layout was written by a newer Hedgerow (format {found['hedgerow_learned']})")
            return Learned(
                layout_from_dict(found["layout"]),
                found["table"],
                tuple(map(decode_predicate, found["predicates"])),
                found["provenance"],
                tuple(found["warnings"]),
                tuple(map(decode_predicate, found.get("noted", ()))),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise FormatError("this is no layout that `learn` made, or a damaged one") from error

    def save(self, path: str | Path) -> None:
        try:
            Path(path).write_text(self.to_json(), encoding="utf-8")
        except OSError as error:
            raise HedgerowError(f"the layout cannot be written to {path}: {error.strerror}") from error

    @staticmethod
    def load(path: str | Path) -> Learned:
        try:
            return Learned.from_json(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise HedgerowError(f"the layout {path} cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise FormatError(f"{path} is no layout that `learn` made") from error
