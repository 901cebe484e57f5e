"""A managed Parquet table: ordinary Parquet files, and `_hedgerow/` with the layout, the index and where it came from.

    orders/  part-00000-....parquet ...          any engine reads these
             _hedgerow/layout.json
                       index-2-<id>.arrow        what each file cannot contain
                       files-2-<id>.arrow        names, sizes, rows
                       manifest-2.json           written last; names all the rest

A table is whole or is none, for the manifest comes last. Files that it does not name were written by others: they are
always read.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from hedgerow.core.bind import bind
from hedgerow.core.codec import decode
from hedgerow.core.cost import QueryScore, Score, top
from hedgerow.core.errors import FormatError, HedgerowError, SchemaError, WorkloadError, warn
from hedgerow.core.expr import TRUE, Predicate, columns, quote_name, quote_string
from hedgerow.core.layout import Layout, layout_from_json, layout_to_json
from hedgerow.core.rewrite import normalise
from hedgerow.core.stats import Stats, concat, repeat
from hedgerow.core.steady import steady_index
from hedgerow.core.store import index_bytes, index_of_bytes
from hedgerow.core.types import Type
from hedgerow.core.views import BlockIndex, View
from hedgerow.core.workload import Workload
from hedgerow.spark.checksum import Checksum, checksum
from hedgerow.spark.folder import Folder
from hedgerow.spark.footers import footers_of
from hedgerow.spark.progress import step
from hedgerow.spark.session import (
    configured,
    first_line,
    is_remote,
    meaning,
    needs_jvm,
    same_grammar,
    settings,
    spark_errors,
)
from hedgerow.spark.source import Source, schema_of
from hedgerow.spark.stats import collect_files
from hedgerow.spark.write import block_of_file, write_blocks
from hedgerow.sql.workload import where as parse_where
from hedgerow.tables.files import KnownFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

SIDE = "_hedgerow"
VERSION = 1
_VERIFIED_FILES = 8
_GLOB, _ESCAPED = re.compile(r"([\\{}\[\]*?])"), r"\\\1"
_KEPT = 10  # older manifests, for readers that are still at work


@dataclass(frozen=True)
class ParquetTable:
    """Open with `hedgerow.table`; `manifest` is what the newest `_hedgerow/manifest-<n>.json` says."""

    spark: SparkSession
    path: str
    manifest: Mapping[str, Any]

    @staticmethod
    def open(spark: SparkSession, path: str) -> ParquetTable:
        number = _newest(Folder(spark, f"{path}/{SIDE}"))
        if not number:
            raise HedgerowError(f"{path} is no table that Hedgerow wrote: {_why_not(spark, path)}")
        try:
            manifest = json.loads(Folder(spark, f"{path}/{SIDE}").read(f"manifest-{number}.json"))
            newer = manifest["version"] > VERSION
        except (ValueError, KeyError, TypeError) as error:
            raise FormatError(f"the manifest of {path} is damaged") from error
        if newer:
            raise FormatError(f"{path} was written by a newer Hedgerow (format {manifest['version']})")
        return ParquetTable(spark, path, manifest)

    # --- what it knows ---

    @property
    def name(self) -> str:
        return str(self.manifest["name"])

    @cached_property
    def known(self) -> KnownFiles:
        """The indexed files, in the index's order."""
        return KnownFiles.of_bytes(self._side.read(self.manifest["files"]), self.path)

    @cached_property
    def _stored_index(self) -> BlockIndex:
        return index_of_bytes(self._side.read(self.manifest["index"]), f"the index of {self.path}")

    @property
    def index(self) -> BlockIndex:
        """What the files cannot contain, as far as it holds under the session's settings."""
        return self.index_under(settings(self.spark))

    def index_under(self, now: Mapping[str, str]) -> BlockIndex:
        """As far as it holds under these settings."""
        return self._stored_index if now == self.manifest["settings"] else self._steady_index

    @cached_property
    def _steady_index(self) -> BlockIndex:
        return steady_index(self._stored_index, self.schema)

    @cached_property
    def layout(self) -> Layout:
        return layout_from_json(self._side.read("layout.json").decode())

    @cached_property
    def schema(self) -> dict[str, Type]:
        return schema_of(self._struct)

    @cached_property
    def _struct(self) -> StructType:
        from pyspark.sql.types import StructType

        return StructType.fromJson(deepcopy(self.manifest["schema"]))  # which it would change

    @property
    def _side(self) -> Folder:
        return Folder(self.spark, f"{self.path}/{SIDE}")

    # --- reading ---

    def files(self, where: str | Predicate | None = None) -> list[str]:
        """The names of the files that may hold rows which match, those unknown to the index included."""
        return self.divided(where)[0]

    def divided(self, where: str | Predicate | None) -> tuple[list[str], list[str]]:
        """The files to open, and those to skip."""
        now = data_files(self.spark, self.path)
        known = self.known.by_name
        opened = self.index.to_open(self.bound(where))
        skipped = {n for n, is_open in zip(known, opened, strict=True) if not is_open and now.get(n) == known[n]}
        return sorted(n for n in now if n not in skipped), sorted(skipped)

    def read(self, where: str | None = None, columns: Sequence[str] | None = None) -> DataFrame:
        """The matching rows, from just the files that may hold some."""
        frame = self.frame(self.files(where))
        if where is not None:
            frame = frame.where(where)
        return frame.select(*columns) if columns is not None else frame

    def frame(self, files: Sequence[str]) -> DataFrame:
        """All rows of these files, which `files` named."""
        if is_remote(self.spark):  # a list of paths would be looked up one by one; and what we do not know is read
            skipped = ", ".join(map(quote_string, sorted(set(self.known.names) - set(files))))
            return self._whole().where(f"_metadata.file_name NOT IN ({skipped})") if skipped else self._whole()
        if not files:
            return self._whole().limit(0)
        # Above so many paths Spark would list them by a job; each is a file, so there is nothing to list.
        with configured(self.spark, sources__parallelPartitionDiscovery__threshold=len(files) + 32):
            paths = (f"{self.path}/{_GLOB.sub(_ESCAPED, n)}" for n in files)
            return self.spark.read.schema(self._struct).parquet(*paths)

    def _whole(self) -> DataFrame:
        return self.spark.read.schema(self._struct).parquet(self.path)

    def bound(self, where: str | Predicate | None) -> Predicate:
        """What we do not understand prunes nothing; whether it is an error is for Spark to say."""
        if where is None or not same_grammar(self.spark):
            return TRUE
        try:
            p = parse_where(where) if isinstance(where, str) else where
            return normalise(bind(p, self.schema, meaning(self.spark)))
        except (WorkloadError, SchemaError):
            return TRUE

    # --- measuring ---

    def score(self, workload: Workload) -> Score:
        """What the workload opens, exactly, from the index alone; how much matches is not known without a scan."""
        rows = self.known.rows
        found, weights = [], []
        bound = workload.on(self.name).bind({self.name: self.schema}, meaning(self.spark))
        for query in bound:
            p = query.predicate(self.name)
            opened = self.index.to_open(p)
            share = float(rows[opened].sum() / max(1, rows.sum()))
            reads = query.columns(self.name)
            read = None if reads is None else sorted({*map(top, reads), *(quote_name(c.path[0]) for c in columns(p))})
            found.append(QueryScore(query.id, share, float(opened.mean()), self.known.share(read, opened), None))
            weights.append(query.weight)
        warn(f"{len(bound.skipped)} of {len(workload)} queries are left out", bound.skipped)
        return Score.mean(found, weights, len(rows))

    def describe(self) -> dict[str, Any]:
        """What the table is and where it came from, as plain values."""
        present, sizes = data_files(self.spark, self.path), self.known.by_name
        blocks = np.bincount(self.known.blocks[self.known.blocks >= 0], self.known.rows[self.known.blocks >= 0])
        rows = np.sort(blocks[blocks > 0]).astype(int).tolist() or [0]
        told = ("source", "learner", "parameters", "block_rows", "seed", "workload", "created", "versions")
        return {
            "path": self.path,
            "table": self.name,
            **{key: self.manifest[key] for key in told if key in self.manifest},
            "layout": self.layout.kind,
            "blocks": len(rows),
            "rows": int(self.known.rows.sum()),
            "rows_per_block": {"least": rows[0], "median": rows[len(rows) // 2], "most": rows[-1]},
            "files": len(present),
            "bytes": sum(present.values()),
            "unknown_files": sorted(n for n, size in present.items() if sizes.get(n) != size),
            "missing_files": sorted(set(sizes) - set(present)),
            "statistics": sorted(self._stored_index.blocks.terms),
            "features": len(self._stored_index.blocks.features),
            "steady_only": settings(self.spark) != self.manifest["settings"],
        }

    def verify(self, seed: int = 0) -> dict[str, Any]:
        """Prove that the table is what was written: its files, all rows and columns, and what the index says of them.

        HedgerowError names what is not; the result says what was checked.
        """
        needs_jvm(self.spark, "verify")
        present, sizes = data_files(self.spark, self.path), self.known.by_name
        wrong = [f"the file {n} is missing" for n in sizes if n not in present]
        wrong += [f"the file {n} is not Hedgerow's" for n, size in present.items() if sizes.get(n) != size]
        expected = Checksum(**self.manifest["checksum"])
        if not wrong:
            with step(self.spark, "comparing all rows"):
                found = checksum(self.frame(list(sizes)))
            if found != expected:
                wrong.append(f"its rows are not the source's: {found}, but {expected} went in")
        some = sorted(random.Random(seed).sample(range(len(sizes)), min(_VERIFIED_FILES, len(sizes))))
        if not wrong and some:
            with step(self.spark, "comparing statistics"):
                wrong += self._lies(some)
        if wrong:
            more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
            raise HedgerowError(f"{self.path} is not as it was written: {wrong[0]}{more}")
        return {
            "path": self.path,
            "rows": expected.rows,
            "checksum": f"{expected.low:x}-{expected.high:x}",
            "files": len(sizes),
            "files_with_statistics_checked": len(some),
        }

    def _lies(self, places: Sequence[int]) -> list[str]:
        """Of these files, a sentence for each of which the index does not say what a fresh look does."""
        names = [self.known.names[i] for i in places]
        with configured(self.spark, **_as_arguments(self.manifest["settings"])):
            fresh = collect_files(self.frame(names), self._statistics, self.schema, names)
        said = repeat(self._stored_index.blocks, np.array(places))
        n, both = len(places), concat([said, fresh])
        same = both.rows[:n] == both.rows[n:]
        for t in both.terms.values():
            noted: list[Any] = [t.low, t.high, t.nulls, t.nan, *([t.sets.set_of] if t.sets else [])]
            for values in noted:
                same = same & (values[:n] == values[n:])
        for feature in both.features.values():
            same = same & (feature.bits[:n] == feature.bits[n:])
        same = same | ((both.rows[:n] == 0) & (both.rows[n:] == 0))  # of no rows anything may be said
        return [f"the statistics of {name} are wrong" for name, is_same in zip(names, same, strict=True) if not is_same]

    # --- writing ---

    @property
    def _statistics(self) -> list[Any]:
        return [decode(item) for item in self.manifest["statistics"]]

    def append(self, frame: DataFrame) -> ParquetTable:
        """New rows through the same layout into new files; the index grows, nothing old is touched."""
        needs_jvm(self.spark, "append")
        same = self._fitting(frame)
        place = f"{SIDE}/append-{uuid4().hex[:8]}"  # out of every reader's sight until it is whole
        draft = ParquetTable(self.spark, f"{self.path}/{place}", self.manifest)
        folder = Folder(self.spark, self.path)
        moved: list[str] = []
        try:
            with configured(self.spark, **_as_arguments(self.manifest["settings"])):
                if settings(self.spark) != self.manifest["settings"]:
                    raise HedgerowError(
                        f"{self.path} was written without the spark.sql.legacy settings of this session"
                    )
                went_in, stats, files = draft.fill(same, self.layout)
            for name in files.names:
                folder.move(f"{place}/{name}", name)
                moved.append(name)
            self._commit_more(went_in, stats, files)
        except BaseException as error:
            for name in moved:
                folder.delete(name)
            if isinstance(error, spark_errors()):
                raise HedgerowError(f"nothing could be appended to {self.path}: {first_line(error)}") from error
            raise
        finally:
            folder.delete(place)
        return ParquetTable.open(self.spark, self.path)

    def _commit_more(self, went_in: Checksum, stats: Stats, files: KnownFiles) -> None:
        """After the newest manifest: somebody else may have appended meanwhile."""
        table = self
        while True:
            index = BlockIndex((View(concat([table._stored_index.blocks, stats])),))
            manifest = {**table.manifest, "number": table.manifest["number"] + 1}
            manifest["checksum"] = _as_json(Checksum(**manifest["checksum"]) + went_in)
            if commit(self.spark, self.path, manifest, index, table.known + files):
                return
            table = ParquetTable.open(self.spark, self.path)

    def fill(self, frame: DataFrame, layout: Layout) -> tuple[Checksum, Stats, KnownFiles]:
        """Write rows where no file is yet, and look at what was written."""
        with step(self.spark, "writing"):
            went_in = write_blocks(frame, layout, self.schema, self.path, **self.manifest["writing"])
        with step(self.spark, "collecting statistics"):
            stats, files = self._looked_at()
        written = int(files.rows.sum())
        if went_in.rows != written:  # a task that ran twice was counted twice
            went_in = checksum(frame)
        if went_in.rows != written:
            raise HedgerowError(f"{went_in.rows} rows were read, {written} written: did the source change meanwhile?")
        return went_in, stats, files

    def _looked_at(self) -> tuple[Stats, KnownFiles]:
        """Statistics and sizes of all files."""
        sizes = dict(sorted(data_files(self.spark, self.path).items()))
        stats = collect_files(self.frame(list(sizes)), self._statistics, self.schema, list(sizes))
        footers = footers_of(Folder(self.spark, self.path), sizes)
        names = dict.fromkeys(name for footer in footers for name in footer.columns)
        files = KnownFiles(
            tuple(sizes),
            np.array(list(sizes.values()), np.int64),
            stats.rows,
            np.array([block_of_file(n) for n in sizes], np.int64),
            {name: np.array([f.columns.get(name, 0) for f in footers], np.int64) for name in names},
        )
        return stats, files

    def _fitting(self, frame: DataFrame) -> DataFrame:
        given = {f.name.lower(): f for f in frame.schema.fields}
        for field in self._struct.fields:
            found = given.pop(field.name.lower(), None)
            wanted = field.dataType.simpleString()
            if found is None:
                raise HedgerowError(f"the new rows have no column {field.name}")
            if found.dataType.simpleString() != wanted:
                kind = found.dataType.simpleString()
                raise HedgerowError(f"the new rows have {field.name} as {kind}, the table as {wanted}: cast it first")
        if given:
            raise HedgerowError(f"the table has no column {', '.join(f.name for f in given.values())}")
        return frame.select(*(quote_name(name) for name in self._struct.names))


def _newest(side: Folder) -> int:
    """The number of the newest manifest, 0 if there is none."""
    names = side.sizes()
    return max((int(n[9:-5]) for n in names if n.startswith("manifest-") and n.endswith(".json")), default=0)


def _partial(path: str) -> tuple[str, str]:
    """The folder around a table, and the name in it under which the table is written until it is whole."""
    parent, _, last = path.rstrip("/").rpartition("/")
    return parent or ("/" if path.startswith("/") else "."), f".{last}.hedgerow-partial"


def _why_not(spark: SparkSession, path: str) -> str:
    if is_remote(spark):
        return "there is no _hedgerow folder with a manifest in it"
    around, partial = _partial(path)
    if Folder(spark, around).exists(partial) or Folder(spark, path).exists(SIDE):
        return "a run that wrote it was killed or failed before the end, so apply again"
    return "there is no _hedgerow folder in it" if Folder(spark, path).exists() else "there is nothing at that path"


def _as_json(found: Checksum) -> dict[str, int]:
    return {"rows": found.rows, "low": found.low, "high": found.high}


def _as_arguments(stored: Mapping[str, str]) -> dict[str, str]:
    return {key.removeprefix("spark.sql.").replace(".", "__"): value for key, value in stored.items()}


def data_files(spark: SparkSession, path: str) -> dict[str, int]:
    """What Spark reads as the table's, with sizes; into folders it does not look, where there are no partitions."""
    return {n: size for n, size in Folder(spark, path).sizes().items() if size >= 0 and not n.startswith(("_", "."))}


def commit(spark: SparkSession, path: str, manifest: Mapping[str, Any], index: BlockIndex, files: KnownFiles) -> bool:
    """First what the manifest names, then the manifest; False if somebody else wrote one of its number before."""
    side = Folder(spark, f"{path}/{SIDE}")
    number = manifest["number"]
    names = {"index": f"index-{number}-{uuid4().hex[:8]}.arrow", "files": f"files-{number}-{uuid4().hex[:8]}.arrow"}
    side.write(names["index"], index_bytes(index))
    side.write(names["files"], files.to_bytes())
    if not side.write(f"manifest-{number}.json", json.dumps({**manifest, **names}, indent=1).encode(), new=True):
        return False
    for name in side.sizes():
        found = re.match(r"(?:manifest|index|files)-(\d+)[-.]", name)
        if found and int(found[1]) <= number - _KEPT:
            side.delete(name)
    return True


def create(
    opened: Source,
    layout: Layout,
    to: str,
    *,
    statistics: Sequence[Any],
    provenance: Mapping[str, Any],
    writing: Mapping[str, Any],
    overwrite: bool = False,
) -> ParquetTable:
    """Write the table beside its place and move it there when it is whole."""
    spark = opened.frame.sparkSession
    to = to.rstrip("/")
    target, (around, partial) = Folder(spark, to), _partial(to)
    half_done = target.exists(SIDE) and not _newest(Folder(spark, f"{to}/{SIDE}"))
    if not (target.is_empty() or half_done or overwrite):
        raise HedgerowError(f"{to} is not empty: name another place, or ask to overwrite it")
    place = f"{around}/{partial}"
    Folder(spark, place).delete()
    try:
        Folder(spark, f"{place}/{SIDE}").write("layout.json", layout_to_json(layout).encode())
        manifest: dict[str, Any] = {
            "version": VERSION,
            "number": 1,
            "name": opened.name,
            **provenance,
            "schema": json.loads(opened.frame.schema.json()),
            "settings": settings(spark),
            "writing": dict(writing),
            "statistics": list(statistics),
        }
        draft = ParquetTable(spark, place, manifest)
        went_in, stats, files = draft.fill(opened.frame, layout)
        commit(spark, place, {**manifest, "checksum": _as_json(went_in)}, BlockIndex((View(stats),)), files)
        _exchange(Folder(spark, around), partial, to.rpartition("/")[2])
    except spark_errors() as error:
        raise HedgerowError(f"{to} could not be written: {first_line(error)}") from error
    finally:
        Folder(spark, place).delete()
    return ParquetTable.open(spark, to)


def _exchange(around: Folder, new: str, name: str) -> None:
    """`new` takes the place of `name`; what was there goes only when the new one stands."""
    old = f".{name}.hedgerow-old"
    around.delete(old)
    was_there = around.exists(name)
    if was_there:
        around.move(name, old)
    try:
        around.move(new, name)
    except BaseException:
        if was_there:
            around.move(old, name)
        raise
    around.delete(old)
