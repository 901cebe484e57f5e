"""The messages between the JVM and the Python process that answers it: `Wire.java` has a record for each class here.

A message is JSON; its member "is" names the class. Python says `Lists` first. The JVM sends requests, and gets answers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

VERSION = 13  # raised with every change of a class


@dataclass(frozen=True, slots=True)
class Lists:
    """The names that the JVM looks up, from `spark/judged`; a name on no list is unknown."""

    version: int
    expressions: Sequence[str]
    replaced: Sequence[str]
    never_fail: Sequence[str]
    whole_tasks: Sequence[str]
    repeatable: Sequence[str]
    always_stored: Sequence[str]


# --- conditions -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Column:
    """A data column by its whole path; `cast`: the wider numeric type that it is compared in."""

    path: Sequence[str]
    type: str
    cast: str | None = None


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression of the index, by its number."""

    item: int
    type: str


@dataclass(frozen=True, slots=True)
class Value:
    """A literal in Spark's internal form: days, microseconds, digits, hexadecimal bytes."""

    text: str
    type: str


Side: TypeAlias = "Column | Expression | Value"


@dataclass(frozen=True, slots=True)
class And:
    parts: Sequence[Condition]


@dataclass(frozen=True, slots=True)
class Or:
    parts: Sequence[Condition]


@dataclass(frozen=True, slots=True)
class Not:
    part: Condition


@dataclass(frozen=True, slots=True)
class Constant:
    value: bool | None


@dataclass(frozen=True, slots=True)
class IsNull:
    term: Side


@dataclass(frozen=True, slots=True)
class In:
    term: Side
    type: str
    values: Sequence[str]


@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison; `op` is also `<=>`, `starts`, `ends`, `contains` or `like`."""

    left: Side
    op: str
    right: Side


@dataclass(frozen=True, slots=True)
class Indexed:
    """A condition of the index, by its number."""

    item: int


@dataclass(frozen=True, slots=True)
class Unknown:
    pass


Condition: TypeAlias = "And | Or | Not | Constant | IsNull | In | Compare | Indexed | Unknown"

# --- requests -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Judge:
    """Asks which of these settings and reader options change nothing. Answered by `Harmless`."""

    settings: Sequence[str]
    options: Sequence[str]


@dataclass(frozen=True, slots=True)
class Open:
    """Opens a table in a state, for a session and the columns that a query sees. Answered by `Opened`.

    `schema`, and `delta` for a Delta table: Spark's JSON of a schema.
    """

    path: str
    state: int
    settings: Mapping[str, str]
    schema: str
    delta: str | None


@dataclass(frozen=True, slots=True)
class JoinedRows:
    """A condition on the rows to which a foreign key leads, and on the rows to which their keys lead."""

    number: int
    version: str
    root: str
    schema: str
    where: Condition
    joined: Sequence[JoinedRows]


@dataclass(frozen=True, slots=True)
class EqualColumns:
    """Equal columns of two rows.

    `left`, `right`: places among the `JoinedRows` of a request, each before those that its keys lead to; -1: the table.
    """

    left: int
    left_column: str
    right: int
    right_column: str
    type: str


@dataclass(frozen=True, slots=True)
class ColumnPair:
    mine: str
    theirs: str
    type: str


@dataclass(frozen=True, slots=True)
class Partner:
    """An opened table whose rows a join needs, with their condition and the joined columns."""

    handle: str
    where: Condition
    joined: Sequence[JoinedRows]
    columns: Sequence[ColumnPair]


@dataclass(frozen=True, slots=True)
class Choose:
    """Asks for the files that a query opens. Answered by `Chosen` or `Instead`.

    `own`: no other files may be read instead of the table's. `columns`: those that the query reads; None: all. `equal`:
    holds for all rows that the query needs.
    """

    handle: str
    where: Condition
    own: bool
    columns: Sequence[str] | None
    joined: Sequence[JoinedRows]
    equal: Sequence[EqualColumns]
    partners: Sequence[Partner]


@dataclass(frozen=True, slots=True)
class ScannedRows:
    """The rows of the indexed files that a scan reads.

    `runs`: the places where a run of files that the scan lists exactly once begins, and where it ends, in turn.
    `deleted_in`: the places of files with deleted rows; `deleted`: how many rows, -1 if that is not known.
    """

    runs: Sequence[int]
    deleted_in: Sequence[int]
    deleted: Sequence[int]


@dataclass(frozen=True, slots=True)
class Order:
    """The first term of an ORDER BY."""

    by: Side
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class ChooseRows:
    """Asks for files that hold the first `rows` rows of an order, or any rows if it is None. Answered by `Chosen`.

    `probe`: the answer may be a `Probe`. Without an order, only these files are opened, and none that the index does
    not know. Here and below, `where` is the whole condition of the scan: a weaker one is not enough. After `Refused`,
    `Choose` may still skip files.
    """

    handle: str
    where: Condition
    scanned: ScannedRows
    order: Order | None
    rows: int
    probe: bool = False


@dataclass(frozen=True, slots=True)
class Count:
    """`count(of) FILTER (WHERE where)`; `of` is None for `count(*)`, `where` without a filter."""

    of: Side | None
    where: Condition | None


@dataclass(frozen=True, slots=True)
class Extreme:
    """`max(of)`, if `greatest`, or `min(of)`, with the same filter."""

    of: Side
    greatest: bool
    where: Condition | None


@dataclass(frozen=True, slots=True)
class Sum:
    """`sum(of)`, with the same filter. `as_double`: Spark adds up doubles; of decimals, those without their point."""

    of: Side
    where: Condition | None
    as_double: bool


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Asks for these aggregates over files that need no scan. Answered by `Aggregated`.

    `Refused` without `again`: the same groups and values are refused for any condition.
    """

    handle: str
    where: Condition
    scanned: ScannedRows
    groups: Sequence[Side]
    values: Sequence[Count | Extreme | Sum]


