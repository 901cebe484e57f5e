"""Figures as readers see them."""

from __future__ import annotations


def shown(figure: str, value: float | None) -> str:
    """Format a value for readers, a share with as many digits as it needs.

    >>> shown("rows_read", 0.50482), shown("rows_read", 0.0000045), shown("ratio", 1.5), shown("p99_ms", 2.5)
    ('50.5 %', '0.00045 %', '1.50×', '2.5 ms')
    """
    if value is None:
        return ""
    if figure == "p99_ms":
        return f"{value:.3g} ms"
    if figure == "ratio":
        return f"{value:.2f}×"
    if figure == "mrows_per_s":
        return f"{value:.3g} M/s"
    if figure == "learn_seconds":
        return f"{value:.3g} s"
    share = 100 * value
    return f"{share:.1f} %" if share >= 1 else f"{float(f'{share:.2g}'):.6f}".rstrip("0").rstrip(".") + " %"
