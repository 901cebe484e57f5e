"""Woodblock: a policy network grows a tree and learns by trial (Yang et al., SIGMOD 2020, section 5).

`search` is the learner, `episodes` grows many trees in lockstep, `region_bits` describes a node to the network, and
`agent` is the network: the only module that imports JAX.
"""
