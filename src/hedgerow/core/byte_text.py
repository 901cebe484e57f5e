"""Writes a number of bytes as a text."""

from __future__ import annotations


def byte_text(count: float) -> str:
    """
    >>> byte_text(900), byte_text(5_400_000), byte_text(7 << 40)
    ('900 B', '5.1 MB', '7,168.0 GB')
    """
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count:,.0f} B"
