"""Describes the identity of columns, so that a column differs from a later one of the same name."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from hedgerow.core.predicates.sql_text import quote_name

PHYSICAL_NAME = "delta.columnMapping.physicalName"
CHAR = "__CHAR_VARCHAR_TYPE_STRING"  # the type that SQL declared, such as char(3): Spark's own is string
_IDENTITY = re.compile(r"delta\.columnMapping\.|__CHAR_VARCHAR")


def column_identities(fields: Sequence[Any]) -> dict[str, str]:
    """Return a text for each top-level column of Spark's JSON; equal texts mean the same column in two versions.

    The text has the column's type and its identity in the data files."""
    return {quote_name(field["name"]): json.dumps(_identity(field), sort_keys=True) for field in fields}


def _identity(value: Any) -> Any:
    match value:
        case {"metadata": dict() as metadata, **facts}:
            identity = {k: v for k, v in metadata.items() if _IDENTITY.match(k)}
            return {**{k: _identity(v) for k, v in facts.items() if k != "nullable"}, "metadata": identity}
        case dict():
            return {k: _identity(v) for k, v in value.items() if k not in ("containsNull", "valueContainsNull")}
        case list():
            return [_identity(v) for v in value]
    return value
