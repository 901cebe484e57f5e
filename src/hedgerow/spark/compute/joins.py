"""Adds to a table's rows the rows of other tables that its foreign keys lead to, each as a struct column.

See `core/workload/references`. The key is unique in the other table, so each row gets at most one other row. A key that
is read backwards leads to one row of summaries.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING
from uuid import uuid4

from hedgerow.core.errors import HedgerowError
from hedgerow.core.predicates.nodes import Feature
from hedgerow.core.predicates.sql_text import quote_name
from hedgerow.core.predicates.types import Type
from hedgerow.core.workload.references import Joined, Reference, mentioned
from hedgerow.spark.helper_columns import helper_name
from hedgerow.spark.storage.source import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Steps = tuple[Reference, ...]
# Another table of at most so many bytes is sent to all tasks, so that the rows stay in place.
_BROADCAST_BYTES = 100 << 20
# A larger table is divided into partitions of at most so many bytes, which are hashed: that is faster than sorting. A
# task may have several such partitions in memory, and each takes twice its bytes while it grows.
_HASHED_BYTES = 64 << 20
_BYTES_OF_A_FIELD = 16  # the bytes of a field in memory without its value


@dataclass(frozen=True)
class Joins:
    """The joined rows that a table's layout and index may use. `others`: the other tables by lower-case name."""

    joined: tuple[Joined, ...] = ()
    others: Mapping[str, Source] = field(default_factory=dict)

    @property
    def schema(self) -> dict[str, Type]:
        """The fields of the joined rows, by the names that they have in conditions on the table."""
        found: dict[str, Type] = {}
        for joined in self.joined:
            fields: Mapping[str, Type] = self.others[joined.table.lower()].schema
            if joined.summaries:
                fields = {quote_name(s.name): s.type_in(fields) for s in joined.summaries}
            found |= {f"{quote_name(joined.name)}.{name}": kind for name, kind in fields.items()}
        return found

    def needed(self, items: Iterable[Feature]) -> dict[Steps, list[str]]:
        """Return the chains of keys whose fields the items mention, with these fields."""
        by_name = {joined.name: joined.steps for joined in self.joined}
        return {by_name[name]: sorted(fields) for name, fields in sorted(mentioned(items, by_name).items())}

    def widened(self, frame: DataFrame, items: Iterable[Feature]) -> DataFrame:
        """Return the frame with the joined rows that the items mention."""
        wanted: dict[Steps, dict[str, list[str]]] = {}
        for steps, fields in self.needed(items).items():
            wanted.setdefault(shortest(steps), {})[Joined(steps).name] = fields
        return _compiled_apart(self._with_rows(frame, (), wanted)) if wanted else frame

    def _with_rows(self, frame: DataFrame, before: Steps, wanted: Mapping[Steps, Mapping[str, list[str]]]) -> DataFrame:
        """Join the other tables with each other first, as they are smaller than the table that refers to them.

        `wanted`: for each chain of keys, its struct columns with their fields."""
        from pyspark.sql import functions as f

        at = len(before)
        for step in dict.fromkeys(steps[at] for steps in wanted if len(steps) > at and steps[:at] == before):
            steps = (*before, step)
            other = self.others[step.other.lower()].frame
            if step.summaries:
                other = _summarised(other, step, {name for names in wanted[steps].values() for name in names})
            other = self._with_rows(other, steps, wanted)
            keys = {helper_name(f"key_{at}_{i}"): name for i, name in enumerate(step.other_columns)}
            columns = [f.expr(quote_name(name)).alias(key) for key, name in keys.items()]
            for struct, fields in wanted.get(steps, {}).items():
                columns.append(f.struct(*(f.expr(quote_name(name)).alias(name) for name in fields)).alias(struct))
            deeper = [name for s, structs in wanted.items() if s[: len(steps)] == steps != s for name in structs]
            right = other.select(*columns, *(f.expr(quote_name(name)) for name in deeper))
            right = _hinted(right, list(keys), self._bytes(steps, wanted))
            on = " AND ".join(f"{quote_name(mine)} = {key}" for mine, key in zip(step.columns, keys, strict=True))
            frame = frame.join(right, f.expr(on), "left").drop(*keys)
        return frame

    def _bytes(self, steps: Steps, wanted: Mapping[Steps, Mapping[str, list[str]]]) -> float:
        """Return the bytes of the rows that this chain of keys leads to, with the rows that they join."""
        width = float(_BYTES_OF_A_FIELD * len(steps[-1].columns))
        for chain, structs in wanted.items():
            if chain[: len(steps)] == steps:
                widths = self.others[chain[-1].other.lower()].unpacked_widths
                fields = [name for names in structs.values() for name in names]
                width += sum(_BYTES_OF_A_FIELD + widths.get(name, 0.0) for name in fields)
        return self.others[steps[-1].other.lower()].rows * width

    def check(self, table: Source) -> None:
        """Raise HedgerowError unless every key is unique in the other table and of the same type on both sides."""
        own = {name.lower() for name in table.frame.columns}
        clashing = [joined.name for joined in self.joined if joined.name.lower() in own]
        if clashing:
            raise HedgerowError(f"{table.name} has a column {clashing[0]}, which is how joined rows are called")
        steps = dict.fromkeys(step for joined in self.joined for step in joined.steps)
        for step in steps:
            here = table if step.table.lower() == table.name.lower() else self.others[step.table.lower()]
            check = check_types if step.summaries else check_key
            check(here, step, self.others[step.other.lower()])


