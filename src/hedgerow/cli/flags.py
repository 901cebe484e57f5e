"""Classes whose fields are options on the command line: commands with many options take them as one object."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, cast, get_args, get_origin, get_type_hints

import typer

from hedgerow.cli.app import Texts, key_value
from hedgerow.core.errors import HedgerowError

if TYPE_CHECKING:
    from hedgerow.core.effort import Effort
    from hedgerow.core.learning.synthetic_queries import Recurrence
    from hedgerow.core.workload.candidate_cuts import Kind
    from hedgerow.pipeline.learn_options import LearnOptions
    from hedgerow.pipeline.write_options import WriteOptions

LearnerOption = Annotated[str, typer.Option(help="Such as qdtree, woodblock, zorder_learned; auto tries all.")]
TableOption = Annotated[str | None, typer.Option(help="The name that the queries have for SOURCE.")]
BlockRowsOption = Annotated[int | None, typer.Option(help="The minimum rows of a block.")]
BlockBytesOption = Annotated[
    str | None, typer.Option(help="About the size of a block; else 64MB, or less where that is faster.")
]

OtherOption = Annotated[
    Texts, typer.Option(metavar="NAME=PLACE", help="Another table that the queries join, so that its keys count.")
]
AtOnceOption = Annotated[int, typer.Option(min=1, help="How many partitions are worked on at once.")]
StorageOption = Annotated[int, typer.Option(min=1, help="How many full copies of the table may be stored.")]

RecurrenceOption = Annotated[str, typer.Option(help="How likely literals come again, 0 to 1; auto asks the queries.")]
AllowSlowerOption = Annotated[
    float, typer.Option(metavar="SHARE", help="How much slower than now a kind of query may become.")
]


def with_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Let the fields of a command's flag classes be options of the command, which gets them as objects."""
    kinds: dict[str, Any] = {}
    parameters: dict[str, inspect.Parameter] = {}
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        if not is_dataclass(parameter.annotation):
            parameters[name] = parameter.replace(kind=parameter.KEYWORD_ONLY)
            continue
        kinds[name] = parameter.annotation
        hints = get_type_hints(parameter.annotation, include_extras=True)
        for field in fields(parameter.annotation):
            parameters[field.name] = inspect.Parameter(
                field.name, parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
            )

    @wraps(command)
    def run(**values: Any) -> None:
        objects = {name: kind(**{f.name: values.pop(f.name) for f in fields(kind)}) for name, kind in kinds.items()}
        command(**values, **objects)

    run.__annotations__ = {name: parameter.annotation for name, parameter in parameters.items()}
    run.__dict__["__signature__"] = inspect.Signature(list(parameters.values()))
    return run


@dataclass(frozen=True)
class LearnFlags:
    """The options of `learn` beside the learner."""

    block_rows: BlockRowsOption = None
    block_bytes: BlockBytesOption = None
    sample_rows: Annotated[int | None, typer.Option(help="Rows to learn from; by default 100 a block.")] = None
    regions: Annotated[
        int | None, typer.Option(min=1, help="Learn so many regions first, and each by a task; for many blocks.")
    ] = None
    seed: Annotated[int, typer.Option(help="The same seed gives the same layout.")] = 0
    table: TableOption = None
    given: Annotated[Texts, typer.Option(metavar="DIRECTORY", help="Learn for what this table serves badly.")] = None
    trees: Annotated[
        int | None, typer.Option(min=1, help="Learn so many layouts, each for a full copy of the table.")
    ] = None
    cuts: Annotated[str, typer.Option(help="What may divide rows: atoms, usual, or these with +subtrees.")] = "usual"
    advanced_cuts: Annotated[
        int | None, typer.Option(min=0, help="How many cuts may be LIKE, or compare columns; else any number.")
    ] = None
    recurrence: RecurrenceOption = "auto"
    exact: Annotated[
        bool | None,
        typer.Option("--exact/--from-sample", help="Count cells in all rows, or in the sample; else in a million."),
    ] = None
    effort: Annotated[str, typer.Option(help="How long to learn: quick, normal, or thorough.")] = "normal"
    allow_slower: AllowSlowerOption = 0.1
    key: Annotated[
        Texts, typer.Option(metavar="A.X=B.Y", help="A foreign key, for mto and pando; else they are found.")
    ] = None
    steps: Annotated[
        int | None, typer.Option(min=0, help="Of several tables: how many keys a condition is carried over.")
    ] = None
    both_directions: Annotated[
        bool,
        typer.Option("--both-directions", help="Of tables that hardly change: carry conditions both ways."),
    ] = False
    other: OtherOption = None
    param: Annotated[Texts, typer.Option(metavar="KEY=VALUE", help="For the learner: most=2, columns=a,b...")] = None

    def options(self) -> LearnOptions:
        from hedgerow.pipeline.learn_options import LearnOptions

        return LearnOptions(
            block_rows=self.block_rows,
            block_bytes=self.block_bytes,
            sample_rows=self.sample_rows,
            regions=self.regions,
            seed=self.seed,
            cuts=cast("Kind", self.cuts),
            advanced_cuts=self.advanced_cuts,
            recurrence=_recurrence(self.recurrence),
            exact=self.exact,
            effort=cast("Effort", self.effort),
            allow_slower=self.allow_slower,
        )

    def keys(self) -> list[tuple[list[str], list[str]]] | None:
        """Return the two sides of each key; several columns are separated by commas."""
        if self.key is None:
            return None
        keys = []
        for text in self.key:
            sides = [[part.strip() for part in side.split(",")] for side in text.split("=")]
            if len(sides) != 2:
                raise HedgerowError(f"--key takes TABLE.COLUMN=OTHER.COLUMN, not {text!r}")
            keys.append((sides[0], sides[1]))
        return keys


