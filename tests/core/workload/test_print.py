"""A workload in print fits a screen."""

from __future__ import annotations

from hedgerow.sql.workload import Workload


def test_a_large_workload_fits_a_screen() -> None:
    texts = [f"SELECT * FROM web.events WHERE c{n % 40} = {n} AND note LIKE '%{'x' * n}%'" for n in range(400)]
    lines = str(Workload.from_sql([*texts, "DELETE FROM events"])).splitlines()
    assert lines[0] == "400 queries of 41 kinds on web.events"
    assert len(lines) <= 20
    assert all(len(line) <= 100 for line in lines)
    assert lines[-2] == "and 29 kinds more"
    assert lines[-1].startswith("1 remark; the first: query q401 is left out: DELETE")


def test_a_small_workload_is_shown_as_a_whole() -> None:
    workload = Workload.from_sql("SELECT 1; SELECT * FROM a JOIN b ON a.x = b.x WHERE a.y < 4 AND b.z IN (1, 2)")
    assert repr(workload).splitlines() == [
        "2 queries of 2 kinds on a, b",
        "     1  no table",
        "     1  a: y < 4; b: z IN (1, 2)",
    ]


def test_open_conditions_are_shown() -> None:
    workload = Workload.from_sql("SELECT * FROM a WHERE ts > now() - INTERVAL 1 DAY AND x = :x AND y < 3")
    assert repr(workload).splitlines()[1].startswith("     1  a: y < 3; with open values: x = :x AND ts > NOW()")


def test_open_conditions_are_kinds_of_their_own() -> None:
    workload = Workload.from_sql("SELECT * FROM a LIMIT 5; SELECT * FROM a WHERE x = :x; SELECT y FROM a WHERE x = :x")
    assert repr(workload).splitlines() == [
        "3 queries of 2 kinds on a",
        "     2  a: TRUE; with open values: x = :x",
        "     1  a: TRUE",
    ]
