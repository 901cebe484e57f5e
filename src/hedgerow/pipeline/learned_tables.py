"""The layouts of several tables: the result of `learn_tables` and input of `apply_tables`, saved as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hedgerow.core.errors import FormatError
from hedgerow.core.layouts.curve import CurveLayout
from hedgerow.core.predicates.nodes import Predicate, columns_of
from hedgerow.core.predicates.predicate_json import decode, encode
from hedgerow.core.text_file import write_text
from hedgerow.core.workload.references import Reference
from hedgerow.pipeline.learned import Learned, read_text

ONE_BLOCK = CurveLayout((), (), ())


@dataclass(frozen=True)
class LearnedTables(Mapping[str, Learned]):
    """The layouts of several tables, by name, and the foreign keys that were used."""

    layouts: Mapping[str, Learned]
    references: tuple[Reference, ...] = ()

    def __getitem__(self, name: str) -> Learned:
        return self.layouts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.layouts)

    def __len__(self) -> int:
        return len(self.layouts)

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
        layouts = {name: json.loads(learned.to_json()) for name, learned in self.layouts.items()}
        return json.dumps({"hedgerow_tables": layouts, "keys": list(map(encode, self.references))})

    @staticmethod
    def from_json(value: str) -> LearnedTables:
        """Read the text of `to_json`; FormatError for any other."""
        try:
            saved = json.loads(value)
            layouts = {name: Learned.from_json(json.dumps(layout)) for name, layout in saved["hedgerow_tables"].items()}
            return LearnedTables(layouts, tuple(decode(key, (Reference,)) for key in saved["keys"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise FormatError("these are no layouts that `learn_tables` made, or damaged ones") from error

    def save(self, path: str | Path) -> None:
        write_text(path, self.to_json(), "the layout")

    @staticmethod
    def load(path: str | Path) -> LearnedTables:
        return LearnedTables.from_json(read_text(path))


def in_one_block(name: str, predicates: Sequence[Predicate]) -> Learned:
    """Return the layout of a table that is not divided."""
    own = tuple(p for p in predicates if all(len(c.path) == 1 for c in columns_of(p)))
    return Learned(ONE_BLOCK, name, own)
