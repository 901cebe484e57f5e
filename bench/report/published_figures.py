"""The figures that the papers published, each with the line of ours to compare; no other module has such figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.options import ALGORITHM_1, BOTTOM_UP, EQUAL_BITS, LEARNED_BITS, TUNED, WOODBLOCK, Case, by_bounds

NEAR = 0.02  # relative difference up to which figures count as equal, because papers give two digits
QDTREE = "Qd-tree, SIGMOD 2020"
ZORDER = "Learned bits, NeurIPS workshop 2023"
PANDO = "Pando, PVLDB 2023"
OF_RANGE = "of_range"  # not a field of lines: blocks that unseen queries read, of those they read of sorted tables
THESIS = "Self-Organizing Data Layouts, thesis 2019, Fig. 6.1"


@dataclass(frozen=True, slots=True)
class Theirs:
    """A figure of a paper: of `suite`, in the field that the suite is judged by, unless `figure` names another.

    `learner` and `params` (`recurrence` and `budget_seconds` apart) say which of our lines is the same method; without
    a learner our best line stands beside it.
    """

    suite: str
    who: str
    value: float
    place: str
    learner: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    figure: str = ""
    note: str = ""


_TABLE_2 = f"{QDTREE}, Table 2"
_WOODBLOCK = "WOODBLOCK"
_ORDERS: tuple[tuple[str, Case], ...] = (
    ("as it came", ("default", {})),
    ("range", ("range", {})),
    ("equal bits", by_bounds(EQUAL_BITS)),
    ("learned bits", by_bounds(LEARNED_BITS)),
)

THEIRS = (
    Theirs("fig3", "greedy", 0.505, f"{QDTREE}, Fig. 3", *ALGORITHM_1),
    Theirs("fig3", _WOODBLOCK, 0.104, f"{QDTREE}, Fig. 3", note="of a draw of their own; see bench/fig3.py"),
    Theirs(
        "fig4", "without overlap", 0.4375, f"{QDTREE}, 6.2", "qdtree", {"overlap": False}, note="3N extra tuples of 4N"
    ),
    Theirs("fig4", "with overlap", 0.25, f"{QDTREE}, 6.2", "qdtree", {"overlap": True}, note="no extra tuples"),
    Theirs("tpch-month", "random", 0.56, _TABLE_2, "random"),
    Theirs("tpch-month", "bottom-up", 0.461, _TABLE_2, *BOTTOM_UP),
    Theirs("tpch-month", "greedy", 0.263, _TABLE_2, *ALGORITHM_1),
    Theirs("tpch-month", _WOODBLOCK, 0.258, _TABLE_2),
    Theirs("tpch-month", "rows that match", 0.213, f"{QDTREE}, 7.2", figure="bound"),
    Theirs("fig8", "greedy", 0.263, _TABLE_2, *ALGORITHM_1),
    Theirs("fig8", _WOODBLOCK, 0.258, _TABLE_2, *WOODBLOCK),
    Theirs("fig8", "rows that match", 0.213, f"{QDTREE}, 7.2", figure="bound"),
    Theirs("errorlog-int", "range", 1.0, _TABLE_2, "range", {"columns": "ingest_time", "index": "bounds"}),
    Theirs("errorlog-int", "bottom-up", 1.0, _TABLE_2, *BOTTOM_UP),
    Theirs("errorlog-int", "bottom-up, tuned", 0.056, _TABLE_2, *TUNED),
    Theirs("errorlog-int", "greedy", 0.031, _TABLE_2, *ALGORITHM_1),
    Theirs("errorlog-int", _WOODBLOCK, 0.004, _TABLE_2),
    Theirs("errorlog-int", "rows that match", 0.000005, f"{QDTREE}, 7.2", figure="bound"),
    Theirs("errorlog-ext", "range", 1.0, _TABLE_2, "range", {"columns": "ingest_time", "index": "bounds"}),
    Theirs("errorlog-ext", "bottom-up", 0.969, _TABLE_2, *BOTTOM_UP),
    Theirs("errorlog-ext", "bottom-up, tuned", 0.122, _TABLE_2, *TUNED),
    Theirs("errorlog-ext", "greedy", 0.017, _TABLE_2, *ALGORITHM_1),
    Theirs("errorlog-ext", _WOODBLOCK, 0.002, _TABLE_2),
    Theirs("errorlog-ext", "rows that match", 0.000697, f"{QDTREE}, 7.2", figure="bound"),
    # Table 1 divided by the rows of the paper's tables.
    *(
        Theirs("zcurves", who, share, f"{ZORDER}, Table 1", learner, {"shape": shape, **params}, note=f"their {shape}")
        for shape, shares in {
            "contributions": (0.899, 0.0862, 0.0967, 0.0694),
            "flights": (0.07, 0.0867, 0.0657, 0.0335),
            "taxi": (0.441, 0.3309, 0.0674, 0.0369),
            "tweets": (0.713, 0.0243, 0.1113, 0.0233),
        }.items()
        for (who, (learner, params)), share in zip(_ORDERS, shares, strict=True)
    ),
    # The thesis has 1 / 3.2 and 1 / (3.2 / 1.5) of the time without anything, inserts and scans together.
    *(
        Theirs("replay", who, value, THESIS, learner, {"history": "constant", **params}, note="time, not rows")
        for who, value, learner, params in (
            ("one manual Z-order", 0.469, "zorder", {"when": "once"}),
            ("automatic", 0.3125, "sop_zorder", {"when": "it pays", "cost": "sop"}),
        )
    ),
    *(
        Theirs(suite, "Pando", 1 / 9.5, f"{PANDO}, 8.3", figure=OF_RANGE, note="at best, of four data sets")
        for suite in ("tpch", "tpcds", "correlated-like")
    ),
    Theirs("prune", "the slowest of 150 queries", 16.0, f"{QDTREE}, Fig. 6b", note="a tree of about 770 blocks"),
    Theirs("route-rows", "on 64 threads", 0.4, f"{QDTREE}, Fig. 6a", note="in Python; ours on 2 cores"),
)

# Table 5.1 of the thesis, by numbers of Z-order and of SOP features: how many times larger one of the estimated and the
# measured skipped bytes is than the other.
SKIPPED_VOLUME = {
    **{(0, 0): 1.02, (0, 4): 1.03, (0, 8): 1.1, (0, 12): 1.44, (1, 0): 1.11, (1, 4): 1.08, (1, 8): 1.11},
    **{(1, 12): 1.32, (2, 0): 1.22, (2, 4): 1.29, (2, 8): 1.29, (2, 12): 1.4, (3, 0): 1.23, (3, 4): 1.37},
    **{(3, 8): 1.29, (3, 12): 1.3},
}
# Chapter 2 of the thesis, on tables of customers, by the names in lines of `workloads`; some are given in words.
OF_WORKLOADS = {
    "queries that filter out more than 75 % of the rows": "50 %",
    "queries that filter out more than 90 % of the rows": "44 %",
    "tables filtered on by one or two expressions": "most",
    "tables with a column in more than half of their queries": "40 %",
    "filtering queries with a condition other than columns compared with literals": "36 %",  # 13.2 of 37.1
    "expressions compared with one literal only": "a striking majority",
    "expressions compared with more than 1,000 literals": "few",
}

# Baselines that we ran ourselves in the same run, as ratios: above 1, Hedgerow is slower.
PEERS = (
    Theirs("apply", "Spark: repartitionByRange, sort, write", 1.0, "the same run"),
    Theirs("attach", "Spark without `attach`", 1.0, "the same run"),
    *(
        Theirs(f"{suite}-physical", "the fastest of the source, sorted Parquet and Delta's two", 1.0, "the same run")
        for suite in ("tpch-month", "errorlog-int", "errorlog-ext", "zcurves", "lineitem")
    ),
)
