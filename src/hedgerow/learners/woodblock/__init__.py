"""Woodblock: Yang et al., SIGMOD 2020, section 5.

In: a `Problem`. Out: a tree of cuts, found by trial and error. Open `woodblock` first; `episodes` grows many trees at
once, `region_bits` describes a node to the network, and `agent` is the network: the only module that imports JAX.
"""
