"""The layouts of several tables: the result of `learn_tables` and input of `apply_tables`, saved as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hedgerow.core.layouts.curve import CurveLayout
from hedgerow.core.predicates.nodes import Predicate, columns_of
from hedgerow.core.predicates.predicate_json import decode, encode
from hedgerow.core.workload.references import Reference
from hedgerow.pipeline.learned import Learned
from hedgerow.pipeline.learned_layouts import LearnedLayouts, layouts_of

ONE_BLOCK = CurveLayout((), (), ())


@dataclass(frozen=True)
class LearnedTables(LearnedLayouts):
    """The layouts of several tables, by name, and the foreign keys that were used."""

    MADE_BY = "learn_tables"
    references: tuple[Reference, ...] = ()

    def __str__(self) -> str:
        return "\n".join([*map(str, self.layouts.values()), *(f"by the key {key}" for key in self.references)])

    def in_order(self) -> list[str]:
        """Return the names of the tables, each after those to which its foreign keys lead."""
        ordered: dict[str, None] = {}

        def add(name: str) -> None:
            for key in self.references:
                if key.table == name and key.other in self.layouts and key.other not in ordered:
                    add(key.other)
            ordered.setdefault(name)

        for name in self.layouts:
            add(name)
        return list(ordered)

    def to_json(self) -> str:
        return json.dumps({"hedgerow_tables": self._saved(), "keys": list(map(encode, self.references))})

    @classmethod
    def _of_saved(cls, saved: dict[str, Any]) -> LearnedTables:
        keys = tuple(decode(key, (Reference,)) for key in saved["keys"])
        return LearnedTables(layouts_of(saved["hedgerow_tables"]), keys)


def in_one_block(name: str, predicates: Sequence[Predicate]) -> Learned:
    """Return the layout of a table that is not divided."""
    own = tuple(p for p in predicates if all(len(c.path) == 1 for c in columns_of(p)))
    return Learned(ONE_BLOCK, name, own)
