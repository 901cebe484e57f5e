"""The pages say what the lines say, the worst first, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.every_suite import EVERY
from bench.report import older_code
from bench.report import write as report
from bench.report.lines import read
from bench.report.markdown import pages
from bench.report.opening import sentences
from bench.report.page import page
from bench.report.plots import Bar, bars
from bench.report.shown import shown
from bench.report.topics import TOPICS

ALGORITHM_1 = {"form": "quick", "criterion": "skip", "cells": 1, "cuts": "atoms"}


def line(suite: str, read: float, seed: int = 0, **more: object) -> dict[str, object]:
    own = {"suite": suite, "learner": "qdtree", "params": {"form": "quick"}, "rows": 100, "rows_read": read}
    return {**own, "seed": seed, "commit": "abc1234", **more}


def markdown(lines: list[dict[str, object]]) -> str:
    return "\n".join(text for path, text in pages(page(lines)).items() if path.endswith(".md"))


def pictures(lines: list[dict[str, object]]) -> list[str]:
    return [text for path, text in pages(page(lines)).items() if path.endswith(".svg")]


@pytest.mark.parametrize("suite", EVERY)
def test_each_suite_has_a_section_on_one_page(suite: str) -> None:
    found = pages(page([line(suite, 0.2, **{EVERY[suite].figure: 0.25})]))
    (topic,) = [topic for topic in TOPICS if suite in topic.suites]
    text = found[f"results/{topic.name}.md"]
    assert f"## {suite}\n" in text and shown(EVERY[suite].figure, 0.25) in text
    assert f"(results/{topic.name}.md)" in found["results.md"]


def test_a_picture_of_each_table() -> None:
    lines = [line("zcurves", read, params={"shape": shape}) for shape, read in (("flights", 0.3), ("taxi", 0.2))]
    lines += [line("best-tree", 0.25, sf=sf, rows=rows) for sf, rows in ((1.0, 100), (10.0, 1000))]
    found = pages(page(lines))
    drawn = {path: text for path, text in found.items() if "-1.svg" in path or "-2.svg" in path}
    assert "zcurves, flights, 100 rows: rows read" in drawn["results/pictures/zcurves-1.svg"]
    assert "zcurves, taxi, 100 rows: rows read" in drawn["results/pictures/zcurves-2.svg"]
    assert "best-tree, SF 10, 1,000 rows: rows read" in drawn["results/pictures/best-tree-2.svg"]
    assert "![zcurves, taxi, 100 rows: rows read](pictures/zcurves-2.svg)" in found["results/zorder.md"]
    assert drawn["results/pictures/zcurves-1.svg"].count("30.0 %</text>") == 1


def test_a_curve_of_each_seed_in_the_colour_of_its_method() -> None:
    curve = [[1.0, 32, 0.5, 0.4], [10.0, 320, 0.3, 0.35]]  # where cells are joined the best may read more
    lines = [line("fig8", 0.3, seed, curve=curve, params={"cells": cells}) for cells in (1, 6) for seed in (0, 1, 2)]
    (svg,) = [svg for svg in pictures(lines) if "the best tree reads" in svg]
    ElementTree.fromstring(svg)
    assert svg.count("<polyline") == 12
    ends = {part.split('"')[1].split()[-1] for part in svg.split("points=")[1:]}
    assert ends == {"770.0,166.0", "770.0,140.0"}  # 30 and 35 of at most 50 % above a bottom of 322
    assert len({part.split('"')[0] for part in svg.split("<polyline")[1:] for part in part.split('stroke="')[1:2]}) == 2


def test_trees_a_second_stand_beside_the_seconds() -> None:
    lines = [line("fig8", 0.3, seed, fit_seconds=300.0, trees_per_s=rate) for seed, rate in enumerate((20.0, 30.0))]
    assert "| 300.0 s, 25 trees/s |" in markdown(lines)


def test_medians_over_seeds_with_their_spread() -> None:
    lines = [line("fig3", read, seed) for seed, read in enumerate((0.2, 0.1, 0.4))]
    (row,) = page(lines).sections[0].rows
    assert (row.value, row.spread, row.seeds) == (0.2, (0.1, 0.4), 3)
    assert "20.0 % [10.0, 40.0]" in markdown(lines)


def test_the_same_method_stands_beside_theirs() -> None:
    subtrees = {**ALGORITHM_1, "cuts": "atoms+subtrees"}
    lines = [line("fig3", 0.6, params=ALGORITHM_1), line("fig3", 0.11, params=subtrees), line("fig3", 0.12)]
    greedy, woodblock = page(lines).sections[0].beside
    assert (greedy.value, woodblock.value) == (0.6, 0.11)
    assert greedy.worse == pytest.approx(0.6 / 0.505 - 1)


def test_of_the_papers_what_is_worse_comes_first_and_the_worst_of_it_at_the_top() -> None:
    lines = [line("errorlog-int", 0.5), line("fig3", 0.2), line("errorlog-ext", 0.001)]
    text = markdown(lines)
    said = text[text.index("## Beside the paper,") : text.index("In the pictures")].splitlines()
    ours = [s.split(" | ") for s in said if "qd-tree" in s]
    assert [cells[0] for cells in ours] == ["| errorlog-int", "| fig3", "| errorlog-ext"]
    assert ours[0][1:5] == ["WOODBLOCK", "0.4 %", "qd-tree", "50.0 %"]


def test_gains_come_first_the_largest_at_the_top() -> None:
    """Ours is the default, not what was made for the queries learned from; both others count."""

    def read(suite: str, learner: str, unseen: float, **params: object) -> dict[str, object]:
        return line(suite, 0.01, learner=learner, params={"form": "full", **params}, rows_read_unseen=unseen)

    lines = [
        *(read("tpcds", name, unseen) for name, unseen in (("range", 0.9), ("mto", 0.3), ("pando", 0.2))),
        read("tpcds", "qdtree", 0.8, criterion="skip", cells=1, recurrence=1, cuts="atoms"),
        read("tpcds", "mto", 0.6, criterion="skip", cells=1, recurrence=1, cuts="atoms"),
        *(read("tpch", name, unseen) for name, unseen in (("range", 0.6), ("qdtree", 0.1))),
        read("tpcds", "qdtree", 0.01, recurrence=1),
        *(read("zcurves", "zorder", share, shape=shape) for shape, share in (("taxi", 0.2), ("flights", 0.3))),
        read("zcurves", "zorder_learned", 0.15, shape="taxi"),
    ]
    gains = {(g.suite, g.table): round(g.times, 2) for g in page(lines).gains}
    assert gains == {("tpch", "100 rows"): 6.0, ("tpcds", "100 rows"): 3.0, ("zcurves", "taxi, 100 rows"): 1.33}
    text = markdown(lines)
    assert text.index("## Rows read") == text.index("## ")
    assert (
        "| tpcds, 100 rows | 90.0 % (sorted) | 80.0 % (greedy qd-tree, as published) "
        "| 60.0 % (MTO, by sampled rows, our index) | **20.0 % (Pando)** | 3.00×" in text
    )
    assert text.index("| tpch, 100 rows") < text.index("| tpcds, 100 rows") < text.index("| zcurves, taxi")


def test_kinds_of_conditions_by_learners() -> None:
    reads = {("LIKE", "range"): 1.0, ("LIKE", "qdtree"): 0.5, ("equal", "range"): 0.25, ("equal", "qdtree"): 0.125}
    lines = [
        line("kinds", 0.1, learner=learner, params={"conditions": kind}, rows_read_unseen=read, bound_unseen=0.01)
        for (kind, learner), read in reads.items()
    ]
    text = markdown(lines)
    assert "| conditions, all unseen | sorted | qd-tree | rows that match |" in text
    assert "| LIKE | 100.0 % | 50.0 % | 1.0 % |\n| equal | 25.0 % | 12.5 % | 1.0 % |" in text
    assert not page(lines).gains


def test_seconds_stand_beside_the_fastest_peer() -> None:
    seconds = {"source": 9.0, "sorted": 4.0, "zorder": 3.0, "routed": 0.5, "attached": 2.0}
    rows = {"faster_than_source": {}, "seconds": seconds}
    lines = [line("lineitem-physical", 0.5, ratio=0.7, details=rows)]
    assert "| lineitem, 100 rows | 9.0 s | 3.0 s (ZORDER) | **2.0 s** (qd-tree) | abc1234 |" in markdown(lines)
    slower = [line("lineitem-physical", 0.5, ratio=0.7, details={**rows, "seconds": {**seconds, "attached": 3.5}})]
    assert "In 1 of 1 runs over written tables another layout is faster: lineitem, 100 rows." in sentences(page(slower))
    assert "In 0 of 1 runs over written tables another layout is faster." in sentences(page(lines))


def test_the_opening_has_the_seconds_of_large_tables() -> None:
    seconds = {"source": 9.0, "sorted": 4.0, "zorder": 3.0, "ours": 1.0, "attached": 0.5}
    params = {"form": "full", "engine": "spark"}
    lines = [
        line(name, 0.5, ratio=0.1, params=params, details={"seconds": seconds}) for name in ("engines", "selective")
    ]
    assert "take 0.5 and 0.5 s with Hedgerow, and 3.0 and 3.0 s on the best other" in sentences(page(lines))[0]
    drawn = pages(page(lines))["results/pictures/seconds.svg"]
    assert drawn.count(">0.5 s</text>") == 2 and "1.0 s" not in drawn  # the same files without us are no other layout


def test_more_is_better_for_speed() -> None:
    def speed(found: float) -> float:
        return page([line("route-rows", 0, mrows_per_s=found, ratio=1.0)]).sections[0].beside[0].worse

    assert (speed(0.8), speed(0.1)) == (0.0, pytest.approx(3.0))


def test_a_peer_in_the_same_run_counts() -> None:
    apply = page(
        [line("apply", 0.5, ratio=1.5, apply_seconds=[3.0, 1.0]), line("apply", 0.5, ratio=0.9, learner="range")]
    )
    ((_, beside),) = apply.slower
    assert (beside.worse, beside.value) == (0.5, 1.5)


def test_of_sizes_the_worst_counts_and_of_its_lines_the_best() -> None:
    lines = [line("tpch-month", read, sf=sf, learner="bottom_up") for sf, read in ((1, 0.3), (10, 0.25), (10, 0.28))]
    found = {b.theirs.who: b for b in page(lines).sections[0].beside}["WOODBLOCK"]
    assert found.value == 0.3 and found.worse == pytest.approx(0.3 / 0.258 - 1)


def test_what_is_of_sorted_tables_is_of_those_of_the_same_size() -> None:
    def reads(learner: str, blocks: float, sf: int) -> dict[str, object]:
        return line("tpch", 0.5, learner=learner, sf=sf, blocks_read_unseen=blocks)

    held = [reads("range", 0.8, 1), reads("qdtree", 0.4, 1), reads("range", 0.5, 10), reads("qdtree", 0.3, 10)]
    found = page(held).sections[0].beside[0]
    assert found.value == 0.6 and found.ours is not None and "SF 10," in found.ours.size
    assert "blocks that unseen queries read" in markdown(held)


def test_the_full_form_goes_before_the_quick_one() -> None:
    found = page([line("fig3", 0.3), line("fig3", 0.2, params={"form": "full"})])
    assert [row.value for row in found.sections[0].rows] == [0.2]
    assert "fig4" in found.missing and "fig3" not in found.missing


def test_a_line_of_no_suite_is_refused() -> None:
    with pytest.raises(SystemExit, match="fig99"):
        page([line("fig99", 0.3)])


def test_a_changed_line_is_noticed(tmp_path: Path) -> None:
    lines = tmp_path / "a.jsonl"
    lines.write_text(json.dumps(line("fig3", 0.3)) + "\n")
    folders = ["--lines", str(tmp_path), "--to", str(tmp_path)]
    report.main(folders)
    report.main(["--check", *folders])
    lines.write_text(json.dumps(line("fig3", 0.31)) + "\n")
    with pytest.raises(SystemExit, match=r"results/pictures/.*results/qdtree\.md"):
        report.main(["--check", *folders])
    report.main(folders)
    (tmp_path / "results" / "pictures" / "of-old.svg").write_text("by hand")
    with pytest.raises(SystemExit, match=r"of-old\.svg"):
        report.main(["--check", *folders])
    report.main(folders)
    report.main(["--check", *folders])


def test_lines_of_changed_learners_are_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = "src/hedgerow/learners/qdtree/qdtree.py"
    monkeypatch.setattr(older_code, "_present", lambda: {file: "same" for file in older_code._files("qdtree")})
    then = {"old": {learner: "other"}, "new": {}, "gone": {}}
    for commit in ("old", "new"):
        then[commit] = {**older_code._present(), **then[commit]}
    monkeypatch.setattr(older_code, "_committed", then.__getitem__)
    assert learner in older_code._files("qdtree") and "src/hedgerow/core/learning/trees/greedy.py" in older_code._files(
        "qdtree"
    )
    file = tmp_path / "a.jsonl"
    lines = [line("fig3", 0.3, seed, commit=commit) for seed, commit in enumerate(("old", "new+", "gone"))]
    lines.append(line("apply", 0.3, learner="", commit="old"))
    file.write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    folders = ["--lines", str(tmp_path), "--to", str(tmp_path)]
    with pytest.raises(SystemExit, match="the code of qdtree has changed since 1 lines"):
        report.main(["--check", *folders])
    report.main(folders)
    report.main(["--check", *folders])
    assert [one.get("older") for one in read([file])] == [True, None, None, None]
    assert "| old†, new+, gone |" in (tmp_path / "results" / "qdtree.md").read_text()


def test_no_line_at_all_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"seed": 1}\n')
    with pytest.raises(SystemExit, match="line 1"):
        report.main(["--lines", str(tmp_path), "--to", str(tmp_path)])


def test_the_pages_of_the_repository_are_what_its_lines_say() -> None:
    assert list(report.LINES.glob("*.jsonl"))
    report.main(["--check"])


def test_pictures_are_drawings(tmp_path: Path) -> None:
    drawn = pages(page([line("errorlog-int", 0.02, rows_read_unseen=0.05, bound=0.00001)]))
    drawing = ElementTree.fromstring(drawn["results/pictures/errorlog-int-1.svg"])
    names = [t.text for t in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert names[0] == "errorlog-int, 100 rows: rows read (logarithmic)"
    assert {"qd-tree", "on unseen queries", "greedy (Qd-tree, SIGMOD 2020, Table 2)"} <= set(names)


def test_bars_are_as_long_as_their_values() -> None:
    drawing = ElementTree.fromstring(bars("<&>", [Bar("a", 1, "1", "ours"), Bar("b", 4, "4", "theirs", mark=2)]))
    short, long = (
        float(r.attrib["width"]) for r in drawing.iter("{http://www.w3.org/2000/svg}rect") if "y" in r.attrib
    )
    assert long == pytest.approx(4 * short, abs=0.2)


def test_shares_keep_their_digits() -> None:
    assert [shown("rows_read", v) for v in (None, 1.0, 0.0123, 0.00697, 0.0000052)] == [
        "",
        "100.0 %",
        "1.2 %",
        "0.7 %",
        "0.00052 %",
    ]
