"""A managed Parquet table: ordinary Parquet files, and `_hedgerow/` with the layout, the index and where it came from.

The manifest is written last and names all the rest, so a table is whole or is none. Files that the manifest does not
name were written by others: they are always read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from hedgerow.core.bind import bind
from hedgerow.core.codec import decode
from hedgerow.core.cost import QueryScore, Score
from hedgerow.core.errors import FormatError, HedgerowError, SchemaError, WorkloadError
from hedgerow.core.expr import TRUE, Predicate
from hedgerow.core.layout import Layout, layout_from_json, layout_to_json
from hedgerow.core.rewrite import normalise
from hedgerow.core.stats import Stats, concat
from hedgerow.core.store import index_bytes, index_of_bytes
from hedgerow.core.types import Type
from hedgerow.core.views import BlockIndex, View
from hedgerow.core.workload import Workload
from hedgerow.spark.folder import Folder
from hedgerow.spark.session import meaning
from hedgerow.spark.source import schema_of
from hedgerow.spark.stats import collect_files
from hedgerow.spark.write import block_of_file, write_blocks
from hedgerow.sql.workload import where as parse_where

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SIDE = "_hedgerow"
_LISTING = "spark.sql.sources.parallelPartitionDiscovery.threshold"
VERSION = 1


@dataclass(frozen=True)
class ParquetTable:
    """Open with `hedgerow.table`; `manifest` is what the newest `_hedgerow/manifest-<n>.json` says."""

    spark: SparkSession
    path: str
    manifest: Mapping[str, Any]

    @staticmethod
    def open(spark: SparkSession, path: str) -> ParquetTable:
        side = Folder(spark, f"{path}/{SIDE}")
        numbers = [int(n[9:-5]) for n in side.sizes() if n.startswith("manifest-") and n.endswith(".json")]
        if not numbers:
            what = "an unfinished run left it: apply again" if side.exists() else "there is no _hedgerow folder in it"
            raise HedgerowError(f"{path} is no table that Hedgerow wrote: {what}")
        try:
            manifest = json.loads(side.read(f"manifest-{max(numbers)}.json"))
        except ValueError as error:
            raise FormatError(f"the manifest of {path} is damaged") from error
        if manifest["version"] > VERSION:
            raise FormatError(f"{path} was written by a newer Hedgerow (format {manifest['version']})")
        return ParquetTable(spark, path, manifest)

    # --- what it knows ---

    @property
    def name(self) -> str:
        return str(self.manifest["name"])

    @property
    def known_files(self) -> dict[str, int]:
        """Names of the indexed files with their sizes, in the index's order."""
        return {f["name"]: f["bytes"] for f in self.manifest["files"]}

    @cached_property
    def index(self) -> BlockIndex:
        return index_of_bytes(self._side.read(self.manifest["index"]), f"the index of {self.path}")

    @cached_property
    def layout(self) -> Layout:
        return layout_from_json(self._side.read("layout.json").decode())

    @cached_property
    def schema(self) -> dict[str, Type]:
        return schema_of(self._frame)

    @cached_property
    def _frame(self) -> DataFrame:
        return self.spark.read.parquet(self.path)

    @property
    def _side(self) -> Folder:
        return Folder(self.spark, f"{self.path}/{SIDE}")

    # --- reading ---

    def files(self, where: str | Predicate | None = None) -> list[str]:
        """The names of the files that may hold rows which match, those unknown to the index included."""
        p = self._bound(where)
        now = data_files(self.spark, self.path)
        opened = self.index.to_open(p)
        known = self.known_files
        changed = {name for name, size in now.items() if known.get(name) != size}
        wanted = {name for name, is_open in zip(known, opened, strict=True) if is_open}
        return sorted(name for name in now if name in wanted or name in changed)

    def read(self, where: str | None = None, columns: Sequence[str] | None = None) -> DataFrame:
        """The matching rows, from just the files that may hold some."""
        frame = self.frame(self.files(where))
        if where is not None:
            frame = frame.where(where)
        return frame.select(*columns) if columns is not None else frame

    def frame(self, files: Sequence[str]) -> DataFrame:
        """All rows of these files."""
        if not files:
            return self._frame.limit(0)
        before = self.spark.conf.get(_LISTING) or "32"
        self.spark.conf.set(_LISTING, str(max(int(before), len(files) + 1)))
        try:
            return self.spark.read.schema(self._frame.schema).parquet(*(f"{self.path}/{quote(n)}" for n in files))
        finally:
            self.spark.conf.set(_LISTING, before)

    def _bound(self, where: str | Predicate | None) -> Predicate:
        """What we do not understand prunes nothing; whether it is an error is for Spark to say."""
        try:
            p = TRUE if where is None else parse_where(where) if isinstance(where, str) else where
            return normalise(bind(p, self.schema, meaning(self.spark)))
        except (WorkloadError, SchemaError):
            return TRUE

    # --- measuring ---

    def score(self, workload: Workload) -> Score:
        """What the workload opens, exactly, from the index alone; how much matches is not known without a scan."""
        rows, sizes = self.index.blocks.rows, list(self.known_files.values())
        found, weights = [], []
        bound = workload.on(self.name).bind({self.name: self.schema}, meaning(self.spark))
        only = bound.tables()[0] if len(bound.tables()) == 1 else self.name
        for query in bound:
            opened = self.index.to_open(query.predicate(only))
            share = float(rows[opened].sum() / max(1, rows.sum()))
            read = sum(s for s, o in zip(sizes, opened, strict=True) if o) / max(1, sum(sizes))
            found.append(QueryScore(query.id, share, float(opened.mean()), read, None))
            weights.append(query.weight)
        return Score.mean(found, weights, len(rows))

    def describe(self) -> dict[str, Any]:
        known, present = self.known_files, data_files(self.spark, self.path)
        return {
            "path": self.path,
            "table": self.name,
            "learner": self.manifest["learner"],
            "layout": self.layout.kind,
            "blocks": self.layout.blocks,
            "files": len(present),
            "rows": int(self.index.blocks.rows.sum()),
            "bytes": sum(present.values()),
            "unknown_files": len(set(present) - set(known)),
            "missing_files": len(set(known) - set(present)),
        }

    # --- writing ---

    def append(self, frame: DataFrame) -> ParquetTable:
        """New rows through the same layout into new files; the index grows, nothing old is touched."""
        before = set(data_files(self.spark, self.path))
        same = frame.select(*(f"`{name}`" for name in self._frame.columns))
        write_blocks(self.spark, same, self.layout, self.schema, self.path, mode="append", **self.manifest["writing"])
        stats, files = index_new_files(self.spark, self.path, before, self.manifest, self.schema)
        joined = BlockIndex((View(concat([self.index.blocks, stats])),))
        manifest = {**self.manifest, "number": self.manifest["number"] + 1}
        manifest["files"] = [*self.manifest["files"], *files]
        return commit(self.spark, self.path, manifest, joined)


