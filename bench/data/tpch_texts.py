"""The 22 queries of TPC-H over its eight tables, with literals drawn by the specification's rules (2.4).

The texts are DuckDB's, with the literals of the validation run; these are replaced by placeholders. For the templates
that also exist on the wide table, `tpch_templates` draws the literals.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date
from functools import cache

from bench.data.duck import texts
from bench.data.tpch_templates import BRANDS, COLOURS, NATIONS, REGIONS, TEMPLATES, TYPES, Literals, months

# For each template: texts of the validation run, and the drawn literals that replace them.
_YEAR = {"1994-01-01": "start", "1995-01-01": "end"}
PLACES: dict[int, dict[str, str]] = {
    1: {"1998-09-02": "day"},
    2: {"p_size = 15": "size", "BRASS": "metal", "EUROPE": "region"},
    3: {"BUILDING": "segment", "1995-03-15": "day"},
    4: {"1993-07-01": "start", "1993-10-01": "end"},
    5: {"ASIA": "region", **_YEAR},
    6: {**_YEAR, "0.05": "low", "0.07": "high", "l_quantity < 24": "quantity"},
    7: {"FRANCE": "one", "GERMANY": "other"},
    8: {"BRAZIL": "nation", "AMERICA": "region", "ECONOMY ANODIZED STEEL": "type"},
    9: {"green": "colour"},
    10: {"1993-10-01": "start", "1994-01-01": "end"},
    11: {"GERMANY": "nation"},
    12: {"MAIL": "one", "SHIP": "other", **_YEAR},
    13: {"special": "one", "requests": "other"},
    14: {"1995-09-01": "start", "1995-10-01": "end"},
    15: {"1996-01-01": "start", "1996-04-01": "end"},
    16: {"Brand#45": "brand", "MEDIUM POLISHED": "kind", "49, 14, 23, 45, 19, 3, 36, 9": "sizes"},
    17: {"Brand#23": "brand", "MED BOX": "container"},
    18: {"> 300": "quantity"},
    19: {
        **{"Brand#12": "brand1", ">= 1 AND l_quantity <= 1 + 10": "between1"},
        **{"Brand#23": "brand2", ">= 10 AND l_quantity <= 10 + 10": "between2"},
        **{"Brand#34": "brand3", ">= 20 AND l_quantity <= 20 + 10": "between3"},
    },
    20: {"forest": "colour", "CANADA": "nation", **_YEAR},
    21: {"SAUDI ARABIA": "nation"},
    22: {"'13', '31', '23', '29', '30', '18', '17'": "codes"},
}
_WORDS = ("special", "pending", "unusual", "express"), ("packages", "requests", "accounts", "deposits")


def _q19(r: random.Random) -> Literals:
    drawn = TEMPLATES[19].draw(r)
    between = {f"between{i}": f">= {drawn[f'low{i}']} AND l_quantity <= {drawn[f'high{i}']}" for i in (1, 2, 3)}
    return {**drawn, **between}


def _q6(r: random.Random) -> Literals:
    drawn = TEMPLATES[6].draw(r)
    return {**drawn, "quantity": f"l_quantity < {drawn['quantity']}"}


def _year(r: random.Random) -> Literals:
    start = r.randrange(1993, 1998)
    return {"start": date(start, 1, 1), "end": date(start + 1, 1, 1)}


DRAWS: dict[int, Callable[[random.Random], Literals]] = {
    **{n: template.draw for n, template in TEMPLATES.items()},
    2: lambda r: {
        **{"size": f"p_size = {r.randrange(1, 51)}", "metal": r.choice(TYPES).split()[2]},
        "region": r.choice(list(REGIONS)),
    },
    6: _q6,
    11: lambda r: {"nation": r.choice(list(NATIONS))},
    13: lambda r: {"one": r.choice(_WORDS[0]), "other": r.choice(_WORDS[1])},
    15: months(date(1993, 1, 1), date(1997, 10, 1), 3),
    16: lambda r: {
        **{"brand": r.choice(BRANDS), "kind": " ".join(r.choice(TYPES).split()[:2])},
        "sizes": ", ".join(map(str, r.sample(range(1, 51), 8))),
    },
    18: lambda r: {"quantity": f"> {TEMPLATES[18].draw(r)['quantity']}"},
    19: _q19,
    20: lambda r: {"colour": r.choice(COLOURS), "nation": r.choice(list(NATIONS)), **_year(r)},
    22: lambda r: {"codes": ", ".join(f"'{c}'" for c in r.sample(range(10, 35), 7))},
}


@cache
def template(n: int) -> str:
    """Return the text with placeholders; raise if a literal is missing, so that changed texts of DuckDB are noticed."""
    text = " ".join(texts("tpch")[n].split()).rstrip(";").replace("{", "{{").replace("}", "}}")
    for literal, place in PLACES[n].items():
        if literal not in text:
            raise ValueError(f"template {n} has no {literal}")
        text = text.replace(literal, f"{{{place}}}")
    return text


def queries(seed: int, per_template: int) -> list[str]:
    """Return queries, one of each template after the other; a larger `per_template` begins with the same ones."""
    sources = {n: random.Random(f"{seed}, template {n} of tables") for n in PLACES}
    return [template(n).format(**DRAWS[n](sources[n])) for _ in range(per_template) for n in PLACES]
