"""The pages of results: one for each paper, and two for what no paper measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.every_suite import SUITES_OF


@dataclass(frozen=True, slots=True)
class Topic:
    """A page with the suites that belong together. `is_paper`: their figures stand beside those of a paper."""

    name: str
    title: str
    about: str
    suites: Sequence[str]
    is_paper: bool = True


TOPICS = (
    Topic(
        "qdtree",
        "Qd-tree",
        "Trees of cuts, grown greedily or by trial (SIGMOD 2020).",
        SUITES_OF["qdtree"],
    ),
    Topic(
        "thesis",
        "Self-organizing data layouts",
        "Skipping-oriented partitions with Z-orders, and when to rewrite (thesis, 2019).",
        SUITES_OF["thesis"],
    ),
    Topic(
        "pando",
        "Pando and MTO",
        "Trees for tables that queries join, and for correlated columns (PVLDB 2023, SIGMOD 2021).",
        SUITES_OF["pando"],
    ),
    Topic(
        "zorder",
        "Learned Z-orders",
        "Orders of bits that are learned from queries (NeurIPS workshop, 2023).",
        SUITES_OF["zorder"],
    ),
    Topic(
        "spark",
        "Seconds and memory on Spark",
        "Written tables of up to 180 million rows, and what each step takes.",
        (
            *("lineitem-physical", "engines", "selective", "selective-lineitem", "selective-physical", "star"),
            *(
                "attach",
                "late-keys",
                "lookups",
                "files",
                "file-sizes",
                "appends",
                "apply",
                "growth",
                "object-store",
                "lineitem",
            ),
        ),
        is_paper=False,
    ),
    Topic(
        "studies",
        "Studies",
        "Each kind of condition by itself, the distance to the best tree, and whether advice comes true.",
        ("kinds", "draws", "best-tree", "two-trees", "regions", "forecast", "advise", "promises"),
        is_paper=False,
    ),
)
