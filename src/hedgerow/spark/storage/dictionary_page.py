"""Reads the dictionary of a column chunk: the values that occur in it, without reading its rows.

    chunk    | header | dictionary: each value once | header | data page | header | data page ...

The header is in Thrift's compact protocol. A dictionary is the exact set of values only if all data pages use it.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

_DICTIONARY_PAGE = 2  # the type of a page
_PAGE_TYPE, _UNPACKED_BYTES, _BYTES, _DICTIONARY_HEADER = 1, 2, 3, 7  # numbers of a header's fields
_NUM_VALUES = 1
# The encodings of pages that use the dictionary, and of repetition levels. A PLAIN page has values of its own.
_DICTIONARY_ENCODINGS = {"PLAIN_DICTIONARY", "RLE_DICTIONARY", "RLE", "BIT_PACKED"}
_INTEGERS: dict[str, Any] = {"INT32": "<i4", "INT64": "<i8"}


def dictionary_place(chunk: pq.ColumnChunkMetaData) -> tuple[int, int]:
    """Return the dictionary's place in the file and its length; ValueError if it lacks values of the chunk."""
    if not chunk.has_dictionary_page or not _DICTIONARY_ENCODINGS.issuperset(chunk.encodings):
        raise ValueError("some pages have no dictionary")
    length = chunk.data_page_offset - chunk.dictionary_page_offset
    if chunk.dictionary_page_offset <= 0 or length <= 0:
        raise ValueError("a dictionary in no known place")
    return chunk.dictionary_page_offset, length


def dictionary_values(kind: pa.DataType, chunk: pq.ColumnChunkMetaData, page: bytes) -> pa.Array:
    """Return the values in a dictionary's page; ValueError or an Arrow error if it cannot be read."""
    try:
        header, start = _thrift_struct(page, 0)
        count, unpacked = header[_DICTIONARY_HEADER][_NUM_VALUES], header[_UNPACKED_BYTES]
        is_whole = header[_PAGE_TYPE] == _DICTIONARY_PAGE and start + header[_BYTES] == len(page)
    except (IndexError, KeyError, TypeError) as error:
        raise ValueError("the header of a dictionary is damaged") from error
    if not is_whole:
        raise ValueError("this is no dictionary")
    data = page[start:]
    if chunk.compression != "UNCOMPRESSED":
        data = pa.Codec(chunk.compression.lower()).decompress(data, unpacked).to_pybytes()
    return _plain_values(kind, chunk.physical_type, data, count)


def _plain_values(kind: pa.DataType, physical: str, data: bytes, count: int) -> pa.Array:
    if physical in _INTEGERS:
        integers = np.frombuffer(data, _INTEGERS[physical])
        if len(integers) != count:
            raise ValueError("a dictionary has another length than it says")
        if pa.types.is_decimal(kind):
            return pa.array([Decimal(v).scaleb(-kind.scale) for v in integers.tolist()], kind)
        return pa.array(integers).cast(kind)
    if physical != "BYTE_ARRAY" or pa.types.is_decimal(kind):
        raise ValueError(f"a dictionary of {physical}")
    texts, at = [], 0
    for _ in range(count):
        length = int.from_bytes(data[at : at + 4], "little")
        texts.append(data[at + 4 : at + 4 + length])
        at += 4 + length
    if at != len(data):
        raise ValueError("a dictionary has another length than it says")
    return pa.array(texts, pa.binary()).cast(kind)


# --- Thrift's compact protocol: the parts that headers of pages use ---


def _thrift_struct(data: bytes, at: int) -> tuple[dict[int, Any], int]:
    """Return the fields of a struct by their numbers, and the place after it."""
    fields: dict[int, Any] = {}
    number = 0
    while data[at]:
        step, kind = data[at] >> 4, data[at] & 15
        at += 1
        if step:
            number += step
        else:
            number, at = _zigzag(data, at)
        match kind:
            case 1 | 2:  # true, false
                fields[number] = kind == 1
            case 3:  # a byte
                fields[number], at = data[at], at + 1
            case 4 | 5 | 6:  # integers
                fields[number], at = _zigzag(data, at)
            case 12:  # a struct
                fields[number], at = _thrift_struct(data, at)
            case _:
                raise ValueError("a field of an unknown kind in a page's header")
    return fields, at + 1


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of variable length, and the place after it: 0, -1, 1, -2 ... are stored as 0, 1, 2, 3 ..."""
    value, shift = 0, 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value >> 1 ^ -(value & 1), at
