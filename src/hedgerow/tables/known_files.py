"""The indexed data files of a table, stored as one Arrow file: sizes, rows, blocks, and the bytes of each column."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import pyarrow as pa

from hedgerow.core.arrays import Bools, Floats, Ints
from hedgerow.core.errors import FormatError
from hedgerow.core.on_use import OnUse, mapped_on_use
from hedgerow.spark.storage.footers import Footers
from hedgerow.spark.storage.paths import added_name

SIDE = "_hedgerow"  # the folder inside a table with Hedgerow's own files
LOG = f"{SIDE}/log"  # the log of the table's queries; also tables that Hedgerow did not write may have one
DECISIONS = f"{SIDE}/decisions"  # the autopilot's
REWRITE_COST = f"{SIDE}/rewrite_cost.json"  # as `calibrate` measured it
TRIAL = r"calibrate-[0-9a-f]{8}"  # the names of folders inside of SIDE for rewrites that are only timed
CLAIM = r"run-(\d{1,9})"  # the names of files inside of SIDE by which runs take a place in an object store
WAVE = r"wave-(\d{1,9})\.json"  # the names of files inside of SIDE for finished waves of a table without a state
PARTITION = re.compile(r"[^.=][^=]*=.+")  # the names of folders `column=value`; a managed table has none
_COLUMN = "column:"
_WRITES = b"writes"


def is_hidden(name: str) -> bool:
    """True if plain readers do not see the file, because it is in `_hedgerow`."""
    return name.startswith(f"{SIDE}/")


def file_names(names: Iterable[str]) -> list[str]:
    """Return the last part of each file's path, as in the column `_metadata.file_name`."""
    return list(map(added_name, names))


@dataclass(frozen=True)
class KnownFiles:
    """The indexed files: entry i of the index is the file `names[i]`. `blocks`: -1 if the name has no block.

    `writes`: in a stored list the ids of the writes, each with its number of files, in the order of the files.
    """

    names: tuple[str, ...]
    sizes: Ints
    rows: Ints
    blocks: Ints
    columns: Mapping[str, Ints]
    writes: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of_footers(
        cls,
        sizes: Mapping[str, int],
        footers: Footers,
        rows: Sequence[int] | Ints,
        blocks: Sequence[int] | Ints,
    ) -> KnownFiles:
        """Return the files with these sizes; the bytes of each column come from the footers."""
        lengths = np.array(list(sizes.values()), np.int64)
        return cls(tuple(sizes), lengths, np.asarray(rows, np.int64), np.asarray(blocks, np.int64), footers.columns)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def visible_sizes(self) -> dict[str, int]:
        """The size of each file that plain readers see."""
        return {name: size for name, size in self.sizes_by_name.items() if not is_hidden(name)}

    @property
    def sizes_by_name(self) -> dict[str, int]:
        """Each file's size."""
        return dict(zip(self.names, self.sizes.tolist(), strict=True))

    @cached_property
    def visible(self) -> Bools:
        """True for each file that plain readers see; the hidden files in `_hedgerow` have copies of their rows."""
        return np.array([not is_hidden(name) for name in self.names], bool)

    def bytes_read(self, columns: Sequence[str] | None, shares: Bools | Floats) -> int:
        """Return the bytes that a scan of these columns (None: all) reads, if it reads these shares of the files."""
        if columns is None or not self.columns:
            return int((self.sizes * shares).sum())
        wanted = {c.lower() for c in columns}
        return sum(int((self.columns[name] * shares).sum()) for name in self.columns if name.lower() in wanted)

    def total(self, columns: Sequence[str] | None) -> int:
        """Return the bytes of the whole table: of its columns if `columns` are given, else of its files."""
        return self.bytes_read(None if columns is None else tuple(self.columns), self.visible)

    def take(self, places: Sequence[int]) -> KnownFiles:
        """Return the entries at these places, in this order."""
        at = np.array(places, np.int64)
        columns = mapped_on_use(self.columns, self.columns, lambda sizes: sizes[at])
        return KnownFiles(tuple(self.names[i] for i in places), self.sizes[at], self.rows[at], self.blocks[at], columns)

    @staticmethod
    def concat(parts: Sequence[KnownFiles]) -> KnownFiles:
        """Return the entries of all, one after the other."""
        if len(parts) == 1:
            return parts[0]

        def joined(name: str) -> Ints:
            return np.concatenate([p.columns.get(name, np.zeros(len(p), np.int64)) for p in parts])

        columns = dict.fromkeys(name for part in parts for name in part.columns)
        return KnownFiles(
            tuple(name for part in parts for name in part.names),
            np.concatenate([part.sizes for part in parts]),
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.blocks for part in parts]),
            OnUse({name: partial(joined, name) for name in columns}),
            tuple(write for part in parts for write in part.writes),
        )

    def to_bytes(self) -> bytes:
        arrays = {"name": pa.array(self.names, pa.string()), "bytes": self.sizes, "rows": self.rows}
        arrays |= {"block": self.blocks, **{_COLUMN + name: sizes for name, sizes in self.columns.items()}}
        table = pa.table(arrays).replace_schema_metadata({_WRITES: json.dumps(self.writes)})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_table(table)
        return bytes(sink.getvalue())

    @staticmethod
    def of_bytes(data: bytes, where: str) -> KnownFiles:
        def read(*fields: str) -> pa.Table:
            """Return some fields; the bytes of columns stay compressed until a query's columns are compared."""
            try:
                names = pa.ipc.open_file(pa.py_buffer(data)).schema.names
                options = pa.ipc.IpcReadOptions(included_fields=[names.index(name) for name in fields])
                table = pa.ipc.open_file(pa.py_buffer(data), options=options).read_all()
                table.validate(full=True)  # else damaged offsets would crash the process
                return table
            except (pa.ArrowException, OSError, KeyError, ValueError) as error:
                raise FormatError(f"the list of files of {where} is damaged") from error

        listed = read("name", "bytes", "rows", "block")
        try:
            writes = tuple((str(write), int(files)) for write, files in json.loads(listed.schema.metadata[_WRITES]))
        except (ValueError, TypeError, KeyError) as error:
            raise FormatError(f"the list of files of {where} is damaged") from error
        sizes, rows, blocks = (listed[name].to_numpy() for name in ("bytes", "rows", "block"))
        stored = [name for name in pa.ipc.open_file(pa.py_buffer(data)).schema.names if name.startswith(_COLUMN)]
        columns = {name.removeprefix(_COLUMN): partial(_numbers, read, name) for name in stored}
        return KnownFiles(tuple(listed["name"].to_pylist()), sizes, rows, blocks, OnUse(columns), writes)


def _numbers(read: Callable[[str], pa.Table], name: str) -> Ints:
    numbers: Ints = read(name)[name].to_numpy()
    return numbers
