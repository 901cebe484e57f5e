"""Hedgerow's files inside a table are damaged, many times at random: no wrong row, and no error but one sentence."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import DataFrame, SparkSession

import hedgerow as hr
from hedgerow.tables.known_files import KnownFiles
from hedgerow.tables.managed import ManagedTable
from hedgerow.tables.sealed import digest, sealed, unsealed
from tests.support.delta_tables import ASKED, by_number, more, write
from tests.support.things_table import COLUMNS, ROWS

FEW, MANY = 5, 250  # for each kind of table: a thousand together
CONDITION = "number BETWEEN 500 AND 600 AND kind = 'n'"


def _flip(data: bytes, r: Random) -> bytes:
    """One wrong bit."""
    at = r.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << r.randrange(8)]) + data[at + 1 :]


def _flips(data: bytes, r: Random) -> bytes:
    for _ in range(r.randrange(2, 20)):
        data = _flip(data, r)
    return data


def _cut(data: bytes, r: Random) -> bytes:
    return data[: r.randrange(len(data))]


def _zeros(data: bytes, r: Random) -> bytes:
    at, n = r.randrange(len(data)), r.randrange(1, 200)
    return data[:at] + bytes(min(n, len(data) - at)) + data[at + n :]


def _longer(data: bytes, r: Random) -> bytes:
    return data + r.randbytes(r.randrange(1, 50))


def _number(data: bytes, r: Random) -> bytes:
    """A number in a JSON document becomes a huge one."""
    places = [i for i, byte in enumerate(data) if 48 <= byte <= 57] or [0]
    at = r.choice(places)
    return data[:at] + b"9" * r.choice([1, 20, 400, 5000]) + data[at + 1 :]


def _nested(data: bytes, r: Random) -> bytes:
    """A JSON document that is nested far too deep."""
    deep = b"[" * 100_000 + b"]" * 100_000
    at = data.find(b":", r.randrange(len(data)))
    return deep if at < 0 else data[: at + 1] + deep + data[at + 1 :]


def _elsewhere(data: bytes, r: Random) -> bytes:
    """Names of files that lead out of the table."""
    return data.replace(b"part-", r.choice([b"../p-", b"/tmp/", b"a:/b-"]))


DAMAGES: tuple[Callable[[bytes, Random], bytes], ...] = (
    _flip, _flip, _flip, _flips, _cut, _zeros, _longer, _number, _nested, _elsewhere,
)  # fmt: skip


@pytest.fixture(
    scope="module",
    params=["parquet", *(pytest.param(p, marks=pytest.mark.long) for p in ("delta", "overlap", "replica"))],
)
def kind(request: pytest.FixtureRequest, spark: SparkSession) -> str:
    if request.param == "delta":
        request.getfixturevalue("delta")
    return str(request.param)


@pytest.fixture(scope="module")
def whole(spark: SparkSession, kind: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table in two states: it was written, and something was appended."""
    place = tmp_path_factory.mktemp(kind) / "things"
    if kind == "delta":
        write(spark, str(place))
        by_number(spark, str(place)).append(more(spark))
        return place
    source = str(place.parent / "source")
    spark.range(ROWS).selectExpr(*COLUMNS).repartition(3).write.parquet(source)
    workload = hr.Workload.from_sql([f"SELECT * FROM things WHERE {c}" for c in ASKED])
    params = {"overlap": True} if kind == "overlap" else {}
    learned = hr.learn(
        spark, source, workload, "qdtree", hr.LearnOptions(block_rows=ROWS // 10), table="things", **params
    )
    table = hr.apply(spark, source, learned, str(place))
    if kind == "replica":
        copy = hr.learn(
            spark, source, workload, "range", hr.LearnOptions(block_rows=ROWS // 10), columns=["price"], table="things"
        )
        hr.apply(spark, source, copy, str(place), replica="by_price")
    elif kind == "parquet":
        table.append(more(spark))
    return place


@pytest.fixture(scope="module")
def right(spark: SparkSession, kind: str, whole: Path) -> list[str]:
    return _rows(_plain(spark, kind, whole))


def _plain(spark: SparkSession, kind: str, place: Path) -> DataFrame:
    return spark.sql(f"SELECT * FROM {'delta' if kind == 'delta' else 'parquet'}.`{place}` WHERE {CONDITION}")


def _rows(frame: DataFrame) -> list[str]:
    return sorted(map(str, frame.collect()))


def _sidecars(place: Path) -> list[Path]:
    found = (p for p in sorted((place / "_hedgerow").rglob("*")) if p.is_file() and p.suffix in (".json", ".arrow"))
    return [p for p in found if p.stat().st_size]


def _copied(whole: Path, to: Path) -> Path:
    """A copy that shares the data files."""
    data = {".parquet", ".crc"}
    return Path(
        shutil.copytree(
            whole, to, copy_function=lambda s, d: (os.link if Path(s).suffix in data else shutil.copy)(s, d)
        )
    )


def _looks(table: ManagedTable) -> Iterator[Callable[[], object]]:
    """What a user may ask of a table, beside its rows."""
    yield table.describe
    yield table.history
    yield lambda: table.score(hr.Workload.from_sql([f"SELECT * FROM things WHERE {CONDITION}"]))
    yield lambda: table.files(CONDITION)


def _check(spark: SparkSession, kind: str, place: Path, right: list[str]) -> Counter[str]:
    """How often a damaged table was refused, and how often it answered."""
    found: Counter[str] = Counter()
    # In an attached session a damage is no error: files that nothing is known of are opened.
    assert _rows(_plain(spark, kind, place)) == right
    try:
        table = hr.table(spark, str(place))
    except hr.HedgerowError as error:
        assert "\n" not in str(error)
        return Counter(refused=1)
    for look in _looks(table):
        try:
            look()
        except hr.HedgerowError as error:
            assert "\n" not in str(error)
            found["look refused"] += 1
    try:
        assert _rows(table.read(CONDITION)) == right
        found["read"] += 1
    except hr.HedgerowError as error:
        assert "\n" not in str(error)
        found["read refused"] += 1
    return found


@pytest.mark.parametrize("times", [FEW, pytest.param(MANY, marks=pytest.mark.long)])
def test_damages(attached: SparkSession, kind: str, whole: Path, right: list[str], times: int, tmp_path: Path) -> None:
    r, found = Random(times), Counter[str]()
    for i in range(times):
        place = _copied(whole, tmp_path / str(i))
        sidecar, damage = r.choice(_sidecars(place)), r.choice(DAMAGES)
        name = sidecar.relative_to(place).as_posix()
        sidecar.write_bytes(damage(sidecar.read_bytes(), r))
        if i % 2:  # Hadoop keeps checksums of its own on a local disk, but an object store has none
            (sidecar.parent / f".{sidecar.name}.crc").unlink(missing_ok=True)
        try:
            found += _check(attached, kind, place, right)
        except Exception as error:
            raise AssertionError(f"{i}: {damage.__name__} of {name}") from error
        shutil.rmtree(place)
    assert found["refused"] + found["look refused"] > times / 4, found  # the damages were seen


def test_damaged_data_files(attached: SparkSession, kind: str, whole: Path, tmp_path: Path) -> None:
    """Spark cannot read the rows: verbs that look at them say so, and what they stored is as it was."""
    place = _copied(whole, tmp_path / "copy")
    for file in place.rglob("*.parquet"):
        if not file.relative_to(place).parts[0].startswith("_"):
            size = file.stat().st_size
            file.unlink()  # it is shared
            file.write_bytes(b"PAR1" + bytes(size - 8) + b"PAR1")
    stored = {path: path.read_bytes() for path in _sidecars(place)}
    table = hr.table(attached, str(place))
    asked = hr.Workload.from_sql(f"SELECT * FROM {table.name} WHERE number % 7 = 3")
    for verb in (table.verify, lambda: table.relearn(asked)):
        with pytest.raises(hr.HedgerowError) as told:
            verb()
        assert "\n" not in str(told.value), told.value
    assert {path: path.read_bytes() for path in _sidecars(place)} == stored


LEADS_OUT = ("../outside/{file}", "{outside}/{file}", "file://{outside}/{file}", "./../outside/{file}")


@pytest.mark.parametrize("name", [LEADS_OUT[0], *(pytest.param(n, marks=pytest.mark.long) for n in LEADS_OUT[1:])])
def test_a_list_of_files_that_leads_out_of_the_table(
    attached: SparkSession, kind: str, whole: Path, right: list[str], name: str, tmp_path: Path
) -> None:
    """Sealed by someone who knows how: no file outside of the table is read, and none inside is left out."""
    place, outside = _copied(whole, tmp_path / "things"), tmp_path / "outside"
    shutil.copytree(whole, outside, ignore=shutil.ignore_patterns("_*"))
    for side in {state.parent for state in place.rglob("state-*.json")} | {place / "_hedgerow"}:
        for path in side.glob("files-*.arrow"):
            known = KnownFiles.of_bytes(path.read_bytes(), "")
            names = [name.format(file=Path(n).name, outside=outside) for n in known.names]
            _put(path, replace(known, names=tuple(names)).to_bytes())
        for path in side.glob("state-*.json"):
            _seal_again(path)
    assert _rows(_plain(attached, kind, place)) == right
    table = hr.table(attached, str(place))
    assert _rows(table.read(CONDITION)) == right
    assert not any("outside" in file for file in table.read().inputFiles())


def _put(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    (path.parent / f".{path.name}.crc").unlink(missing_ok=True)


def _seal_again(path: Path) -> None:
    """With the digests that the files have now."""
    document = unsealed(path.read_bytes(), path.name)
    for part in document["parts"]:
        part["seals"] = {n: digest((path.parent / n).read_bytes()) for n in part["seals"] if (path.parent / n).exists()}
    _put(path, sealed(document))


def test_a_damaged_delta_table_is_laid_out_again(delta: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "things"
    write(delta, str(place))
    by_number(delta, str(place))
    (index,) = (place / "_hedgerow").glob("index-*.arrow")
    index.write_bytes(_cut(index.read_bytes(), Random(0)))
    with pytest.raises(hr.HedgerowError):
        hr.table(delta, str(place)).verify()
    by_number(delta, str(place)).verify()
    hr.table(delta, str(place)).relearn(hr.Workload.from_sql(f"SELECT * FROM things WHERE {CONDITION}"))
    assert _rows(hr.table(delta, str(place)).read(CONDITION)) == _rows(_plain(delta, "delta", place))
