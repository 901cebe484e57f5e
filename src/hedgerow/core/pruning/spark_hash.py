"""Compute Spark's `xxhash64` of a literal: XXH64 with the seed 42, over the bytes that Spark hashes for the type.

tinyint, smallint, int, date                     4 bytes, the lowest first
bigint, timestamps, decimals up to 18 digits     8 bytes, the lowest first; a decimal without its point
longer decimals                                  as few bytes as hold the number, the highest first
string, binary                                   the bytes; texts in UTF-8
"""

from __future__ import annotations

from decimal import Decimal

from hedgerow.core.predicates.types import Type
from hedgerow.core.predicates.values import Value

_SEED, _WORD = 42, (1 << 64) - 1
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_NUMBER_BYTES = {"tinyint": 4, "smallint": 4, "int": 4, "date": 4, "bigint": 8, "timestamp": 8, "timestamp_ntz": 8}
_MAX_LONG_DIGITS = 18  # Spark keeps a decimal of so many digits as a long


def is_hashable(type_: Type) -> bool:
    """True if equal values of this type always have equal hashes, so not for floats (-0.0), CHAR and collated texts."""
    return type_.name in _NUMBER_BYTES or type_.name in ("string", "binary", "decimal")


def hash_of(type_: Type, value: Value) -> int | None:
    """Return the hash of a column's value, as an unsigned number; None if the type cannot hold the value.

    >>> hash_of(Type("int"), 1) == xxh64((1).to_bytes(4, "little"))
    True
    """
    try:
        return xxh64(_bytes_of(type_, value))
    except (OverflowError, ValueError):  # also a text with half of a surrogate pair
        return None


def _bytes_of(type_: Type, value: Value) -> bytes:
    match type_.name:
        case "string":
            return str(value).encode()
        case "binary":
            return bytes(value)
        case "decimal":
            digits = _without_point(Decimal(value), type_.scale)
            if type_.precision <= _MAX_LONG_DIGITS:
                return digits.to_bytes(8, "little", signed=True)
            is_negative = digits < 0
            return digits.to_bytes((digits + is_negative).bit_length() // 8 + 1, "big", signed=True)
    return int(value).to_bytes(_NUMBER_BYTES[type_.name], "little", signed=True)


def _without_point(value: Decimal, scale: int) -> int:
    """Return the value times 10 ** scale; ValueError if that is no whole number."""
    sign, digits, exponent = value.as_tuple()
    shift = int(exponent) + scale
    number, rest = divmod(int("".join(map(str, digits))) * int(10 ** max(shift, 0)), int(10 ** max(-shift, 0)))
    if rest:
        raise ValueError(f"{value} has more than {scale} digits after the point")
    return -number if sign else number


def xxh64(data: bytes, seed: int = _SEED) -> int:
    """Return the hash of Yann Collet's XXH64 as an unsigned number."""
    at, end = 0, len(data)
    if end >= 32:
        lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
        while at + 32 <= end:
            lanes = [_round(lane, _number(data, at + 8 * i, 8)) for i, lane in enumerate(lanes)]
            at += 32
        h = sum(_turned(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            h = (h ^ _round(0, lane)) * _P1 + _P4
    else:
        h = seed + _P5
    h += end
    while at + 8 <= end:
        h = _turned(h ^ _round(0, _number(data, at, 8)), 27) * _P1 + _P4
        at += 8
    if at + 4 <= end:
        h = _turned(h ^ _number(data, at, 4) * _P1, 23) * _P2 + _P3
        at += 4
    for byte in data[at:]:
        h = _turned(h ^ byte * _P5, 11) * _P1
    h &= _WORD
    h = (h ^ h >> 33) * _P2 & _WORD
    h = (h ^ h >> 29) * _P3 & _WORD
    return h ^ h >> 32


def _round(lane: int, number: int) -> int:
    return _turned(lane + number * _P2, 31) * _P1 & _WORD


def _turned(x: int, bits: int) -> int:
    x &= _WORD
    return (x << bits | x >> 64 - bits) & _WORD


def _number(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")
