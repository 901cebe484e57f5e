"""TPC-H's 22 texts are drawn by the specification's rules, are the same everywhere, and run."""

from __future__ import annotations

import random

from bench.data.duck import connection
from bench.data.tpch_templates import NATIONS, TEMPLATES
from bench.data.tpch_texts import DRAWS, PLACES, queries, template
from hedgerow.sql.workload import Workload
from tests.support.digest import digest


def test_every_template_is_drawn() -> None:
    assert sorted(PLACES) == sorted(DRAWS) == list(range(1, 23))
    for n, places in PLACES.items():
        drawn = DRAWS[n](random.Random(0))
        assert set(places.values()) <= set(drawn), n
        assert all(f"{{{place}}}" in template(n) for place in places.values()), n


def test_the_same_everywhere() -> None:
    asked = queries(0, 3)
    assert len(asked) == 66
    assert queries(0, 1) == asked[:22]
    assert asked[:22] != asked[22:44]
    assert digest("\n".join(asked[:22])) == "f3f3ec73862e347a"


def test_literals_lie_where_the_specification_wants_them() -> None:
    for seed in range(200):
        r = random.Random(seed)
        codes = DRAWS[22](r)["codes"]
        assert isinstance(codes, str)
        found = [int(c.strip("'")) for c in codes.split(", ")]
        assert len(set(found)) == 7 and min(found) >= 10 and max(found) <= 34
        sizes = str(DRAWS[16](r)["sizes"]).split(", ")
        assert len(set(sizes)) == 8 and all(1 <= int(s) <= 50 for s in sizes)
        month = DRAWS[15](r)["start"]
        assert "1993-01-01" <= str(month) <= "1997-10-01" and str(month).endswith("-01")
        assert DRAWS[11](r)["nation"] in NATIONS
        year = DRAWS[20](r)
        assert str(year["start"])[4:] == str(year["end"])[4:] == "-01-01"
        assert int(str(year["end"])[:4]) - int(str(year["start"])[:4]) == 1
        assert 24 <= int(str(DRAWS[6](r)["quantity"]).split()[-1]) <= 25


def test_texts_run_and_are_understood() -> None:
    con = connection("tpch")
    con.execute("CALL dbgen(sf=0.001)")
    asked = queries(1, 1)
    for text in asked:
        con.execute(text).fetchall()
    workload = Workload.from_sql(asked)
    assert not workload.skipped
    assert len(workload.tables()) == 8
    assert set(TEMPLATES) < set(PLACES)
