"""Several layouts by name, saved as one JSON text: those of tables, or of partitions."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from hedgerow.core.errors import FormatError
from hedgerow.core.text_file import write_text
from hedgerow.pipeline.learned import Learned, read_text

L = TypeVar("L", bound="LearnedLayouts")


@dataclass(frozen=True)
class LearnedLayouts(Mapping[str, Learned]):
    """Layouts by name. `MADE_BY`: the function that returns them."""

    MADE_BY: ClassVar[str]
    layouts: Mapping[str, Learned]

    def __getitem__(self, name: str) -> Learned:
        return self.layouts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.layouts)

    def __len__(self) -> int:
        return len(self.layouts)

    @abstractmethod
    def to_json(self) -> str: ...

    @classmethod
    @abstractmethod
    def _of_saved(cls: type[L], saved: dict[str, Any]) -> L:
        """Return what `to_json` saved; any error if that is damaged."""

    @classmethod
    def from_json(cls: type[L], value: str) -> L:
        """Read the text of `to_json`; FormatError for any other."""
        try:
            return cls._of_saved(json.loads(value))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise FormatError(f"these are no layouts that `{cls.MADE_BY}` made, or damaged ones") from error

    def save(self, path: str | Path) -> None:
        write_text(path, self.to_json(), "the layout")

    @classmethod
    def load(cls: type[L], path: str | Path) -> L:
        return cls.from_json(read_text(path))

    def _saved(self) -> dict[str, Any]:
        return {name: json.loads(learned.to_json()) for name, learned in self.layouts.items()}


def layouts_of(saved: Mapping[str, Any]) -> dict[str, Learned]:
    """Return the layouts that were saved by name."""
    return {name: Learned.from_json(json.dumps(layout)) for name, layout in saved.items()}
