"""Fifteen TPC-H templates as questions to one wide table, with literals drawn by the specification's rules (2.4).

The wide table `tpch` is lineitem joined with everything it refers to, so joins vanish from the texts: nations and
regions are columns (`c_nation`, `s_region`). On the whole table thirteen give the answer of TPC-H's own text. The other
two would have to look at the table again; their texts stop at the rows that TPC-H's would go on with:

    17  less than a fifth of the part's average     the averages need all lines of that brand and container
    21  late, and no other supplier was             the late lines of that nation's suppliers
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta

Literals = Mapping[str, object]

_COLOURS = """
almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished chartreuse chiffon
chocolate coral cornflower cornsilk cream cyan dark deep dim dodger drab firebrick floral forest frosted gainsboro
ghost goldenrod green grey honeydew hot indian ivory khaki lace lavender lawn lemon light lime linen magenta maroon
medium metallic midnight mint misty moccasin navajo navy olive orange orchid pale papaya peach peru pink plum powder
puff purple red rose rosy royal saddle salmon sandy seashell sienna sky slate smoke snow spring steel tan thistle
tomato turquoise violet wheat white yellow
"""
COLOURS = tuple(_COLOURS.split())
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
MODES = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
REGIONS = {
    "AFRICA": ("ALGERIA", "ETHIOPIA", "KENYA", "MOROCCO", "MOZAMBIQUE"),
    "AMERICA": ("ARGENTINA", "BRAZIL", "CANADA", "PERU", "UNITED STATES"),
    "ASIA": ("CHINA", "INDIA", "INDONESIA", "JAPAN", "VIETNAM"),
    "EUROPE": ("FRANCE", "GERMANY", "ROMANIA", "RUSSIA", "UNITED KINGDOM"),
    "MIDDLE EAST": ("EGYPT", "IRAN", "IRAQ", "JORDAN", "SAUDI ARABIA"),
}
NATIONS = {nation: region for region, nations in REGIONS.items() for nation in nations}
TYPES = tuple(
    f"{a} {b} {c}"
    for a in ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO")
    for b in ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED")
    for c in ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER")
)
CONTAINERS = tuple(
    f"{a} {b}"
    for a in ("SM", "LG", "MED", "JUMBO", "WRAP")
    for b in ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM")
)
BRANDS = tuple(f"Brand#{m}{n}" for m in range(1, 6) for n in range(1, 6))

_VALUE = "l_extendedprice * (1 - l_discount)"
_LATE = "l_commitdate < l_receiptdate"


@dataclass(frozen=True, slots=True)
class Template:
    """`SELECT what FROM tpch WHERE where rest`, with places for the literals that `draw` gives."""

    draw: Callable[[random.Random], Literals]
    what: str
    where: str
    rest: str = ""

    def condition(self, literals: Literals) -> str:
        return self.where.format(**literals) or "TRUE"

    def text(self, literals: Literals) -> str:
        condition = f" WHERE {self.condition(literals)}" if self.where else ""
        return f"SELECT {self.what} FROM tpch{condition} {self.rest}".format(**literals).rstrip()


def months(first: date, last: date, length: int) -> Callable[[random.Random], Literals]:
    """Return a function that draws `length` whole months, the first between `first` and `last`; `end` is exclusive."""

    def drawn(r: random.Random) -> Literals:
        start = r.randrange(_month(first), _month(last) + 1)
        return {"start": _first_day(start), "end": _first_day(start + length)}

    return drawn


def _month(day: date) -> int:
    return day.year * 12 + day.month - 1


def _first_day(month: int) -> date:
    return date(month // 12, month % 12 + 1, 1)


def _year(r: random.Random) -> Literals:
    start = r.randrange(1993, 1998)
    return {"start": date(start, 1, 1), "end": date(start + 1, 1, 1)}


def _q3(r: random.Random) -> Literals:
    return {"segment": r.choice(SEGMENTS), "day": date(1995, 3, r.randrange(1, 32))}


def _q6(r: random.Random) -> Literals:
    discount = r.randrange(2, 10)
    bounds = {"low": f"0.{discount - 1:02}", "high": f"0.{discount + 1:02}"}
    return {**_year(r), **bounds, "quantity": r.randrange(24, 26)}


def _q7(r: random.Random) -> Literals:
    first, second = r.sample(list(NATIONS), 2)
    return {"one": first, "other": second}


def _q8(r: random.Random) -> Literals:
    nation = r.choice(list(NATIONS))
    return {"nation": nation, "region": NATIONS[nation], "type": r.choice(TYPES)}


def _q12(r: random.Random) -> Literals:
    first, second = r.sample(MODES, 2)
    return {"one": first, "other": second, **_year(r)}


def _q19(r: random.Random) -> Literals:
    literals: dict[str, object] = {}
    for i, (low, high) in enumerate(((1, 10), (10, 20), (20, 30)), 1):
        least = r.randrange(low, high + 1)
        literals |= {f"brand{i}": r.choice(BRANDS), f"low{i}": least, f"high{i}": least + 10}
    return literals


def _part(i: int, containers: str, size: int) -> str:
    """Return the condition for one of the three kinds of parts in template 19."""
    listed = ", ".join(f"'{c}'" for c in containers.split(", "))
    return (
        f"(p_brand = '{{brand{i}}}' AND p_container IN ({listed}) AND l_quantity >= {{low{i}}} "
        f"AND l_quantity <= {{high{i}}} AND p_size BETWEEN 1 AND {size} AND l_shipmode IN ('AIR', 'AIR REG') "
        "AND l_shipinstruct = 'DELIVER IN PERSON')"
    )


_ORDERED = "o_orderdate >= DATE '{start}' AND o_orderdate < DATE '{end}'"
_SHIPPED = "l_shipdate >= DATE '{start}' AND l_shipdate < DATE '{end}'"
_TWO_YEARS = "BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'"

TEMPLATES: dict[int, Template] = {
    1: Template(
        lambda r: {"day": date(1998, 12, 1) - timedelta(days=r.randrange(60, 121))},
        "l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), "
        f"sum({_VALUE}), sum({_VALUE} * (1 + l_tax)), avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*)",
        "l_shipdate <= DATE '{day}'",
        "GROUP BY l_returnflag, l_linestatus",
    ),
    3: Template(
        _q3,
        f"l_orderkey, sum({_VALUE}), o_orderdate, o_shippriority",
        "c_mktsegment = '{segment}' AND o_orderdate < DATE '{day}' AND l_shipdate > DATE '{day}'",
        "GROUP BY l_orderkey, o_orderdate, o_shippriority",
    ),
    4: Template(
        months(date(1993, 1, 1), date(1997, 10, 1), 3),
        "o_orderpriority, count(DISTINCT o_orderkey)",
        f"{_ORDERED} AND {_LATE}",
        "GROUP BY o_orderpriority",
    ),
    5: Template(
        lambda r: {"region": r.choice(list(REGIONS)), **_year(r)},
        f"s_nation, sum({_VALUE})",
        f"c_nationkey = s_nationkey AND s_region = '{{region}}' AND {_ORDERED}",
        "GROUP BY s_nation",
    ),
    6: Template(
        _q6,
        "sum(l_extendedprice * l_discount)",
        f"{_SHIPPED} AND l_discount BETWEEN {{low}} AND {{high}} AND l_quantity < {{quantity}}",
    ),
    7: Template(
        _q7,
        f"s_nation, c_nation, extract(YEAR FROM l_shipdate), sum({_VALUE})",
        "((s_nation = '{one}' AND c_nation = '{other}') OR (s_nation = '{other}' AND c_nation = '{one}')) "
        f"AND l_shipdate {_TWO_YEARS}",
        "GROUP BY s_nation, c_nation, extract(YEAR FROM l_shipdate)",
    ),
    8: Template(
        _q8,
        "extract(YEAR FROM o_orderdate), "
        f"sum(CASE WHEN s_nation = '{{nation}}' THEN {_VALUE} ELSE 0 END) / sum({_VALUE})",
        f"c_region = '{{region}}' AND o_orderdate {_TWO_YEARS} AND p_type = '{{type}}'",
        "GROUP BY extract(YEAR FROM o_orderdate)",
    ),
    9: Template(
        lambda r: {"colour": r.choice(COLOURS)},
        f"s_nation, extract(YEAR FROM o_orderdate), sum({_VALUE} - ps_supplycost * l_quantity)",
        "p_name LIKE '%{colour}%'",
        "GROUP BY s_nation, extract(YEAR FROM o_orderdate)",
    ),
    10: Template(
        months(date(1993, 2, 1), date(1995, 1, 1), 3),
        f"c_custkey, c_name, sum({_VALUE}), c_acctbal, c_nation, c_address, c_phone, c_comment",
        f"{_ORDERED} AND l_returnflag = 'R'",
        "GROUP BY c_custkey, c_name, c_acctbal, c_phone, c_nation, c_address, c_comment",
    ),
    12: Template(
        _q12,
        "l_shipmode, sum(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END), "
        "sum(CASE WHEN o_orderpriority NOT IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END)",
        f"l_shipmode IN ('{{one}}', '{{other}}') AND {_LATE} AND l_shipdate < l_commitdate "
        "AND l_receiptdate >= DATE '{start}' AND l_receiptdate < DATE '{end}'",
        "GROUP BY l_shipmode",
    ),
    14: Template(
        months(date(1993, 1, 1), date(1997, 12, 1), 1),
        f"100.00 * sum(CASE WHEN p_type LIKE 'PROMO%' THEN {_VALUE} ELSE 0 END) / sum({_VALUE})",
        _SHIPPED,
    ),
    17: Template(
        lambda r: {"brand": r.choice(BRANDS), "container": r.choice(CONTAINERS)},
        "l_partkey, avg(l_quantity), sum(l_extendedprice)",
        "p_brand = '{brand}' AND p_container = '{container}'",
        "GROUP BY l_partkey",
    ),
    18: Template(
        lambda r: {"quantity": r.randrange(312, 316)},
        "c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity)",
        "",
        "GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice HAVING sum(l_quantity) > {quantity}",
    ),
    19: Template(
        _q19,
        f"sum({_VALUE})",
        " OR ".join(
            (
                _part(1, "SM CASE, SM BOX, SM PACK, SM PKG", 5),
                _part(2, "MED BAG, MED BOX, MED PKG, MED PACK", 10),
                _part(3, "LG CASE, LG BOX, LG PACK, LG PKG", 15),
            )
        ),
    ),
    21: Template(
        lambda r: {"nation": r.choice(list(NATIONS))},
        "s_name, l_orderkey, l_suppkey",
        f"s_nation = '{{nation}}' AND o_orderstatus = 'F' AND {_LATE}",
    ),
}


# In the qd-tree paper, 21.3 % of the rows match (7.2). That comes out if template 9 has no condition, so that templates
# 1, 9 and 18 read everything.
PAPERS = TEMPLATES | {9: replace(TEMPLATES[9], where="")}


def queries(seed: int, per_template: int, templates: Mapping[int, Template] = TEMPLATES) -> list[tuple[str, str]]:
    """Return template and SQL text of queries, one of each template after the other.

    A larger `per_template` with the same seed begins with the same queries.
    """
    return [(str(n), templates[n].text(literals)) for n, literals in _drawn(seed, per_template)]


def conditions(seed: int, per_template: int, templates: Mapping[int, Template] = TEMPLATES) -> list[str]:
    """Return the condition of each of the `queries`."""
    return [templates[n].condition(literals) for n, literals in _drawn(seed, per_template)]


def _drawn(seed: int, per_template: int) -> list[tuple[int, Literals]]:
    sources = {n: random.Random(f"{seed}, template {n}") for n in TEMPLATES}
    return [(n, TEMPLATES[n].draw(sources[n])) for _ in range(per_template) for n in TEMPLATES]
