"""One wide table of text, with searches that overlap: the shape of Pando's Meta 1 (8.1, 8.3), generated.

A row is a run of some query engine. It belongs to a subject, and the texts of most columns (the table read, the path,
the tool, the owner, the error) contain the subject's own words, sometimes another subject's. Queries search for such
words by LIKE, in one to three columns. So a match in one column is mostly a match in another, which the query does not
name.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.data.cache import generated
from bench.matching import matching
from bench.memory import InMemory, bound, measured
from bench.options import MTO, PANDO, Case, Options, by_trees
from bench.report.quality import check
from hedgerow.sql.workload import Workload

ROWS = {"quick": 50_000, "full": 1_000_000}
BLOCKS = {"quick": 50, "full": 200}
QUERIES = {"quick": 50, "full": 100}
WRITTEN_ROWS, TIMED = {"quick": 200_000, "full": 8_000_000}, {"quick": 6, "full": 30}  # where tables are written
SHARES = 0.8, 0.95  # most rows read, as shares of those read of random blocks: learned and unseen queries
SUBJECTS, FAMILIES, OWN = 80, 12, 0.85
FORMS = {
    "table_read": "{family}_{word}_{n}",
    "path": "/warehouse/{family}/{word}/part={n}",
    "tool": "{word}-runner-{n}",
    "owner": "{word}.team{n}",
    "error": "operator {n} of {word} failed",
    "dashboard": "{family} {word} by hour {n}",
    "pipeline": "daily.{word}.step{n}",
    "host": "{family}{n}.{word}.example",
}
OTHERS = ("started_minute", "rows_out", "bytes_in", "cpu_ms", "memory_kb", "stages")


def _cases(pando: tuple[Case, ...]) -> tuple[Case, ...]:
    return (
        ("random", {"recurrence": 1}),  # ignores queries, so none is redrawn
        ("range", {"columns": "started_minute", "recurrence": 1}),
        *map(by_trees, (MTO, *pando)),
        *(MTO, *pando),
        ("qdtree", {"recurrence": 1}),
        ("pando", {"recurrence": 1}),
        ("qdtree", {}),
        ("pando", {}),
    )


CASES = {"quick": _cases(PANDO[:1]), "full": _cases(PANDO)}


@cache
def words() -> tuple[list[str], list[str]]:
    """Return a word for each subject, and one for each family of subjects."""
    r = random.Random("correlated-like")
    syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
    drawn: list[str] = []
    while len(drawn) < SUBJECTS + FAMILIES:
        word = "".join(r.sample(syllables, 3))
        if word not in drawn:
            drawn.append(word)
    return drawn[:SUBJECTS], drawn[SUBJECTS:]


def rows_of(rows: int, start: int, end: int) -> pa.Table:
    """Return rows `start` to `end` of a table of `rows` rows, in the order in which the runs began."""
    r, n = np.random.default_rng([11, rows, start]), end - start
    weights = 1 / np.arange(1, SUBJECTS + 1) ** 0.8
    up_to = np.cumsum(weights) / weights.sum()
    subject = np.searchsorted(up_to, r.random(n)).clip(max=SUBJECTS - 1)
    columns: dict[str, pa.Array] = {"started_minute": pa.array(np.arange(start, end) * 1440 // rows)}
    for name in OTHERS[1:]:
        columns[name] = pa.array(r.geometric(0.001 * (1 + subject % 7), n))
    for name, form in FORMS.items():
        subject_of_text = np.where(r.random(n) < OWN, subject, r.integers(0, SUBJECTS, n))
        pairs, place = np.unique(subject_of_text * 100 + r.integers(0, 20, n), return_inverse=True)
        texts = [_text(form, pair // 100, pair % 100) for pair in pairs.tolist()]
        columns[name] = pa.DictionaryArray.from_arrays(pa.array(place, pa.int32()), texts).cast(pa.string())
    return pa.table(columns)


def _text(form: str, subject: int, n: int) -> str:
    own, families = words()
    return form.format(word=own[subject], family=families[subject % FAMILIES], n=n)


def conditions(seed: int, n: int) -> list[str]:
    """Return the condition of each query; a larger `n` with the same seed begins with the same queries."""
    r = random.Random(f"correlated-like, {seed}")
    return [_condition(r) for _ in range(n)]


def _condition(r: random.Random) -> str:
    own, families = words()
    (subject,) = r.choices(range(SUBJECTS), [1 / (k + 1) ** 0.5 for k in range(SUBJECTS)])
    conditions = []
    for name in r.sample(list(FORMS), r.choices((1, 2, 3), (5, 3, 2))[0]):
        by_family = "{family}" in FORMS[name] and r.random() < 0.2
        conditions.append(f"{name} LIKE '%{families[subject % FAMILIES] if by_family else own[subject]}%'")
    return " AND ".join(conditions)


def table(rows: int) -> Path:
    def some(start: int, end: int) -> pa.Table:
        return rows_of(rows, start, end)

    return generated("correlated-like", rows, some)


def load(options: Options) -> InMemory:
    form = options.form
    rows = pq.read_table(table(ROWS[form]))
    texts = [conditions(seed, QUERIES[form]) for seed in (options.seed, ~options.seed)]
    learned, unseen = (bound([f"SELECT * FROM runs WHERE {condition}" for condition in those], rows) for those in texts)
    matched, matched_unseen = (fmean(matching(rows, those)) for those in texts)
    return InMemory("correlated-like", rows, learned, unseen, (matched, matched_unseen), ROWS[form] // BLOCKS[form])


def physical(options: Options) -> Iterator[dict[str, Any]]:
    """Time queries on written tables, beside peers."""
    from bench.physical import Physical, run

    form = options.form
    select = "SELECT count(*), sum(bytes_in), max(error) FROM runs WHERE "
    learned = Workload.from_sql([select + condition for condition in conditions(options.seed, QUERIES[form])])
    timed = [("all", select + condition) for condition in conditions(~options.seed, TIMED[form])]
    data = Physical(
        "correlated-like-physical",
        "runs",
        table(WRITTEN_ROWS[form]),
        learned,
        timed,
        "started_minute",
        clustered_by=("path", "tool", "owner"),
    )
    yield from run(data, (MTO, PANDO[0], ("qdtree", {})), options)


def run(options: Options) -> Iterator[dict[str, Any]]:
    data = load(options)
    lines = []
    for case in options.cases(CASES[options.form]):
        lines.append(measured(data, case, options.form, options.seed))
        yield lines[-1]
    check(lines, "random", *SHARES)