def _summarised(other: DataFrame, key: Reference, names: Collection[str]) -> DataFrame:
    """Return a row for each key, with these summaries of all rows that have it."""
    from pyspark.sql import functions as f

    columns = [quote_name(name) for name in key.other_columns]
    with_key = other.where(" AND ".join(f"{name} IS NOT NULL" for name in columns))
    summaries = [f.expr(s.sql).alias(s.name) for s in key.summaries if s.name in names]
    return with_key.groupBy(*columns).agg(*summaries)


NO_JOINS = Joins()


def shortest(steps: Steps) -> Steps:
    """Return the chain without the tables whose next key consists of columns of the key that leads to them.

    The chain from lineitem over partsupp's key (part, supplier) to supplier becomes a join with supplier. If partsupp
    lacks the key, the short chain finds a row and the whole chain none. That does no harm: a query's condition holds
    only for rows with a row in every table of the chain, so no query uses the index's values for other rows.

    >>> pair = Reference("lineitem", ("l_partkey", "l_suppkey"), "partsupp", ("ps_partkey", "ps_suppkey"))
    >>> [str(step) for step in shortest((pair, Reference("partsupp", ("ps_suppkey",), "supplier", ("s_suppkey",))))]
    ['lineitem.l_suppkey -> supplier.s_suppkey']
    """
    chain: list[Reference] = []
    for step in steps:
        while chain:
            before = chain[-1]
            same_column = dict(zip(before.other_columns, before.columns, strict=True))
            if not set(step.columns) <= set(same_column):
                break
            columns = tuple(same_column[name] for name in step.columns)
            step = Reference(chain.pop().table, columns, step.other, step.other_columns)
        chain.append(step)
    return tuple(chain)


def _compiled_apart(joined: DataFrame) -> DataFrame:
    """Return the same rows, with a step that ends the compiled code of the join.

    Spark compiles a join together with the steps after it, or none of them if the code is too long. It cannot compile
    `observe`, so the steps after this one are compiled apart."""
    from pyspark.sql import functions as f

    return joined.observe(helper_name(f"joined_{uuid4().hex}"), f.count(f.lit(1)).alias("rows"))


def _hinted(other: DataFrame, keys: Sequence[str], size: float) -> DataFrame:
    if size <= _BROADCAST_BYTES:
        return other.hint("broadcast")
    default = int(other.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    needed = ceil(size / _HASHED_BYTES)
    return (other if needed <= default else other.repartition(needed, *keys)).hint("shuffle_hash")


def check_key(table: Source, key: Reference, other: Source) -> None:
    """Raise HedgerowError unless the other side of the key is unique, and both sides have the same types."""
    check_types(table, key, other)
    if not is_unique(other, key.other_columns):
        raise HedgerowError(
            f"the key {key} leads to several rows: {', '.join(key.other_columns)} is not unique in {other.name}"
        )


def check_types(table: Source, key: Reference, other: Source) -> None:
    """Raise HedgerowError unless both sides of the key have the same types."""
    kinds = [key_types_of(source, names) for source, names in ((table, key.columns), (other, key.other_columns))]
    if kinds[0] != kinds[1]:
        mine, theirs = (", ".join(types) for types in kinds)
        raise HedgerowError(f"the key {key} joins {mine} to {theirs}: cast one of them first")


def is_unique(source: Source, columns: Collection[str]) -> bool:
    """True if no two rows have the same values, none of them NULL, in these columns."""
    from pyspark.sql import functions as f

    names = [quote_name(name) for name in columns]
    present = source.frame.select(*names).where(" AND ".join(f"{name} IS NOT NULL" for name in names))
    return present.groupBy(*names).agg(f.count("*").alias(_COUNT)).where(f"{_COUNT} > 1").isEmpty()


_COUNT = helper_name("count")


def key_types_of(source: Source, names: Collection[str]) -> list[str]:
    """Return Spark's types of a key's columns; HedgerowError if the table lacks one of them."""
    types = {field.name.lower(): field.dataType.simpleString() for field in source.frame.schema.fields}
    missing = [name for name in names if name.lower() not in types]
    if missing:
        raise HedgerowError(f"{source.name} has no column {missing[0]}, which a key names")
    return [types[name.lower()] for name in names]
