"""The messages: Java's records and Python's dataclasses have the same names, fields and version."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from hedgerow.spark import wire

SOURCE = Path(__file__).parents[2] / "java/src/main/java/hedgerow/Wire.java"
RECORD = re.compile(r"record (\w+)\s*\(((?:[^()]|\([^()]*\))*)\)\s*implements", re.DOTALL)
FIELD = re.compile(r"(?:@JsonProperty\(\"(\w+)\"\) )?[\w<>\[\], ]+? (\w+)$")


def records() -> dict[str, list[str]]:
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", SOURCE.read_text(), flags=re.DOTALL)
    found = {}
    for name, listed in RECORD.findall(text):
        parts = [" ".join(part.split()) for part in re.split(r",(?![^<]*>)", listed) if part.strip()]
        matches = [FIELD.match(part) for part in parts]
        found[name] = [m[1] or m[2] for m in matches if m]
    return found


def test_both_sides_have_the_same_messages() -> None:
    python = {name: [f.name for f in fields(kind)] for name, kind in wire._CLASSES.items()}
    assert records() == python
    assert f"int VERSION = {wire.VERSION};" in SOURCE.read_text()


def test_messages_survive_json() -> None:
    where = wire.And([wire.Compare(wire.Column(["a", "b"], "int"), "<", wire.Value("5", "int")), wire.Unknown()])
    rows = wire.JoinedRows(0, "files 1", "", '{"type": "struct", "fields": []}', where, [])
    partner = wire.Partner("h", where, [rows], [wire.ColumnPair("a", "b", "int")])
    equal = wire.EqualColumns(-1, "a", 0, "b", "int")
    for message in (wire.Choose("h", where, False, None, [rows], [equal], [partner]), wire.Refused("why")):
        assert wire.read(wire.write(message)) == message


def test_a_message_of_another_version_is_no_message() -> None:
    with pytest.raises(KeyError):
        wire.read('{"is": "Nothing"}')
    with pytest.raises(TypeError):
        wire.read('{"is": "Chosen", "bits": "1", "more": 2}')
