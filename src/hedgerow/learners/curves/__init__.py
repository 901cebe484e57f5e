"""Curves through the columns that queries filter on: sorts, Z-order, Hilbert, and learned bits (Gao et al., 2023).

In: a `Problem`. Out: a curve, cut into blocks. Open `zorder` first, then `zorder_learned`, which searches for the bits
of each column and their order; `scan_cost` (compiled loops in `scan_kernels`) computes the rows that queries scan in an
order. `range` and `hilbert` are a sort and a Hilbert curve.
"""
