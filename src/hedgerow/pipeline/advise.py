"""advise: what each learner would make of a table, side by side, before anything is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from hedgerow.core.effort import Effort
from hedgerow.core.errors import HedgerowError, LayoutError, SchemaError, meant, warn
from hedgerow.core.html import html_table
from hedgerow.core.learning.seconds import WORTH_IT, Estimate, Speed, estimates
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.workload.queries import Workload, shape
from hedgerow.core.workload.score import QueryScore
from hedgerow.pipeline.block_sizes import in_best_blocks
from hedgerow.pipeline.calibrated_cost import calibrated_cost, count_items
from hedgerow.pipeline.estimate_seconds import SMALL_TABLE_BYTES, speed_of
from hedgerow.pipeline.inputs import MOST_QUERIES, opened_with_queries
from hedgerow.pipeline.open import open_table
from hedgerow.pipeline.options import ADVISED, BUDGET, Option, candidates, options
from hedgerow.pipeline.several_tables import tables_in
from hedgerow.pipeline.table_problem import How, TableProblem
from hedgerow.spark.optimizer.rule import state_of
from hedgerow.spark.start.progress import step
from hedgerow.spark.start.session import first_line, in_own_session, needs_jvm, spark_errors
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.source import Source
from hedgerow.tables.query_log import QueryLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SLOWER = 1.05
_REWRITE_SCANS = 20.0  # scans of all columns take as long as a rewrite: 15 to 41 on three tables


@dataclass(frozen=True)
class Template:
    """Queries that differ in literals only: the condition of one, and means of what they all take and read."""

    example: str
    queries: int
    now: float
    then: float
    rows_read: float


@dataclass(frozen=True)
class Advice:
    """Options, the best first.

    Args:
        rows_read, now: of a query, in the table as it is.
        bound: the rows that match, below which no layout can go.
        templates: of the best option, those that gain most first.
        rests_on: what the figures come from.
    """

    table: str
    rows: int
    bytes: int
    rows_read: float
    now: float | None
    bound: float | None
    options: tuple[Option, ...]
    templates: tuple[Template, ...]
    rewrite_seconds: float | None
    rests_on: tuple[str, ...]

    @property
    def best(self) -> Option | None:
        """The option to take; None: leave the table as it is."""
        first = self.options[0]
        if first.score is None:
            return None
        if first.estimate is not None:
            return first if first.estimate.pays else None
        return first if first.score.rows_read <= WORTH_IT * self.rows_read and not self.is_small else None

    @property
    def is_small(self) -> bool:
        """Whether Spark reads all of the table as fast as a part of it."""
        return self.bytes < SMALL_TABLE_BYTES

    @property
    def slower(self) -> tuple[Template, ...]:
        """The queries that the best option would make slower."""
        return tuple(t for t in self.templates if t.then > _SLOWER * t.now)

    @property
    def pays_back_after(self) -> int | None:
        """The queries after which the rewrite has paid, by the best option."""
        if self.best is None or self.best.estimate is None or self.rewrite_seconds is None:
            return None
        return int(self.rewrite_seconds / (self.best.estimate.now - self.best.estimate.then)) + 1

    def __str__(self) -> str:
        now = f"{self.table}: {self.rows_read:.1%} of {self.rows:,} rows are read now"
        return "\n".join([now, *map(str, self.options), self.sentence])

    def _repr_html_(self) -> str:
        rows = [(o.name, *o.figures(), o.why_not) for o in self.options]
        now = "as it is", f"{self.rows_read:.1%}", None, None if self.now is None else f"{self.now:.2f}", None
        table = html_table([now, *rows], ["layout", "rows read", "blocks", "seconds", ""])
        return f"{table}{html_table([('advice', self.sentence)])}"

    @property
    def sentence(self) -> str:
        """The advice itself."""
        best, first = self.best, self.options[0]
        if best is None:
            if self.is_small:
                return "leave it as it is: Spark reads so small a table in no time"
            slower = first.estimate is not None and first.estimate.then > first.estimate.now
            return f"leave it as it is: {first.name} is the best, and {'is slower' if slower else 'saves too little'}"
        if self.rewrite_seconds is None:
            return f"take {best.name}"
        return (
            f"take {best.name}: the rewrite takes about {self.rewrite_seconds:,.0f} s, "
            f"which {self.pays_back_after:,} queries save"
        )

    def save(self, path: str | Path) -> None:
        """Saves the best layout as a plan for `apply`, which refuses it once the table has changed."""
        if self.best is None or self.best.learned is None:
            raise HedgerowError(f"there is no plan to save: {self.sentence}")
        self.best.learned.save(path)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, without the layouts."""
        return {
            "table": self.table,
            "rows": self.rows,
            "bytes": self.bytes,
            "rows_read": self.rows_read,
            "seconds": self.now,
            "bound": self.bound,
            "advice": self.sentence,
            "best": None if self.best is None else self.best.name,
            "options": [_plain(option) for option in self.options],
            "rewrite_seconds": self.rewrite_seconds,
            "pays_back_after": self.pays_back_after,
            "templates": [asdict(t) for t in self.templates],
            "rests_on": list(self.rests_on),
        }


