"""The seconds that the README and the page of comparisons show are those of lines in `bench/results`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
LINES = [json.loads(line) for line in (ROOT / "bench/results/full.jsonl").read_text().splitlines()]
COLUMNS = {  # of the page's table: suite, engine, commit
    "ranges": ("engines", "spark", "8f8f8fe"),
    "Comet": ("engines", "comet", "8f8f8fe"),
    "lineitem, dashboards": ("selective-lineitem", "spark", "88640b39"),
    "web log": ("selective", "spark", "0b73f45"),
}
ROWS = {
    "as it came": "source",
    "again, by Spark": "again",
    "the same rows written by Spark": "again",
    "sorted by hand": "sorted",
    "Delta's ZORDER": "zorder",
    "liquid clustering": "clustering",
    "Hedgerow's files, without skipping": "ours",
    "Hedgerow, attached": "attached",
    "Hedgerow": "attached",
}


def details(suite: str, engine: str, commit: str) -> Any:
    (found,) = (
        line["details"]
        for line in LINES
        if (line["suite"], line["params"].get("engine"), line["commit"]) == (suite, engine, commit)
    )
    return found


@pytest.mark.parametrize("page", ["README.md", "docs/guide/comparisons.md"])
def test_seconds(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    (table,) = re.findall(r"^(\| \| .*ranges.*\n(?:\|.*\n)+)", text, re.M)
    titles, _, *rows = ([cell.strip(" *") for cell in row.split("|")[1:-1]] for row in table.splitlines())
    assert len(rows) >= 6
    for column, title in list(enumerate(titles))[1:]:
        (of,) = (of for part, of in COLUMNS.items() if part in title)
        seconds = details(*of)["seconds"]
        for name, *_ in rows:
            way = ROWS[name]
            shown = next(row for row in rows if row[0] == name)[column]
            assert (shown == "") == (way not in seconds), (title, name)
            assert not shown or float(shown) == pytest.approx(seconds[way], abs=0.06), (title, name)


def test_kinds_where_a_peer_is_faster() -> None:
    text = (ROOT / "docs/guide/comparisons.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+) \| .+: ([\d.]+) s \| ([\d.]+) s \|", text, re.M)
    shown = {kind.removeprefix("lineitem, "): (float(peer), float(ours)) for kind, peer, ours in rows}
    faster, kinds = {}, 0
    for suite, engine, commit in COLUMNS.values():
        if engine == "spark":
            for kind, ms in details(suite, engine, commit)["kind_ms"].items():
                kinds += 1
                peer = min(time for way, time in ms.items() if way not in ("ours", "attached"))
                if peer < ms["attached"]:
                    faster[kind] = pytest.approx((peer / 1000, ms["attached"] / 1000), abs=0.006)
    assert shown == faster
    assert (len(faster), kinds) == (9, 30)  # as the README says
