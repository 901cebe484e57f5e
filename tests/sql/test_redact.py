"""No literal of a condition is left, and equal conditions stay equal."""

from __future__ import annotations

import pytest

from hedgerow.sql.redact import redact

SECRETS = ("4711", "secret", "1999-01-02", "0a0b", "47.11")


@pytest.mark.parametrize(
    "condition",
    [
        "(id = 4711L) AND (note LIKE '%secret%')",
        "(d >= DATE '1999-01-02') OR (at < TIMESTAMP '1999-01-02 03:04:05')",
        "(bytes = X'0A0B')",
        "(price IN (47.11BD, 4711BD)) AND tags['secret'] = 'x'",
        "substring(note, 4711, 2) = r'secret'",
        "at > TIMESTAMP '1999-01-02' - INTERVAL '4711' DAY",
        "get_json_object(note, '$.secret') = '4711' AND get_json_object(note, '$.a[\\'secret\\'].b') = 'x'",
        "note = 'secret' this is no SQL (",
    ],
)
def test_no_literal_is_left(condition: str) -> None:
    hidden = redact(condition, b"key")
    assert not any(secret in hidden.lower() for secret in SECRETS), hidden
    assert hidden == redact(condition, b"key") != redact(condition, b"other key") or "unreadable" in hidden
