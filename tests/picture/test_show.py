"""The picture of a table says what is so, and is one page that any browser shows."""

from __future__ import annotations

import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.core.predicates.types import Type
from hedgerow.core.pruning.block_stats import UNBOUNDED, Bound, TermStats
from hedgerow.picture.facts import Branch, Kind, Picture, QueryReads
from hedgerow.picture.file_map import file_maps
from hedgerow.picture.show import Shown

ROWS = 2000
CONDITIONS = ["id < 300", "v = 3", "v = 4 AND id >= 1000", "name LIKE '%<b>7%'", "name = '</svg><script>1'"]
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WITHOUT_END = {"meta", "br", "path", "rect"}


class Outline(HTMLParser):
    """The open elements, which have to be closed in turn; all names and links."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: set[str] = set()
        self.links: list[str] = []
        self.text = ""
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in WITHOUT_END:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag in WITHOUT_END or self.open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module", params=["parquet", pytest.param("delta", marks=pytest.mark.long)])
def place(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("shown")
    rows = spark.range(ROWS).selectExpr("id", "id % 7 AS v", "concat('<b>', id % 50) AS name")
    workload = hr.Workload.from_sql([f"SELECT * FROM shown WHERE {c}" for c in CONDITIONS])
    source = str(folder / "source")
    if request.param == "delta":
        request.getfixturevalue("delta")
        rows.write.format("delta").save(source)
    else:
        rows.coalesce(1).write.parquet(source)
    learned = hr.learn(spark, source, workload, options=hr.LearnOptions(block_rows=200), table="shown")
    return hr.apply(spark, source, learned, None if request.param == "delta" else str(folder / "shown")).path


@pytest.fixture(scope="module")
def shown(spark: SparkSession, place: str) -> Shown:
    return hr.show(spark, place, hr.Workload.from_sql([f"SELECT * FROM shown WHERE {c}" for c in CONDITIONS]))


def test_it_says_what_is_so(spark: SparkSession, place: str, shown: Shown) -> None:
    picture, table = shown.picture, hr.table(spark, place)
    assert sum(file.rows for file in picture.files) == ROWS
    opening = sum(bool(q.opened) for q in picture.queries)  # the last one finds nothing, and the index knows that
    assert picture.tree is not None and picture.tree.rows == ROWS and picture.tree.askers.queries == opening
    blocks = _blocks(picture.tree)
    for block in blocks:
        own = {i for i, file in enumerate(picture.files) if f"block {file.block}" == block.text}
        assert set(block.askers.kinds) == {query.text for query in picture.queries if query.opened & own}
    assert any(block.askers.kinds for block in blocks)
    cuts = _cuts(picture.tree)
    for cut in cuts:
        assert cut.yes is not None and cut.no is not None
        on_yes, on_no = (
            {query.text for query in picture.queries if query.opened & _files(side, picture)}
            for side in (cut.yes, cut.no)
        )
        assert {*cut.yes_only.kinds} == on_yes - on_no and {*cut.no_only.kinds} == on_no - on_yes
        assert {*cut.both.kinds} == on_yes & on_no and cut.both.queries == len(on_yes & on_no)
    assert any(cut.yes_only.queries for cut in cuts) and any(cut.no_only.queries for cut in cuts)
    everything = table.read()
    for asked, condition in zip(picture.queries, CONDITIONS, strict=True):
        assert {picture.files[i].name for i in asked.opened} == set(table.files(condition))
        assert asked.rows_read == pytest.approx(sum(picture.files[i].rows for i in asked.opened) / ROWS)
        assert asked.matching == pytest.approx(everything.where(condition).count() / ROWS)
    kinds = {kind.text: kind for kind in picture.kinds}
    assert {len(kind.queries) for kind in kinds.values()} == {1} and len(kinds) == 5  # v = 3 and v = 4 AND ... differ
    assert kinds["id < 300"].files == len(table.files("id < 300")) and not kinds["id < 300"].why_not_fewer
    narrow = dict(picture.narrow)
    assert narrow["v"] < 1 and narrow["id"] < 1


def _blocks(branch: Branch) -> list[Branch]:
    kids = [kid for kid in (branch.yes, branch.no) if kid is not None]
    return [block for kid in kids for block in _blocks(kid)] if kids else [branch]


def _cuts(branch: Branch) -> list[Branch]:
    kids = [kid for kid in (branch.yes, branch.no) if kid is not None]
    return [branch, *(cut for kid in kids for cut in _cuts(kid))] if kids else []


def _files(branch: Branch, picture: Picture) -> set[int]:
    blocks = {block.text for block in _blocks(branch)}
    return {i for i, file in enumerate(picture.files) if f"block {file.block}" in blocks}


def test_boxes_are_where_the_files_values_are(spark: SparkSession, place: str, shown: Shown) -> None:
    (found,) = [own for own in shown.picture.maps if {own.across.column, own.up.column} == {"id", "v"}]
    table = hr.table(spark, place)
    rows = table.read().selectExpr("_metadata.file_name AS file", "id", "v").collect()
    assert len(found.boxes) == len(shown.picture.files)
    for axis, side in ((found.across, "across"), (found.up, "up")):
        ends = {}
        for box in found.boxes:
            own = [row[axis.column] for row in rows if row.file == box.name.rpartition("/")[2]]
            ends |= dict(zip(getattr(box, side), (min(own), max(own)), strict=True))
        ordered = sorted(ends)
        assert [ends[share] for share in ordered] == sorted(set(ends.values()))
        assert ordered == pytest.approx([i / max(1, len(ordered) - 1) for i in range(len(ordered))])
        assert (axis.least, axis.largest) == (str(min(ends.values())), str(max(ends.values())))


def test_files_without_bounds_have_no_box() -> None:
    bounds = [(Bound(1), Bound(5)), None, (UNBOUNDED, UNBOUNDED), (Bound(3), Bound(3))]
    known = TermStats.build(Type("bigint"), bounds, [0] * 4)
    part = known, ["a", "b", "c", "d"]
    (found,) = file_maps({"a", "b", "c"}, {"x": [part], "y": [part], "z": []})
    assert [(box.name, box.across, box.up) for box in found.boxes] == [("a", (0.0, 1.0), (0.0, 1.0))]


def test_kinds_say_why_they_read_most_of_the_table() -> None:
    def of(read: float, match: float | None, *undecided: str) -> str:
        return Kind((QueryReads("x < 1", read, match, frozenset({0}), undecided=undecided),)).why_not_fewer

    assert of(0.5, 0.1) == ""
    assert of(1.0, 0.9) == "nearly all rows match"
    assert of(1.0, None, "f(x) = 1") == "the index has no statistics for f(x) = 1"
    assert of(0.9, 0.1).startswith("matching rows are in most files")
    two = [QueryReads(f"x < {n}", 0.5, 0.25 * n, frozenset(range(n)), kind="x < ?") for n in (1, 2)]
    (kind,) = Picture("t", (), tuple(two), (), None, (), (), ()).kinds
    assert (kind.text, kind.files, kind.rows_read, kind.matching) == ("x < 1", 1.5, 0.5, 0.375)


def test_the_page_is_whole(shown: Shown) -> None:
    outline = Outline(shown.html)
    assert {"svg", "table", "details"} <= outline.names and "script" not in outline.names
    assert not outline.links and "http" not in shown.html
    assert "'</svg><script>1'" in outline.text


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here")
def test_a_browser_shows_it(shown: Shown, tmp_path: Path) -> None:
    shown.save(tmp_path / "page.html")
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"]
    ran = subprocess.run([*command, f"file://{tmp_path}/page.html"], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0 and "CONSOLE" not in ran.stderr
    assert ran.stdout.count("<svg") == 5 + len(shown.picture.maps) and "The tree" in ran.stdout


def test_a_table_without_queries_or_a_tree(spark: SparkSession, tmp_path: Path) -> None:
    source = str(tmp_path / "source")
    spark.range(100).write.parquet(source)
    asked = hr.Workload.from_sql("SELECT * FROM t WHERE id < 10")
    table = hr.apply(
        spark,
        source,
        hr.learn(spark, source, asked, "range", hr.LearnOptions(block_rows=20), table="t"),
        str(tmp_path / "t"),
    )
    shown = hr.show(spark, table.path)
    assert "none were given" in shown.html and Outline(shown.html).names >= {"table"}
    with pytest.raises(hr.HedgerowError, match="cannot be written"):
        shown.save(tmp_path / "nowhere" / "page.html")
