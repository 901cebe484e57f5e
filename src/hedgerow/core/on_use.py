"""A mapping whose values are made when they are first used: queries decode only the columns that they use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

V = TypeVar("V")


class OnUse(Mapping[str, V]):
    """Makes each value once. Threads may make one twice, but `make` has to return equal values.

    >>> squares = OnUse({"3": lambda: 9})
    >>> squares["3"], list(squares)
    (9, ['3'])
    """

    def __init__(self, make: Mapping[str, Callable[[], V]]) -> None:
        self._make = make
        self._made: dict[str, V] = {}

    def __getitem__(self, name: str) -> V:
        if name not in self._made:
            self._made[name] = self._make[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._make)

    def __len__(self) -> int:
        return len(self._make)

    def __contains__(self, name: object) -> bool:
        return name in self._make


def mapped_on_use(values: Mapping[str, V], names: Iterable[str], change: Callable[[V], V]) -> OnUse[V]:
    """Return a mapping of some names to their changed values."""
    return OnUse({name: lambda name=name: change(values[name]) for name in names})  # type: ignore[misc]