def data_files(spark: SparkSession, path: str) -> dict[str, int]:
    """The files that Spark reads as the table's, with their sizes."""
    return {n: size for n, size in Folder(spark, path).sizes().items() if not n.startswith(("_", "."))}


def index_new_files(
    spark: SparkSession, path: str, before: set[str], manifest: Mapping[str, Any], schema: Mapping[str, Type]
) -> tuple[Stats, list[dict[str, Any]]]:
    """Statistics of the files that were not there before, and their entries for the manifest."""
    sizes = data_files(spark, path)
    files = sorted(set(sizes) - before)
    items = [decode(item) for item in manifest["statistics"]]
    frame = spark.read.parquet(*(f"{path}/{quote(n)}" for n in files)) if files else spark.read.parquet(path).limit(0)
    stats = collect_files(frame, items, schema, files)
    entries = [
        {"name": n, "bytes": sizes[n], "rows": int(r), "block": block_of_file(n)}
        for n, r in zip(files, stats.rows, strict=True)
    ]
    return stats, entries


def commit(spark: SparkSession, path: str, manifest: dict[str, Any], index: BlockIndex) -> ParquetTable:
    """First what the manifest names, then the manifest."""
    side = Folder(spark, f"{path}/{SIDE}")
    manifest["index"] = f"index-{manifest['number']}.arrow"
    side.write(manifest["index"], index_bytes(index))
    side.write(f"manifest-{manifest['number']}.json", json.dumps(manifest).encode())
    return ParquetTable.open(spark, path)


def create(
    spark: SparkSession,
    frame: DataFrame,
    layout: Layout,
    to: str,
    *,
    name: str,
    schema: Mapping[str, Type],
    statistics: Sequence[Any],
    provenance: Mapping[str, Any],
    writing: Mapping[str, Any],
    overwrite: bool = False,
) -> ParquetTable:
    """Write the table beside its place and move it there when it is whole."""
    parent, _, last = to.rstrip("/").rpartition("/")
    around = Folder(spark, parent or ".")
    target = Folder(spark, to)
    unfinished = target.exists(SIDE) and not any(
        n.startswith("manifest-") for n in Folder(spark, f"{to}/{SIDE}").sizes()
    )
    if not (target.is_empty() or unfinished or overwrite):
        raise HedgerowError(f"{to} is not empty: name another place, or pass overwrite=True to replace it")
    partial = f".{last}.hedgerow-partial"
    around.delete(partial)
    place = f"{parent or '.'}/{partial}"
    Folder(spark, f"{place}/{SIDE}").write("layout.json", layout_to_json(layout).encode())
    write_blocks(spark, frame, layout, schema, place, mode="append", **writing)
    manifest: dict[str, Any] = {
        "version": VERSION,
        "number": 1,
        "name": name,
        **provenance,
        "writing": dict(writing),
        "statistics": list(statistics),
    }
    stats, manifest["files"] = index_new_files(spark, place, set(), manifest, schema)
    commit(spark, place, manifest, BlockIndex((View(stats),)))
    if target.exists():
        target.delete()
    around.move(partial, last)
    return ParquetTable.open(spark, to)