@dataclass(frozen=True)
class AdviseFlags:
    """The options of `advise` for one table or for each of several."""

    columns: Annotated[
        Texts, typer.Option(metavar="A,B", help="Judge a design of your own, sorted by these columns; repeatable.")
    ] = None
    learner: Annotated[Texts, typer.Option(help="Try this learner; repeatable. By default all.")] = None
    budget: Annotated[float, typer.Option(help="Seconds for learning.")] = 120.0
    block_rows: BlockRowsOption = None
    block_bytes: BlockBytesOption = None
    storage: StorageOption = 1
    allow_slower: AllowSlowerOption = 0.1
    recurrence: RecurrenceOption = "auto"
    other: OtherOption = None

    def designs(self) -> list[list[str]]:
        return [[name.strip() for name in design.split(",")] for design in self.columns or ()]

    def options(self) -> LearnOptions:
        from hedgerow.pipeline.learn_options import LearnOptions

        return LearnOptions(
            block_rows=self.block_rows,
            block_bytes=self.block_bytes,
            storage=self.storage,
            allow_slower=self.allow_slower,
            recurrence=_recurrence(self.recurrence),
        )


def _recurrence(text: str) -> Recurrence:
    try:
        return "auto" if text == "auto" else float(text)
    except ValueError:
        raise HedgerowError(f"--recurrence is a number from 0 to 1, or auto, not {text!r}") from None


@dataclass(frozen=True)
class NewLayoutFlags:
    """The options of `apply` if it learns the layout itself."""

    workload: Annotated[Path, typer.Option(help="Without LAYOUT: a file of queries; else the log.")] = Path("log")
    learner: Annotated[str, typer.Option(help="Without LAYOUT: such as qdtree; auto tries all.")] = "qdtree"
    block_bytes: Annotated[str | None, typer.Option(help="Without LAYOUT: about the size of a block.")] = None


@dataclass(frozen=True)
class WriteFlags:
    """The options of `apply` about the files that it writes."""

    where: Annotated[str | None, typer.Option(help="In place: only these partitions, as in SQL.")] = None
    retries: Annotated[int, typer.Option(min=0, help="In place: begin again when others were faster.")] = 0
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")] = False
    max_block_rows: Annotated[int | None, typer.Option(help="A file with more rows becomes several files.")] = None
    sort_by: Annotated[Texts, typer.Option(metavar="COLUMN", help="Order in a file; else the learned one.")] = None
    compression: Annotated[str | None, typer.Option(help="Such as zstd; by default Spark's own choice.")] = None
    replica: Annotated[str | None, typer.Option(help="Write a full copy of the table at --to, of this name.")] = None
    statistics: Annotated[int, typer.Option(min=0, help="Expressions and conditions that the index holds.")] = 300
    lookup_share: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the table's bytes for filters of look-ups; 0: none.")
    ] = 0.01
    wave_bytes: Annotated[str, typer.Option(help="Write a larger table in waves of about this size.")] = "1TB"
    file_bytes: Annotated[
        str | None, typer.Option(help="Neighbouring blocks share files of about this size, such as 128MB.")
    ] = None

    def options(self) -> WriteOptions:
        from hedgerow.pipeline.write_options import WriteOptions

        parquet = {"compression": self.compression} if self.compression else {}
        return WriteOptions(
            self.max_block_rows,
            self.sort_by or None,
            parquet,
            self.statistics,
            self.retries,
            self.lookup_share,
            self.wave_bytes,
            self.file_bytes,
        )


@dataclass(frozen=True)
class AutoFlags:
    """The options of `auto` about learning and about its estimates."""

    learner: Annotated[str, typer.Option(help="Such as qdtree, zorder_learned.")] = "qdtree"
    block_bytes: Annotated[str | None, typer.Option(help="About the size of a block, such as 64MB.")] = None
    storage: StorageOption = 1
    allow_slower: AllowSlowerOption = 0.1
    horizon: Annotated[
        float | None, typer.Option(help="Days that the workload will last; else about as long as until now.")
    ] = None
    price: Annotated[float | None, typer.Option(help="What an hour of the cluster costs.")] = None
    follow: Annotated[
        bool, typer.Option("--follow", help="Look at each new version of a Delta table, until Ctrl-C or SIGTERM.")
    ] = False
    seconds_per_hour: Annotated[float, typer.Option(min=1, help="With --follow: work so long in an hour.")] = 600.0


def learner_params(learner: str, texts: Sequence[str]) -> dict[str, Any]:
    """Return the learner's parameters, converted to the types that the learner declares."""
    from hedgerow.pipeline.learner_names import AUTO, make_learner

    if learner == AUTO and not texts:
        return {}
    cls: Any = type(make_learner(learner))
    kinds = {f.name: get_type_hints(cls)[f.name] for f in fields(cls)}
    params = {}
    for key, value in (key_value("--param", text) for text in texts):
        if key not in kinds:
            raise HedgerowError(f"the learner {learner} takes {', '.join(kinds) or 'no parameters'}, not {key!r}")
        try:
            params[key] = _value(kinds[key], value)
        except (ValueError, KeyError):
            raise HedgerowError(f"--param {key} of the learner {learner} cannot be {value!r}") from None
    return params


def _value(kind: Any, text: str) -> Any:
    if get_origin(kind) in (Union, UnionType):  # such as `int | None`
        kind = next(k for k in get_args(kind) if k is not NoneType)
    if get_origin(kind) is tuple:
        return tuple(_value(get_args(kind)[0], part.strip()) for part in text.split(",") if part.strip())
    if kind is bool:
        return {"true": True, "false": False}[text.lower()]
    return kind(text) if kind in (int, float) else text