def _plain(option: Option) -> dict[str, Any]:
    scored, told, learned = option.score, option.estimate, option.learned
    return {
        "name": option.name,
        "blocks": None if scored is None else scored.blocks,
        "rows_read": None if scored is None else scored.rows_read,
        "blocks_read": None if scored is None else scored.blocks_read,
        "bytes_read": None if scored is None else scored.bytes_read,
        "seconds": None if told is None else told.then,
        "fit_seconds": None if learned is None else learned.fit_seconds,
        "why_not": option.why_not,
    }


@in_own_session
def advise(
    spark: SparkSession,
    source: str | Sequence[str] | DataFrame,
    workload: Workload,
    learners: Sequence[str] | None = None,
    designs: Sequence[Sequence[str]] = (),
    *,
    budget: float = BUDGET,
    block_rows: int | None = None,
    block_bytes: str | None = None,
    seed: int = 0,
    effort: Effort = "normal",
    table: str | None = None,
) -> Advice:
    """What each learner would make of the table for these queries, judged on one sample; nothing is written.

    Args:
        learners: by default all but `random`, and but "woodblock" where JAX and Optax are not installed.
        designs: your own, each the columns of a sort and of a Z-order, such as `[("day", "city")]`.
        budget: seconds for learning; learners whose turn would come later are left out, which the advice says.
        table: the source's name in the workload; by default the last part of its path or name.
    """
    needs_jvm(spark, "advise")
    if not budget > 0:
        raise LayoutError(f"budget has to be a number of seconds above 0, not {budget!r}")
    tried = candidates(_installed() if learners is None else learners, designs)
    if not tried:
        raise LayoutError("name a learner or a design")
    with step(spark, "looking at the table"):
        opened, queries, skipped = opened_with_queries(spark, source, workload, table)
    warn(f"{len(skipped)} of {len(workload)} queries are left out", skipped)
    asked, queries = len(queries), replace(workload, queries=queries).sampled(MOST_QUERIES).queries
    how = How(block_rows=block_rows, block_bytes=block_bytes, seed=seed, effort=effort)
    named = sorted({column for design in designs for column in design})
    _check_columns(opened, named)
    with step(spark, "measuring"):
        speed = speed_of(opened, queries)
    posed = TableProblem.of(opened, queries, how, named, in_memory=True, finer=speed is not None)
    posed = in_best_blocks(posed, speed)
    found = options(posed, tried, speed, budget)
    state = state_of(opened)
    found = [_only_for(option, state) for option in found]
    rewrite, assumed = _rewrite_seconds(spark, source, opened, found[0], speed)
    first = found[0]
    rests_on = [f"rows: {len(posed.drawn):,} of {opened.rows:,}, drawn at random"]
    if len(queries) < asked:
        rests_on.append(f"queries: {len(queries):,} of {asked:,}, drawn by weight")
    if speed is not None:
        rests_on += ["seconds: some of the queries, timed on some files", f"the rewrite: {assumed}"]
    joining = sum(any(scan.joins for scan in query.scans) for query in queries)
    if joining:
        rests_on.append(f"joins: {joining} queries join other tables, whose conditions only learner='mto' looks at")
    return Advice(
        opened.name,
        opened.rows,
        round(opened.size),
        _read_now(opened, workload),
        None if first.estimate is None else first.estimate.now,
        None if first.score is None else first.score.selectivity,
        tuple(found),
        _templates(posed, first, speed),
        rewrite,
        tuple(rests_on),
    )


