"""Reads the parameters of a learner from texts such as `most=2`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from hedgerow.cli.app import key_value
from hedgerow.core.errors import HedgerowError


def learner_params(learner: str, texts: Sequence[str]) -> dict[str, Any]:
    """Return the learner's parameters, converted to the types that the learner declares."""
    from hedgerow.pipeline.learner_names import AUTO, make_learner

    if learner == AUTO and not texts:
        return {}
    cls: Any = type(make_learner(learner))
    kinds = {f.name: get_type_hints(cls)[f.name] for f in fields(cls)}
    params = {}
    for key, value in (key_value("--param", text) for text in texts):
        if key not in kinds:
            raise HedgerowError(f"the learner {learner} takes {', '.join(kinds) or 'no parameters'}, not {key!r}")
        try:
            params[key] = _value(kinds[key], value)
        except (ValueError, KeyError):
            raise HedgerowError(f"--param {key} of the learner {learner} cannot be {value!r}") from None
    return params


def _value(kind: Any, text: str) -> Any:
    if get_origin(kind) in (Union, UnionType):  # such as `int | None`
        kind = next(k for k in get_args(kind) if k is not NoneType)
    if get_origin(kind) is tuple:
        return tuple(_value(get_args(kind)[0], part.strip()) for part in text.split(",") if part.strip())
    if kind is bool:
        return {"true": True, "false": False}[text.lower()]
    return kind(text) if kind in (int, float) else text
