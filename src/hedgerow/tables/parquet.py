"""A managed Parquet table: ordinary Parquet files, and `_hedgerow/` with the layout, the index and where it came from.

    orders/  part-00000-....parquet ...          any engine reads these
             _hedgerow/layout.json
                       copies/...                rows that other blocks have as well
                       replicas/...              full copies in other layouts
                       index-2-<id>.arrow        what each file cannot contain
                       files-2-<id>.arrow        names, sizes, rows
                       manifest-2.json           written last; names all the rest

A table is whole or is none, for the manifest comes last. Files that it does not name were written by others: they are
always read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from uuid import uuid4

import numpy as np

from hedgerow.core.codec import decode
from hedgerow.core.cost import QueryScore, Score, top
from hedgerow.core.errors import FormatError, HedgerowError, warn
from hedgerow.core.expr import Predicate, columns, quote_name, quote_string
from hedgerow.core.layout import Layout, layout_from_json, layout_to_json
from hedgerow.core.overlap import OverlapLayout
from hedgerow.core.store import index_bytes, index_of_bytes
from hedgerow.core.types import Type
from hedgerow.core.views import BlockIndex, View, joined
from hedgerow.core.workload import Workload
from hedgerow.spark.attach import routed
from hedgerow.spark.checksum import Checksum, checksum, same_rows
from hedgerow.spark.copies import COPIES, COPY, check_cuts, collect_parts, write_copies
from hedgerow.spark.folder import Folder
from hedgerow.spark.footers import footers_of, ranges
from hedgerow.spark.progress import step
from hedgerow.spark.rule import settings
from hedgerow.spark.session import (
    configured,
    first_line,
    is_remote,
    meaning,
    needs_jvm,
    spark_errors,
)
from hedgerow.spark.source import Source, schema_of
from hedgerow.spark.stats import collect_files_and_rows
from hedgerow.spark.write import block_of_file, write_blocks
from hedgerow.sql.plain import plain_condition
from hedgerow.tables.files import KnownFiles, is_hidden
from hedgerow.tables.proof import under, verified
from hedgerow.tables.replicas import (
    Opening,
    catch_up,
    cheapest,
    check_copy,
    described,
    replicas_of,
    stands,
)
from hedgerow.tables.session_fit import difference, fitting_index

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

SIDE = "_hedgerow"
VERSION = 1
_VERIFIED_FILES = 8
_MANIFEST = re.compile(r"manifest-(\d{1,18})\.json")
_GLOB, _ESCAPED = re.compile(r"([\\{}\[\]*?])"), r"\\\1"
_KEPT = 10  # older manifests, for readers that are still at work
_PARTS = {"number": int, "name": str, "schema": dict, "settings": dict, "statistics": list, "files": str, "index": str}


@dataclass(frozen=True)
class ParquetTable:
    """Open with `hedgerow.table`; `manifest` is what the newest `_hedgerow/manifest-<n>.json` says."""

    spark: SparkSession
    path: str
    manifest: Mapping[str, Any]

    @staticmethod
    def open(spark: SparkSession, path: str, number: int = 0) -> ParquetTable:
        """The table as its newest manifest says, or that of a number."""
        number = number or _newest(Folder(spark, f"{path}/{SIDE}"))
        if not number:
            raise HedgerowError(f"{path} is no table that Hedgerow wrote: {_why_not(spark, path)}")
        try:
            manifest = json.loads(Folder(spark, f"{path}/{SIDE}").read(f"manifest-{number}.json"))
            newer = manifest["version"] > VERSION
            is_whole = all(isinstance(manifest[key], kind) for key, kind in _PARTS.items())
        except (ValueError, KeyError, TypeError) as error:
            raise FormatError(f"the manifest of {path} is damaged") from error
        if newer:
            raise FormatError(f"{path} was written by a newer Hedgerow (format {manifest['version']})")
        if not is_whole:
            raise FormatError(f"the manifest of {path} is damaged")
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
    def stored_index(self) -> BlockIndex:
        return index_of_bytes(self._side.read(self.manifest["index"]), f"the index of {self.path}")

    @property
    def index(self) -> BlockIndex:
        """What the files cannot contain, as far as it holds under the session's settings."""
        return self.index_under(settings(self.spark))

    def index_under(self, now: Mapping[str, str]) -> BlockIndex:
        """As far as it holds under these settings."""
        differs = difference(self.manifest["settings"], now)
        kind = differs and differs[0]
        if kind not in self._indexes:
            self._indexes[kind] = fitting_index(self.stored_index, self.schema, kind)
        return self._indexes[kind]

    @cached_property
    def _indexes(self) -> dict[str | None, BlockIndex]:
        return {}

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

    @cached_property
    def _side(self) -> Folder:
        return Folder(self.spark, f"{self.path}/{SIDE}")

    @property
    def replicas(self) -> dict[str, ParquetTable]:
        """Full copies in other layouts, by name, as they are now."""
        return replicas_of(self)

    def present(self) -> dict[str, int]:
        """The data files that are there now, known or not, with their sizes; of the hidden ones those that we know."""
        found = data_files(self.spark, self.path)
        if not is_remote(self.spark) and not self.known.own.all():
            hidden = self._hidden()
            found |= {n: hidden[n] for n in self.known.names if n in hidden}
        return found

    def _hidden(self) -> dict[str, int]:
        copies = data_files(self.spark, f"{self.path}/{COPIES}")
        return {f"{COPIES}/{name}": size for name, size in copies.items()}

    # --- reading ---

    def files(self, where: str | None = None) -> list[str]:
        """The names of the files that a query with this condition opens, those unknown to the index included."""
        inside = self.path.rstrip("/") + "/"
        paths = (unquote(path).removeprefix("file://").removeprefix("file:") for path in self._opened(where))
        return sorted(path.rpartition(inside)[2] for path in paths)

    def _opened(self, where: str | None) -> list[str]:
        if is_remote(self.spark):
            skipped = self.skipped_remotely(where)
            return [f"{self.path}/{name}" for name in self.present() if name not in skipped]
        return self.read(where).inputFiles()

    def opening(
        self, p: Predicate, columns: Sequence[str] | None = None, under: Mapping[str, str] | None = None
    ) -> Opening:
        """What to open for rows on which `p` is TRUE: of the table itself, copies included, or of a replica.

        `under`: the settings that count, by default the session's.
        """
        now, under = self.present(), settings(self.spark) if under is None else under
        found = [self._opening(p, now, under)]
        found += [r._opening(p, r.known.by_name, under) for r in self.replicas.values() if stands(self, r, now)]
        return cheapest(found, _read(columns, p))

    def _opening(self, p: Predicate, now: Mapping[str, int], under: Mapping[str, str]) -> Opening:
        """Files that are not as we know them are opened; copies may then be of rows that are gone, and are not."""
        known = self.known.by_name
        same = {n for n, size in known.items() if now.get(n) == size}
        found = self.index_under(under).cover(p, self.known.sizes, copies=len(same) == len(known))
        opened = {n for n, is_open in zip(known, found.opened, strict=True) if is_open}
        files = [n for n in now if (n in opened if n in same else not is_hidden(n))]
        return Opening(self, tuple(sorted(files)), found.opened, found.taken)

    def read(self, where: str | None = None, columns: Sequence[str] | None = None) -> DataFrame:
        """The matching rows, from just the files that may hold some."""
        frame = self._whole()
        if is_remote(self.spark):
            skipped = ", ".join(map(quote_string, sorted(self.skipped_remotely(where))))
            frame = frame.where(f"_metadata.file_name NOT IN ({skipped})") if skipped else frame
        if where is not None:
            frame = frame.where(where)
        found = frame.select(*columns) if columns is not None else frame
        return found if is_remote(self.spark) else routed(self.spark, found)

    def skipped_remotely(self, where: str | None) -> set[str]:
        """Over Spark Connect there is no plan to look at, so only conditions of the plainest kind skip files."""
        hides = any(name.lower() == "_metadata" for name in self.schema)  # which would stand for the file's name
        p = None if where is None or hides else plain_condition(where, self.schema)
        if p is None:
            return set()
        opened = self.index.cover(p, copies=False).opened
        sizes = self.present()
        return {
            name
            for (name, size), is_open in zip(self.known.by_name.items(), opened, strict=True)
            if not is_open and sizes.get(name) == size and not is_hidden(name)
        }

    def frame(self, files: Sequence[str]) -> DataFrame:
        """All rows of these files."""
        return self._files(files, self._struct) if files else self._whole().limit(0)

    def with_copies(self, files: Sequence[str]) -> DataFrame:
        """With one more column, for copies the number of block and cell."""
        from pyspark.sql.types import LongType, StructField, StructType

        return self._files(files, StructType([*self._struct.fields, StructField(COPY, LongType())]))

    def copy_code(self, block: int, cell: int) -> int:
        """The number that copies of a cell carry in a block."""
        assert isinstance(self.layout, OverlapLayout)
        return self.layout.code(block, cell)

    def _files(self, files: Sequence[str], schema: StructType) -> DataFrame:
        # Above so many paths Spark would list them by a job; each is a file, so there is nothing to list.
        with configured(self.spark, sources__parallelPartitionDiscovery__threshold=len(files) + 32):
            return self.spark.read.schema(schema).parquet(*(_literally(f"{self.path}/{n}") for n in files))

    def _whole(self) -> DataFrame:
        return self.spark.read.schema(self._struct).parquet(_literally(self.path))

    # --- measuring ---

    def score(self, workload: Workload) -> Score:
        """What the workload opens, exactly, from the index alone; how much matches is not known without a scan."""
        found, weights = [], []
        bound = workload.on(self.name).bind({self.name: self.schema}, meaning(self.spark))
        copies, under = self._copies(), settings(self.spark)
        for query in bound:
            p = query.predicate(self.name)
            reads = query.columns(self.name)
            read = None if reads is None else _read(reads, p)
            best = cheapest([table._opening(p, table.known.by_name, under) for table in copies], read)
            known = best.table.known
            share = float(known.rows[best.known].sum() / max(1, known.rows[known.own].sum()))
            # Bytes are told as a share of this table's, whichever copy is read.
            part = known.bytes_read(read, best.known) / max(1, self.known.total(read))
            found.append(QueryScore(query.id, share, float(best.known.mean()), part, None))
            weights.append(query.weight)
        warn(f"{len(bound.skipped)} of {len(workload)} queries are left out", bound.skipped)
        return Score.mean(found, weights, len(self.known))

    def rows_read(self, predicates: Sequence[Predicate]) -> list[float]:
        """The share of the rows that each predicate reads, of the copy that serves it best."""
        copies = [(t.index, t.known.rows, max(1, t.known.rows[t.known.own].sum())) for t in self._copies()]
        return [min(float(rows[i.to_open(p)].sum() / n) for i, rows, n in copies) for p in predicates]

    def _copies(self) -> list[ParquetTable]:
        now = self.present() if self.replicas else {}
        return [self, *(r for r in self.replicas.values() if stands(self, r, now))]

    def describe(self) -> dict[str, Any]:
        """What the table is and where it came from, as plain values."""
        present, sizes = self.present(), self.known.by_name
        known = self.known.take(np.flatnonzero(self.known.own).tolist())
        blocks = np.bincount(known.blocks[known.blocks >= 0], known.rows[known.blocks >= 0])
        rows = np.sort(blocks[blocks > 0]).astype(int).tolist() or [0]
        told = ("source", "learner", "parameters", "block_rows", "seed", "workload", "created", "versions")
        return {
            "path": self.path,
            "table": self.name,
            **{key: self.manifest[key] for key in told if key in self.manifest},
            "layout": self.layout.kind,
            "blocks": len(rows),
            "rows": int(known.rows.sum()),
            "copied_rows": int(self.known.rows.sum() - known.rows.sum()),
            "rows_per_block": {"least": rows[0], "median": rows[len(rows) // 2], "most": rows[-1]},
            "files": len(present),
            "bytes": sum(present.values()),
            "unknown_files": sorted(n for n, size in present.items() if sizes.get(n) != size),
            "missing_files": sorted(set(sizes) - set(present)),
            "statistics": sorted(self.stored_index.blocks.terms),
            "features": len(self.stored_index.blocks.features),
            "steady_only": settings(self.spark) != self.manifest["settings"],
            "replicas": described(self, present),
        }

    def verify(self, seed: int = 0) -> dict[str, Any]:
        """Prove that the table is what was written: its files, all rows and columns, and what the index says of them.

        HedgerowError names what is not; the result says what was checked.
        """
        needs_jvm(self.spark, "verify")
        return verified(self, seed)

    # --- writing ---

    @property
    def statistics(self) -> list[Any]:
        return [decode(item) for item in self.manifest["statistics"]]

    def append(self, frame: DataFrame) -> ParquetTable:
        """New rows through the same layout into new files; the index grows, nothing old is touched."""
        needs_jvm(self.spark, "append")
        self._add(self._fitting(frame), self._commit_more)
        grown = ParquetTable.open(self.spark, self.path)
        warn(f"{self.path} has grown, but not all of its replicas", catch_up(grown))
        return grown

    def refresh_replicas(self) -> ParquetTable:
        """Bring replicas that fell behind up to the newest state of the table; HedgerowError where that cannot be."""
        needs_jvm(self.spark, "refresh replicas")
        table = ParquetTable.open(self.spark, self.path)
        failed = catch_up(table)
        if failed:
            raise HedgerowError(failed[0])
        return table

    def add_copies(self, frame: DataFrame, of: ParquetTable) -> bool:
        """To a replica the rows with which it is a copy of that table; False if somebody else wrote to it before."""

        def commit_copy(went_in: Checksum, index: BlockIndex, files: KnownFiles) -> None:
            if not self._commit_more(went_in, index, files, of):
                raise _Overtaken

        try:
            self._add(frame, commit_copy)
        except _Overtaken:
            return False
        return True

    def _add(self, frame: DataFrame, finish: Callable[[Checksum, BlockIndex, KnownFiles], object]) -> None:
        """Write the rows out of every reader's sight, move the files to their place, and let `finish` commit them."""
        place = f"{SIDE}/append-{uuid4().hex[:8]}"
        draft = ParquetTable(self.spark, f"{self.path}/{place}", self.manifest)
        folder = Folder(self.spark, self.path)
        moved: list[str] = []
        try:
            with under(self.spark, self.manifest["settings"]):
                differs = difference(self.manifest["settings"], settings(self.spark))
                if differs is not None:
                    raise HedgerowError(f"nothing can be appended to {self.path} in this session: {differs[1]}")
                went_in, index, files = draft.fill(frame, self.layout)
            for name in files.names:
                folder.move(f"{place}/{name}", name)
                moved.append(name)
            finish(went_in, index, files)
        except BaseException as error:
            for name in moved:
                folder.delete(name)
            if isinstance(error, spark_errors()):
                raise HedgerowError(f"nothing could be appended to {self.path}: {first_line(error)}") from error
            raise
        finally:
            folder.delete(place)

    def _commit_more(
        self, went_in: Checksum, index: BlockIndex, files: KnownFiles, copy_of: ParquetTable | None = None
    ) -> bool:
        """After the newest manifest: somebody else may have appended meanwhile. A copy is only made of what we saw."""
        table = self
        while True:
            grown = joined(table.stored_index, index)
            manifest = {**table.manifest, "number": table.manifest["number"] + 1}
            checksum = Checksum(**manifest["checksum"]) + went_in
            manifest["checksum"] = _as_json(checksum)
            if copy_of is not None:
                check_copy(copy_of, checksum)
                manifest["copy_of"] = copy_of.manifest["files"]
            if commit(self.spark, self.path, manifest, grown, table.known + files):
                return True
            if copy_of is not None:
                return False
            table = ParquetTable.open(self.spark, self.path)

    def fill(self, frame: DataFrame, layout: Layout) -> tuple[Checksum, BlockIndex, KnownFiles]:
        """Write rows where no file is yet, and look at what was written."""
        if isinstance(layout, OverlapLayout):
            check_cuts(layout, self.schema)
        with step(self.spark, "writing"):
            went_in = write_blocks(frame, layout, self.schema, self.path, **self.manifest["writing"])
            if isinstance(layout, OverlapLayout) and layout.pairs:
                own, how = self.frame(list(data_files(self.spark, self.path))), self.manifest["writing"]
                where = f"{self.path}/{COPIES}"
                write_copies(own, layout, self.schema, where, how["sort_by"], how["options"])
        with step(self.spark, "collecting statistics and comparing all rows"):
            index, files, came_out = self._looked_at(layout)
        return same_rows(went_in, came_out, frame, self.frame(list(data_files(self.spark, self.path)))), index, files

    def _looked_at(self, layout: Layout) -> tuple[BlockIndex, KnownFiles, Checksum]:
        """Statistics and sizes of all files, and the checksum of the rows that they hold."""
        own, hidden = data_files(self.spark, self.path), self._hidden()
        sizes = dict(sorted({**own, **hidden}.items()))
        frame, footers = self.frame(list(own)), footers_of(Folder(self.spark, self.path), sizes)
        if isinstance(layout, OverlapLayout):
            copies = self.with_copies(list(hidden)) if hidden else None
            index = collect_parts(frame, copies, layout, self.statistics, self.schema, list(sizes))
            came_out = checksum(frame)
        else:
            known = ranges(footers, self.schema)
            stats, came_out = collect_files_and_rows(frame, self.statistics, self.schema, list(sizes), known)
            index = BlockIndex((View(stats),))
        names = dict.fromkeys(name for footer in footers for name in footer.columns)
        files = KnownFiles(
            tuple(sizes),
            np.array(list(sizes.values()), np.int64),
            index.blocks.rows,
            np.array([block_of_file(n.rpartition("/")[2]) for n in sizes], np.int64),
            {name: np.array([f.columns.get(name, 0) for f in footers], np.int64) for name in names},
        )
        return index, files, came_out

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


class _Overtaken(Exception):
    """Somebody else wrote to a replica that was about to catch up."""


def _read(reads: Sequence[str] | None, p: Predicate) -> list[str] | None:
    """The top-level columns that a query reads, those of its condition included; None: all."""
    return None if reads is None else sorted({*map(top, reads), *(quote_name(c.path[0]) for c in columns(p))})


def _newest(side: Folder) -> int:
    """The number of the newest manifest, 0 if there is none."""
    return max((int(m[1]) for m in map(_MANIFEST.fullmatch, side.sizes()) if m), default=0)


def _literally(path: str) -> str:
    """For Spark's reader, which takes brackets and braces in a path for patterns."""
    return _GLOB.sub(_ESCAPED, path)


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
    copy_of: ParquetTable | None = None,
) -> ParquetTable:
    """Write the table beside its place and move it there when it is whole; as a copy it has to have the same rows."""
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
        frame = opened.frame
        if copy_of is not None:
            manifest |= {key: copy_of.manifest[key] for key in ("name", "schema")}
            manifest["copy_of"], frame = copy_of.manifest["files"], copy_of._fitting(frame)
        went_in, index, files = ParquetTable(spark, place, manifest).fill(frame, layout)
        if copy_of is not None:
            check_copy(copy_of, went_in)
        commit(spark, place, {**manifest, "checksum": _as_json(went_in)}, index, files)
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