def advise_each(
    spark: SparkSession, sources: str | Mapping[str, Any], workload: Workload, **how: Any
) -> dict[str, Advice | str]:
    """`advise` for each of several tables: by name, or those of a folder or a database. Else why there is no advice.

    Args:
        how: what `advise` takes, of each table.
    """
    needs_jvm(spark, "advise")
    tables = tables_in(spark, sources) if isinstance(sources, str) else sources
    if not tables:
        raise HedgerowError(
            f"{sources} holds no tables: it has to be a directory with a folder for each, or a database"
        )
    found: dict[str, Advice | str] = {}
    for name, source in tables.items():
        asked = replace(workload, queries=tuple(query for query in workload if query.reads(name)))
        try:
            found[name] = advise(spark, source, asked, table=name, **how) if len(asked) else "no query reads it"
        except HedgerowError as error:
            found[name] = str(error)
        except spark_errors() as error:
            found[name] = first_line(error)
    return found


def _installed() -> list[str]:
    """The learners that can run here: one needs packages of its own."""
    return [name for name in ADVISED if name != "woodblock" or (find_spec("jax") and find_spec("optax"))]


def _check_columns(opened: Source, named: Sequence[str]) -> None:
    """SchemaError if the table lacks one of the columns, with the name that was perhaps meant."""
    known = {name.lower().strip("`"): name for name in opened.schema}
    for name in named:
        if name.lower().strip("`") not in known and "." not in name:
            said = meant(name, opened.schema) or f": it has {', '.join(opened.schema)}"
            raise SchemaError(f"{opened.name} has no column {name}{said}")


def _only_for(option: Option, state: str | None) -> Option:
    """The option with a layout that `apply` refuses for any other state of the table."""
    if option.learned is None or state is None:
        return option
    provenance = {**option.learned.provenance, "only_for": state}
    return replace(option, learned=replace(option.learned, provenance=provenance))


def _rewrite_seconds(
    spark: SparkSession, source: Any, opened: Source, option: Option, speed: Speed | None
) -> tuple[float | None, str]:
    """The seconds of a rewrite, and what they are known from."""
    if speed is None or option.learned is None:
        return None, ""
    cost = calibrated_cost(Folder(spark, QueryLog.of(spark, source).root)) if isinstance(source, str) else None
    if cost is not None:
        return cost.seconds(opened.size, count_items(option.learned)), "what calibrate timed"
    return _REWRITE_SCANS * speed.byte * opened.size, f"assumed to take as long as {_REWRITE_SCANS:.0f} scans"


def _read_now(opened: Source, workload: Workload) -> float:
    """The share of rows in the files that a query opens now."""
    try:
        return open_table(opened.frame.sparkSession, opened.origin).score(workload).rows_read
    except HedgerowError:  # nobody laid it out yet
        return 1.0


def _templates(posed: TableProblem, option: Option, speed: Speed | None) -> tuple[Template, ...]:
    if option.score is None or speed is None:
        return ()
    by_shape: dict[str, list[tuple[float, Estimate, QueryScore]]] = {}
    example: dict[str, Predicate] = {}
    each = estimates(option.score, speed, len(posed.source.files), posed.source.size)
    for query, told, scored in zip(posed.queries, each, option.score.queries, strict=True):
        p = query.predicate(posed.source.name)
        by_shape.setdefault(shape(p), []).append((query.weight, told, scored))
        example.setdefault(shape(p), p)
    found = [
        Template(
            predicate_text(normalise(example[text])),
            round(sum(weight for weight, _, _ in some)),
            fmean(told.now for _, told, _ in some),
            fmean(told.then for _, told, _ in some),
            fmean(scored.rows_read for _, _, scored in some),
        )
        for text, some in by_shape.items()
    ]
    return tuple(sorted(found, key=lambda t: (t.then - t.now) * t.queries))