@dataclass(frozen=True, slots=True)
class KeyBounds:
    """Asks which values of a column each file may hold. Answered by `Bounds`.

    `Refused` without `again`: no keys would skip a file.
    """

    handle: str
    key: Side


Request: TypeAlias = "Judge | Open | Choose | ChooseRows | Aggregate | KeyBounds"

# --- answers --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Harmless:
    settings: Sequence[str]
    options: Sequence[str]


@dataclass(frozen=True, slots=True)
class Item:
    """An expression of the index as SQL, for Spark to parse."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Key:
    """A foreign key that the index follows, and the keys that go on from there."""

    name: str
    number: int
    columns: Sequence[str]
    others: Sequence[str]
    types: Sequence[str]
    version: str
    items: Sequence[Item]
    joined: Sequence[Key]


@dataclass(frozen=True, slots=True)
class Opened:
    """An opened table: the indexed files, the index's expressions, and the foreign keys that it follows.

    `groups`: the number of row groups of each file that the index describes; empty if it describes none. `starts`: the
    byte at which each of these row groups begins, file after file.
    """

    handle: str
    name: str
    files: Sequence[str]
    sizes: Sequence[int]
    groups: Sequence[int]
    starts: Sequence[int]
    items: Sequence[Item]
    joined: Sequence[Key]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The files to open: a 1 or a 0 for each file of `Opened`, and for each of its row groups; empty: all are read.

    `means`: see `ScanReport`.
    """

    bits: str
    means: str
    group_bits: str = ""


@dataclass(frozen=True, slots=True)
class Probe:
    """The files in which the query looks for a threshold: the value of the k-th of their matching rows.

    `bits`: as in `Chosen`. `last_value`: no value comes after it; a text as in `Value`. `opened`: the files that may
    hold the first rows; None if WHERE says best which.
    """

    bits: str
    last_value: str
    opened: str | None


