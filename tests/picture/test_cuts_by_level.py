"""Fig. 9 of the qd-tree paper: cuts by level, an advanced cut counted once, and the chart that shows them."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.resources import files

from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.predicates.nodes import Compare, CompareTerms, In, Like, col, lit
from hedgerow.picture.charts import MOST_NAMES, stacked_levels
from hedgerow.picture.cuts_by_level import cuts_by_level, totals
from hedgerow.picture.facts import Askers, Branch, Picture
from hedgerow.picture.page import page
from tests.picture.test_show import Outline

TREE = TreeLayout(
    (
        CompareTerms(col("c_nation"), "=", col("s_nation")),
        Compare(col("price"), "<", lit(3)),
        In(col("price"), (lit(7), lit(9))),
        Like(col("name"), "%green%"),
    ),
    ((0, 1, 2), (1, 3, ~0), (2, ~1, ~2), (3, ~3, ~4)),
)


def test_an_advanced_cut_counts_once() -> None:
    advanced = "c_nation = s_nation"
    levels = cuts_by_level(TREE)
    assert levels == [{advanced: 1}, {"price": 2}, {"(name LIKE '%green%')": 1}]
    assert totals(levels) == {"price": 2, advanced: 1, "(name LIKE '%green%')": 1}
    assert cuts_by_level(TreeLayout((), ())) == []


def test_the_chart_has_a_part_for_each_name_of_a_level() -> None:
    levels = [{"a": 1}, {"a": 1, "b<": 3}]
    chart = stacked_levels(levels, ["a"])
    heights = {kind: float(height) for kind, height in re.findall(r'rect class="(\w+)"[^/]*height="([\d.]+)"', chart)}
    assert chart.count("<rect") == 3 and set(heights) == {"name0", "others"}
    assert heights["others"] == 3 * heights["name0"]
    assert "level 2: 3 of others" in chart and "b<" not in chart


def test_the_page_shows_the_chart_and_the_numbers() -> None:
    levels = tuple(cuts_by_level(TREE))
    picture = Picture("t", (), (), (), Branch("price < 3", 1, Askers()), levels, (), ())
    outline = Outline(page(picture))
    assert "svg" in outline.names and "price (2)" in outline.text and "c_nation = s_nation (1)" in outline.text
    many = tuple({f"column{i}": 1} for i in range(MOST_NAMES + 2))
    assert "2 others (2)" in Outline(page(replace(picture, levels=many))).text


def test_each_name_has_a_colour() -> None:
    text = files("hedgerow.picture").joinpath("style.css").read_text("utf-8")
    assert all(f"svg .name{i} " in text and f".key.name{i} " in text for i in range(MOST_NAMES))
    assert f"name{MOST_NAMES}" not in text
