"""Adds digests to the files that Hedgerow stores inside of a table, so that a damaged file is refused.

A JSON document has a digest of itself, and the digests of the files that it names. So a file cannot be replaced by
another one of the same kind.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from hedgerow.core.errors import FormatError
from hedgerow.spark.storage.folder import Folder

FORMAT = 1
_DIGEST = "digest"


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def sealed(document: Mapping[str, Any]) -> bytes:
    """Return the document as JSON, with the version of the format and a digest."""
    stored = {"version": FORMAT, **document}
    return json.dumps({**stored, _DIGEST: _digest_of(stored)}, indent=1).encode()


def unsealed(data: bytes, what: str) -> dict[str, Any]:
    """Return the document that `sealed` made; FormatError if it is damaged or of another format."""
    try:
        stored = json.loads(data)
        stored_digest, version = stored.pop(_DIGEST), stored["version"]
        if version != FORMAT:
            raise FormatError(f"{what} was written by another version of Hedgerow (format {version})")
        if stored_digest != _digest_of(stored):
            raise FormatError(f"{what} is damaged")
        del stored["version"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FormatError(f"{what} is damaged") from error
    document: dict[str, Any] = stored
    return document


def _digest_of(document: Mapping[str, Any]) -> str:
    return digest(json.dumps(document, sort_keys=True).encode())


def read_sealed(folder: Folder, name: str, seals: Mapping[str, str]) -> bytes:
    """Return the bytes of a file; FormatError if they have another digest than when they were written."""
    data = folder.read(name)
    if digest(data) != seals.get(name):
        raise FormatError(f"{folder.root}/{name} is damaged")
    return data
