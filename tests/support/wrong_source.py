"""Plants a bug in a module: its functions get the code that the source has with another text in one place.

The functions stay the same objects. So the bug is wherever they were imported to, and classes keep their instances.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any


@contextmanager
def wrong_source(module: ModuleType, right: str, wrong: str) -> Iterator[None]:
    """Replace a text that the module's source has once while the body runs; LookupError if that changes no function."""
    place = str(module.__file__)
    source = Path(place).read_text()
    if source.count(right) != 1:
        raise LookupError(f"{module.__name__} has {source.count(right)} times {right}")
    codes = dict(_codes_in(compile(source.replace(right, wrong), place, "exec", dont_inherit=True)))
    before = {f: f.__code__ for f in _functions_of(module) if f.__code__ != codes.get(f.__qualname__, f.__code__)}
    if not before:
        raise LookupError(f"no function of {module.__name__} changes with {right}")
    try:
        for function in before:
            function.__code__ = codes[function.__qualname__]
        yield
    finally:
        for function, code in before.items():
            function.__code__ = code


def _codes_in(code: CodeType, within: str = "") -> Iterator[tuple[str, CodeType]]:
    """Yield the code of each function and class in a module, by its qualified name."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield within + inner.co_name, inner
            yield from _codes_in(inner, f"{within}{inner.co_name}.")


def _functions_of(holder: Any) -> Iterator[FunctionType]:
    """Yield the functions of a module and of its classes, without those that it imports."""
    home = getattr(holder, "__module__", holder.__name__)
    for member in vars(holder).values():
        if isinstance(member, type) and member.__module__ == home:
            yield from _functions_of(member)
            continue
        if isinstance(member, property):
            member = member.fget
        elif isinstance(member, cached_property):
            member = member.func
        elif isinstance(member, (staticmethod, classmethod)):
            member = member.__func__
        function = inspect.unwrap(member) if callable(member) else None
        if isinstance(function, FunctionType) and function.__module__ == home:
            yield function