@dataclass(frozen=True, slots=True)
class Aggregated:
    """The aggregates over the skipped files. A row for each group: its GROUP BY values, then its aggregates.

    `bits`: the files to scan, as in `Chosen`. There is no group if no skipped file has a matching row. A value is a
    text as in `Value`, of the type that the request names, or None for NULL. A count is a bigint.
    """

    bits: str
    rows: Sequence[Sequence[str | None]]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The sorted bounds of a column in all files, as texts, and the first and last place of each file among them.

    Value i has place 2 i + 1, and the gap before it has place 2 i. A file with `first > last` has no value. File i has
    no values but those at `places[offsets[k] : offsets[k + 1]]`, where k is `set_of[i]`, if that is not -1.

    `looked_up`: so many keys may be looked up by `Choose`, for filters of look-ups know more; 0: there are none. Then
    some keys skip a file by the bounds alone; with filters, there may be no values at all.
    """

    values: Sequence[str]
    first: Sequence[int]
    last: Sequence[int]
    set_of: Sequence[int]
    offsets: Sequence[int]
    places: Sequence[int]
    looked_up: int


@dataclass(frozen=True, slots=True)
class Instead:
    """Other files to read; `codes`: the values to keep of a hidden column, None: all rows."""

    paths: Sequence[str]
    sizes: Sequence[int]
    column: str | None
    codes: Sequence[int] | None


@dataclass(frozen=True, slots=True)
class Refused:
    """Why no file may be skipped. `again`: the next query may ask again; `forget`: the handle is no longer known."""

    reason: str
    again: bool = False
    forget: bool = False


Answer: TypeAlias = "Harmless | Opened | Chosen | Probe | Aggregated | Bounds | Instead | Refused"

# --- read from the JVM ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TableVersion:
    """The version of a table that a frame reads whole, and the reader options that it was read with."""

    version: str
    options: Sequence[str]


@dataclass(frozen=True, slots=True)
class ScanReport:
    """The files that one scan of a managed table opens; `seconds` is the time that the decision took.

    The numbers are 0 for a table that is read through DataSource V2. `reason`: why the index, or what it knows of
    joined rows, was not used; None if it was. `means`: "where", "look-up" if filters of look-ups skipped more, or how
    fewer files were needed than by WHERE: "top-k", "limit" or "aggregates"; "probe" for the files that are read first
    to find a threshold.

    `keys`: how many keys of joins have chosen files at run time; keys at one place among the files' bounds count once,
    unless filters of look-ups were asked. Then `files_read` and `bytes_read` of the opened files were read, and
    `key_seconds` is the time until the keys were there and had chosen. None if no keys have chosen.
    """

    table: str
    files: int
    files_opened: int
    bytes: int
    bytes_opened: int
    seconds: float
    reason: str | None = None
    means: str = "where"
    files_read: int | None = None
    bytes_read: int | None = None
    keys: int | None = None
    key_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class ScanNote:
    """A scan of a query that has ended: its conditions as SQL, and the files, rows and bytes that it read.

    `keys`: conditions that the keys of its joins had while the query ran. `kind`: what the query wants of the rows:
    "top-k", "limit", "aggregates", or else "where". `means`: as in `ScanReport`; empty if no file was skipped.
    `listed`: the files without skipping.
    """

    root: str
    where: Sequence[str]
    keys: Sequence[str]
    columns: Sequence[str]
    files: int
    bytes: int
    rows: int
    kept: int
    kind: str
    means: str
    listed: int


@dataclass(frozen=True, slots=True)
class ScanJoin:
    """Rows of a scan matter only if their columns equal those of a row of another; the scans by their places."""

    scan: int
    columns: Sequence[str]
    other: int
    other_columns: Sequence[str]


@dataclass(frozen=True, slots=True)
class QueryNote:
    """A query that has ended; `execution`: Spark's number for it, `at`: milliseconds since 1970 at its start."""

    execution: int
    at: int
    seconds: float
    scans: Sequence[ScanNote]
    joins: Sequence[ScanJoin]


@dataclass(frozen=True, slots=True)
class QueryNotes:
    """Notes on queries; `lost`: queries before them that were not noted."""

    lost: int
    notes: Sequence[QueryNote]


# --- JSON -----------------------------------------------------------------------------------------

_CLASSES = {name: value for name, value in vars().items() if hasattr(value, "__dataclass_fields__")}


def write(message: Any) -> str:
    """Return a message as JSON.

    >>> write(Chosen("01", "where", "101"))
    '{"is": "Chosen", "bits": "01", "means": "where", "group_bits": "101"}'
    """
    return json.dumps(message, default=_members)


def read(text: str) -> Any:
    """Return the message that JSON stands for.

    >>> read(write(Not(Indexed(3))))
    Not(part=Indexed(item=3))
    """
    return json.loads(text, object_hook=_message)


def _members(message: Any) -> dict[str, Any]:
    return {"is": type(message).__name__, **{f.name: getattr(message, f.name) for f in fields(message)}}


def _message(members: dict[str, Any]) -> Any:
    name = members.pop("is", None)
    return members if name is None else _CLASSES[name](**members)
