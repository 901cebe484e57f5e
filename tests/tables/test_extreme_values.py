"""Values and conditions at the ends of their types: every verb works, and a query's rows are those without skipping."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from pyspark.sql import DataFrame, SparkSession

import hedgerow as hr
from hedgerow.spark.start.session import spark_errors, temporary_settings
from tests.support.answers import answer, opened_by_each

NINES = "9" * 38
ENDS = {
    "DECIMAL(38,0)": (NINES, f"-{NINES}", f"{NINES[:-1]}8", "0", "5"),
    "DECIMAL(38,38)": (f"0.{NINES}", f"-0.{NINES}", f"0.{'0' * 37}1", "0", "0.5"),
    "DECIMAL(38,2)": (f"{NINES[:36]}.99", f"-{NINES[:36]}.99", f"{NINES[:36]}.98", "0", "-0.01"),
    "TINYINT": ("127", "-128", "126", "0"),
    "BIGINT": ("9223372036854775807", "-9223372036854775808", "9223372036854775806", "0"),
    "FLOAT": ("Infinity", "-Infinity", "NaN", "3.4028235E38", "1.4E-45", "-0.0", "0.0", "16777217"),
    "DOUBLE": ("Infinity", "-Infinity", "NaN", "1.7976931348623157E308", "4.9E-324", "-0.0", "9007199254740993"),
    "DATE": ("+5881580-07-11", "-5877641-06-23", "9999-12-31", "0001-01-01", "-0001-01-01", "+10000-01-01"),
    "TIMESTAMP": ("+294247-01-10 04:00:54.775807 UTC", "-290308-12-21 19:59:05.224192 UTC", "9999-12-31 23:59:59.999999"),
    "TIMESTAMP_NTZ": ("+294247-01-10 04:00:54.775807", "-290308-12-21 19:59:05.224192", "9999-12-31 23:59:59.999999"),
    "TIME(6)": ("00:00:00", "23:59:59.999999", "00:00:00.000001", "12:00:00"),
    "INTERVAL YEAR TO MONTH": ("178956970-7", "-178956970-8", "0-0", "1-1"),
    "INTERVAL DAY TO SECOND": ("106751991 04:00:54.775807", "-106751991 04:00:54.775808", "0 00:00:00", "1 02:03:04.5"),
}  # fmt: skip
NAMES = {kind: f"c{i}" for i, kind in enumerate(ENDS)}
OF_DELTA = [kind for kind in ENDS if "INTERVAL" not in kind and "TIME(" not in kind]
ROWS = 1200
SETTINGS = {"spark.sql.timeType.enabled": "true", "spark.sql.session.timeZone": "UTC"}


def literal(kind: str, text: str) -> str:
    return f"CAST('{text}' AS {kind})"


def rows(spark: SparkSession, kinds: list[str], start: int = 0, count: int = ROWS) -> DataFrame:
    """Rows whose neighbours are alike, so that files differ; a fifth of the places of each column is NULL."""
    cells = []
    for kind in kinds:
        values = [*(literal(kind, text) for text in ENDS[kind]), f"CAST(NULL AS {kind})"]
        place = f"CAST(pmod(xxhash64(id DIV 30, '{kind}'), {len(values)}) AS INT)"
        cells.append(f"get(array({', '.join(values)}), {place}) AS {NAMES[kind]}")
    return spark.range(start, start + count).selectExpr("id", *cells)


def conditions(random: Random, kinds: list[str], count: int) -> list[str]:
    """Comparisons with values of the type, as literals in several forms, one by one and in ranges and lists."""

    def written(kind: str) -> str:
        text = random.choice(ENDS[kind])
        forms = [literal(kind, text)]
        if kind.startswith(("DECIMAL", "TINYINT", "BIGINT")):
            forms += [text, text, f"{text}BD", f"{float(text)!r}D", f"'{text}'"]
            forms += [f"{text}.0"] if "." not in text and len(text.lstrip("-")) < 38 else []
        elif kind in ("DATE", "TIME(6)") or kind.startswith("TIMESTAMP"):
            forms += [f"{kind.partition('(')[0]} '{text}'", f"'{text}'"]
        elif "INTERVAL" in kind:
            forms = [f"INTERVAL '{text}' {kind.removeprefix('INTERVAL ')}"]
        elif text[-1].isdigit():
            forms += [f"{text}D", "1e37D", "0", "16777217"]
        return random.choice(forms)

    def atom() -> str:
        kind = random.choice(kinds)
        name = NAMES[kind]
        match random.randrange(6):
            case 0:
                return f"{name} IN ({written(kind)}, {literal(kind, random.choice(ENDS[kind]))})"
            case 1:
                return f"{name} BETWEEN {written(kind)} AND {written(kind)}"
            case 2 if kind == "TIMESTAMP":
                return f"CAST({name} AS DATE) <= DATE '9999-12-31'"
            case 2 if kind in ("BIGINT", "DECIMAL(38,0)"):
                return f"{name} + 1 > {written(kind)}"
            case 2 if "INTERVAL" in kind:
                return f"{name} + {written(kind)} > {written(kind)}"
        return f"{name} {random.choice(('=', '<', '<=', '>', '>=', '<>', '<=>'))} {written(kind)}"

    joined = (random.choice(("{}", "{}", "{} AND {}", "NOT ({} OR {})", "{} OR {}")) for _ in range(count))
    return [text.format(atom(), atom()) for text in joined]


def that_run(frame: DataFrame, texts: list[str]) -> list[str]:
    """Return the conditions that fail on no row: others fail with skipping and without."""

    def runs(frame: DataFrame, count: list[str]) -> bool:
        try:
            frame.selectExpr(*count).collect()  # no values: Python has no such years
        except spark_errors():
            return False
        return True

    def without_skipping(texts: list[str]) -> list[str]:
        if not texts or runs(frame, [f"count_if({text})" for text in texts]):
            return texts
        half = len(texts) // 2
        return [*without_skipping(texts[:half]), *without_skipping(texts[half:])] if half else []

    return [text for text in without_skipping(texts) if runs(frame.where(text), ["count(*)"])]


@pytest.mark.parametrize(
    ("format_", "learner", "ansi"),
    [
        ("parquet", "qdtree", "true"),
        pytest.param("parquet", "zorder", "false", marks=pytest.mark.long),
        pytest.param("parquet", "qdtree", "false", marks=pytest.mark.long),
        pytest.param("parquet", "hilbert", "true", marks=pytest.mark.long),
        pytest.param("delta", "qdtree", "true", marks=pytest.mark.long),
        pytest.param("delta", "zorder", "false", marks=pytest.mark.long),
    ],
)
def test_ends_of_types(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, format_: str, learner: str, ansi: str
) -> None:
    if format_ == "delta":
        request.getfixturevalue("delta")
    with temporary_settings(spark, {**SETTINGS, "spark.sql.ansi.enabled": ansi}):
        _compare(spark, tmp_path, format_, learner, Random(f"{format_} {learner} {ansi}"))


def _compare(spark: SparkSession, folder: Path, format_: str, learner: str, random: Random) -> None:
    kinds = OF_DELTA if format_ == "delta" else list(ENDS)
    source, to = str(folder / "source"), str(folder / "table") if format_ == "parquet" else None
    rows(spark, kinds).write.format(format_).save(source)
    asked = that_run(spark.read.format(format_).load(source), conditions(random, kinds, 20))
    workload = hr.Workload.from_sql([f"SELECT * FROM ends WHERE {c}" for c in asked])
    found = hr.learn(spark, source, workload, learner, hr.LearnOptions(block_rows=60), table="ends")
    table = hr.apply(spark, source, found, to).append(rows(spark, kinds, ROWS, 120))
    assert table.verify()["rows"] == ROWS + 120
    frame = spark.read.format(format_).load(table.path)
    asked = that_run(frame, [*asked[:6], *conditions(random, kinds, 6)])
    files = opened_by_each(frame, asked)
    assert any(opened < all_ for opened, all_ in files.values()), "no file was skipped"
    assert answer(table.read(asked[0])) == answer(frame.where(asked[0]))
