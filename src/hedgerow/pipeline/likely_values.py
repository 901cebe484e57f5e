"""Likely values for the clocks and parameters in queries, from the table's log or a few of its rows.

ts > now() - INTERVAL 1 DAY     now() is the newest `ts` of these rows, or the present time if that is earlier
user_id = :uid                  a value that logged queries compare `user_id` with; else the `user_id` of some row
ts BETWEEN :a AND :b            two such times, the earlier one first
note LIKE :word                 a word of the `note` of some row
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

from hedgerow.core.errors import HedgerowError
from hedgerow.core.predicates.nodes import Compare, In, atoms_of
from hedgerow.core.predicates.sql_text import literal_text, quote_string, term_text
from hedgerow.core.pruning.words import WORD
from hedgerow.pipeline.logged import workload_of
from hedgerow.spark.compute.constants import DATED, QUOTED, computed, literal_of
from hedgerow.spark.start.session import spark_errors
from hedgerow.spark.start.stable_functions import meaning
from hedgerow.spark.storage.source import Source
from hedgerow.sql.open_values import OpenValue
from hedgerow.tables.query_log import QueryLog

if TYPE_CHECKING:
    pass

VARIANTS = 4  # of a query with parameters, so that learners see that the values change
_ROWS = 10_000  # of a table, from which values are drawn
_MAX_LOGGED = 1_000  # literals of a term in the log, from which values are drawn

Values = dict[OpenValue, str]


@dataclass(frozen=True)
class _Term:
    """A term's values in the log or on some rows, as ascending texts. `newest`: the time that stands for now."""

    type: str
    newest: str
    values: Sequence[str]


def likely_values(sources: Mapping[str, Source], opened: Sequence[OpenValue], seed: int = 0) -> list[Values]:
    """Return `VARIANTS` times a value for each open value, as literals in Spark SQL, as far as there are any."""
    if not opened:
        return []
    spark, r = next(iter(sources.values())).frame.sparkSession, Random(seed)
    terms = {name: _terms(source, [v for v in opened if v.table == name], seed) for name, source in sources.items()}
    drawn = [dict(_drawn(opened, terms, r)) for _ in range(VARIANTS)]
    texts = sorted({text for values in drawn for text in values.values()})
    literals = computed(spark, texts)
    return [{value: literals[text] for value, text in values.items() if text in literals} for values in drawn]


def _drawn(
    opened: Iterable[OpenValue], terms: Mapping[str, Mapping[str, _Term]], r: Random
) -> Iterator[tuple[OpenValue, str]]:
    """Yield the open values, each as a constant expression in Spark SQL."""
    by_term: dict[tuple[str, str], list[OpenValue]] = {}
    for value in dict.fromkeys(opened):
        by_term.setdefault((value.table, term_text(value.term)), []).append(value)
    for (table, text), values in by_term.items():
        term = terms.get(table, {}).get(text)
        if term is None:
            continue
        time = f"CAST({quote_string(term.newest)} AS TIMESTAMP)"
        bounds = sorted((value for value in values if value.has_parameter()), key=lambda value: value.role == "high")
        picks = sorted(r.choices(range(len(term.values)), k=len(bounds))) if term.values else []
        for value, pick in zip(bounds, picks, strict=False):
            literal = literal_of(term.type, _pattern(term.values[pick]) if value.role == "word" else term.values[pick])
            if literal is not None:
                yield value, value.at(time, literal)
        yield from ((value, value.at(time)) for value in values if not value.has_parameter())


def _pattern(text: str) -> str:
    """Return a LIKE pattern with a word of the text."""
    words = re.findall(WORD, text)
    return f"%{max(words, key=len)}%" if words else text


def _terms(source: Source, opened: Sequence[OpenValue], seed: int) -> dict[str, _Term]:
    """Return the terms of these open values, with values that they are likely compared with."""
    from pyspark.sql import functions as f

    rows = source.frame.sample(_ROWS / source.rows, seed) if source.rows > _ROWS else source.frame
    in_log = _literals_in_log(source) if any(value.has_parameter() for value in opened) else {}
    terms: dict[str, _Term] = {}
    for text in sorted({term_text(value.term) for value in opened}):
        try:
            values = rows.select(f.expr(text).alias("v")).where("v IS NOT NULL")
            type_ = values.schema["v"].dataType.simpleString()
            time = "TRY_CAST(v AS TIMESTAMP)" if type_.partition("(")[0] in (*DATED, *QUOTED) else "NOW()"
            newest = f.expr(f"CAST(LEAST(NOW(), MAX({time})) AS STRING)")
            ascending = f.sort_array(f.collect_list("v")).cast("array<string>")
            few = values.agg(ascending, newest).first()
            if few and few[0]:
                terms[text] = _Term(type_, few[1], few[0])
            if few and text in terms and text in in_log:
                listed = f"SELECT explode(array({', '.join(in_log[text])})) AS v"
                logged = rows.sparkSession.sql(listed).select(f.expr(f"CAST(v AS {type_})").alias("v")).agg(ascending)
                terms[text] = replace(terms[text], values=(logged.first() or [[]])[0] or few[0])
        except spark_errors():
            continue  # a term that Spark cannot evaluate
    return terms


def _literals_in_log(source: Source) -> dict[str, list[str]]:
    """Return the literals that logged queries compare each term with, as Spark SQL; none if there is no log."""
    literals: dict[str, list[str]] = {}
    failures: tuple[type[Exception], ...] = (HedgerowError, *spark_errors())
    try:
        spark = source.frame.sparkSession
        logged = workload_of(QueryLog.of(spark, source.origin), source.name).bind(
            {source.name: source.schema}, meaning(spark)
        )
    except failures:
        return literals
    for atom in (atom for query in logged for atom in atoms_of(query.predicate(source.name))):
        if isinstance(atom, Compare | In):
            of_atom = (atom.literal,) if isinstance(atom, Compare) else atom.literals
            literals.setdefault(term_text(atom.term), []).extend(map(literal_text, of_atom))
    return {text: some[-_MAX_LOGGED:] for text, some in literals.items()}
