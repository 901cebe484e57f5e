"""Random conditions: typed terms, literals in every way to write them, atoms, and combinations with known truth."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

Truth = bool | None
OPS = ("=", "<", "<=", ">", ">=", "<>", "!=", "<=>", "==")
ZONES = ("UTC", "WET", "Europe/Amsterdam", "America/New_York", "Asia/Kathmandu", "Africa/Monrovia", "MET", "Asia/Tokyo")


@dataclass(frozen=True, slots=True)
class Source:
    """A column as conditions see it: how it is written, the group of its type, and literals it may equal."""

    sql: str
    group: str
    pool: tuple[str, ...] = ()


# Expressions by the group of their result; {group} stands for a term of that group.
TERMS: dict[str, tuple[str, ...]] = {
    "int": (
        "{int} % 7", "{int} + 3", "abs({int})", "-{int}", "{int} * {int}", "length({string})", "size({ints})", "size({ints})", "size({map})", "size({strings})",
        "cardinality({map})", "month({date})", "year({ts})", "year({date})", "dayofweek({date})", "hour({ts})", "CAST({string} AS INT)",
        "CAST({float} AS INT)", "CAST({decimal} AS BIGINT)", "CAST({int} AS TINYINT)", "coalesce({int}, 0)",
        "if({bool}, {int}, 5)", "CASE WHEN {int} > 2 THEN {int} WHEN {bool} THEN 1 END", "instr({string}, 'a')",
        "round({int}, -1)", "shiftleft({int}, 1)", "{int} DIV 3", "datediff({date}, DATE'2020-01-01')",
        "{map}['a']", "{ints}[0]", "element_at({ints}, 1)", "get({ints}, 0)", "try_cast({string} AS INT)", "{struct}.a", "greatest({int}, 2)",
        "nullif({int}, 5)", "extract(MINUTE FROM {ts})", "hash({string})", "array_position({ints}, 1)", "unix_timestamp({ts})",
        "try_variant_get({variant}, '$.a', 'int')", "variant_get({variant}, '$', 'int')", "ascii({string})", "bit_count({int})",
        "minute({time})", "size(filter({ints}, x -> x > 1))", "pmod({int}, 3)", "try_add({int}, 100)", "size(split({string}, ''))",
    ),
    "float": (
        "{float} * 2", "{int} / 3", "sqrt({float})", "CAST({string} AS DOUBLE)", "-{float}", "nanvl({float}, 0D)",
        "round({float})", "{decimal} * 1.5D", "{float} + {float}", "CAST({float} AS FLOAT)", "{struct}.c.d", "abs({float})", "pow({int}, 2)", "CAST({ts} AS DOUBLE)",
    ),
    "decimal": (
        "{decimal} * {decimal}", "{decimal} / {decimal}", "{decimal} + {decimal}", "{decimal} - {decimal}", "{decimal} % {decimal}", "round({decimal}, 1)",
        "CAST({float} AS DECIMAL(12, 3))", "{int} * 1.5", "-{decimal}", "CAST({string} AS DECIMAL(10, 2))", "CAST({decimal} AS DECIMAL(4, 1))",
        "{decimal} / 3", "{decimal} * {int}", "bround({decimal}, 0)",
    ),
    "string": (
        "upper({string})", "lower({string})", "trim({string})", "rtrim({string})", "substring({string}, 1, 1)", "concat({string}, 'x')",
        "replace({string}, 'a', 'b')", "CAST({int} AS STRING)", "date_format({ts}, 'yyyy-MM')", "{string} COLLATE UTF8_LCASE",
        "{string} COLLATE UNICODE_CI", "upper({string} COLLATE UTF8_LCASE)", "trim({string} COLLATE UTF8_LCASE)", "concat({string} COLLATE UTF8_LCASE, '')",
        "CAST({ts} AS STRING)", "CAST({date} AS STRING)", "CAST({decimal} AS STRING)", "CAST({float} AS STRING)", "CAST({bool} AS STRING)", "left({string}, 2)",
        "hex({binary})", "{struct}.b", "{strings}[0]", "coalesce({string}, 'a')", "{string} || {string}", "lpad({string}, 3, 'x')", "initcap({string})",
        "regexp_replace({string}, 'a+', 'x')", "CAST({binary} AS STRING)", "CAST({struct} AS STRING)", "CAST({ints} AS STRING)", "nullif({string}, 'a')",
        "try_variant_get({variant}, '$.b', 'string')", "CAST({time} AS STRING)", "split({string}, 'b')[0]", "ltrim({string})", "typeof({string})",
        "date_format({date}, 'dd/MM/yy')", "from_unixtime({int})",
    ),
    "binary": ("CAST({string} AS BINARY)", "unhex({string})", "encode({string}, 'UTF-8')"),
    "bool": ("{int} > 3", "isnan({float})", "{string} LIKE 'a%'", "exists({ints}, x -> x > 1)", "forall({ints}, x -> x > 0)", "CAST({string} AS BOOLEAN)", "CAST({int} AS BOOLEAN)", "array_contains({ints}, 1)",
             "startswith({string}, 'a')", "is_variant_null({variant})", "NOT {bool}", "map_contains_key({map}, 'a')", "coalesce({bool}, true)", "CAST({int} AS INT) IN (1, NULL)"),
    "date": ("date_add({date}, 3)", "CAST({ts} AS DATE)", "trunc({date}, 'MM')", "last_day({date})", "to_date({string})", "to_date({ts})", "try_cast({string} AS DATE)",
             "to_date({string}, 'yyyy-dd-MM')", "add_months({date}, 1)", "{date} - 1", "coalesce({date}, DATE'2020-01-01')", "next_day({date}, 'MO')", "CAST({ntz} AS DATE)"),
    "ts": ("date_trunc('HOUR', {ts})", "CAST({date} AS TIMESTAMP)", "{ts} + INTERVAL 1 HOUR", "CAST({ntz} AS TIMESTAMP)", "try_cast({string} AS TIMESTAMP)",
           "from_utc_timestamp({ts}, 'America/New_York')", "date_trunc('DAY', {ts})", "{date} + INTERVAL '1' HOUR", "CAST({int} AS TIMESTAMP)", "{ts} - {dt}", "{ts} + {ym}"),
    "ntz": ("CAST({ts} AS TIMESTAMP_NTZ)", "{ntz} + INTERVAL 1 DAY", "to_timestamp_ntz({string})"),
    "time": ("CAST({string} AS TIME)", "CAST({ntz} AS TIME)", "{time} + INTERVAL '1' MINUTE"),
    "ym": ("-{ym}", "{ym} * 2"),
    "dt": ("{ts} - {ts}", "{dt} * 2", "{dt} + INTERVAL '1' DAY"),
    "ints": ("filter({ints}, x -> x > 0)", "transform({ints}, x -> x + 1)", "sort_array({ints})", "array({int})", "array_distinct({ints})"),
    "strings": ("split({string}, 'a')", "array({string})"),
    "struct": (), "map": (), "variant": (),
}  # fmt: skip

# Literals by group, in the many ways to write one; each is of the group, whatever its type.
LITERALS: dict[str, tuple[str, ...]] = {
    "int": ("5", "5Y", "2S", "7L", "5.0", "1.5", "'5'", "5D", "100Y + 100Y", "127Y + 1Y", "3 * 40Y", "CAST('7' AS TINYINT)", "-1", "- 56", "-128Y", "2147483647 + 1", "0", "1", "100", "20",
            "CAST(NULL AS INT)", "10 / 2", "5 DIV 2", "true", "200", "-9223372036854775808", "1e2", "'1.5'", "5BD", "CAST(300 AS TINYINT)", "try_cast('x' AS INT)"),
    "float": ("1.5", "1.5D", "1.5F", "'NaN'", "CAST('NaN' AS DOUBLE)", "CAST('NaN' AS FLOAT)", "-0.0D", "0", "0.1", "0.1F", "'Infinity'", "CAST('-inf' AS DOUBLE)", "1e20", "16777217", "16777217D", "0.3BD", "'5'", "5", "CAST(NULL AS DOUBLE)"),
    "decimal": ("1.5", "1.50BD", "'1.50'", "1.5D", "15e-1", "2", "0.3333333333", "0.01", "99.99", "CAST(2 AS DECIMAL(38, 0))", "12345.670", "0.111", "1 / 3.0", "2.5 * 1.0", "0.3333333333 * 1.9999999999", "NULL", "0.333333"),
    "string": ("'a'", "'A'", "'b1'", "'B1'", '"ab"', "r'a'", r"'\x61'", r"'\u0061'", r"'\141'", "'a' 'b'", "'a' || 'b'", "upper('b1')", "'a' COLLATE UTF8_LCASE", "'5'", "5", "''", "'a '", "'%'", "'ss'", "'SS'",
               "'ß'", "CAST(X'ff41' AS STRING)", "'2024-02-01'", "DATE'2024-02-01'", "'i'", "NULL", r"'\\'", "'it''s'", "'e\u0301'", "true", "100", "'\U0001f600'", "CAST('a' AS CHAR(5))"),
    "binary": ("X'41'", "X''", "'A'", "'a'", "X'FF'", "CAST('a' AS BINARY)", "x'4142'"),
    "bool": ("true", "false", "NULL", "'true'", "1", "1 = 1", "'f'"),
    "date": ("DATE'2024-02-01'", "'2024-02-01'", "'2024-2-1'", "to_date('2024-02-01')", "to_date('2024-02-01', 'yyyy-dd-MM')", "to_date('01/02/2024', 'dd/MM/yyyy')", "to_date('02.01.24', 'MM.dd.yy')", "CAST('2020-01-01' AS DATE)",
             "TIMESTAMP'2020-01-01 00:00:00'", "TIMESTAMP_NTZ'2020-01-01 00:00:00'", "'2020-01-01 00:00:00'", "make_date(1582, 10, 15)", "DATE'1582-10-04'", "DATE'0999-02-03'", "DATE'1900-01-01' + 1", "date_sub(DATE'2020-01-02', 1)", "'2020'", "DATE'0001-01-01'", "DATE'9999-12-31'", "DATE'1970-01-01'"),
    "ts": ("TIMESTAMP'2020-01-01 00:00:00'", "'2020-01-01 00:00:00'", "TIMESTAMP'2020-01-01 00:00:00 UTC'", "TIMESTAMP'2020-01-01 00:00:00+05:45'", "TIMESTAMP'1930-05-05 00:00:00'", "TIMESTAMP'1930-05-05 00:39:04'", "TIMESTAMP'1900-01-01 00:00:00'", "TIMESTAMP'1937-07-01 00:19:32.5'",
           "TIMESTAMP'1942-05-01 14:34:56.123456'", "TIMESTAMP'1996-10-27 01:30:00'", "TIMESTAMP'1996-10-27 02:30:00'", "TIMESTAMP'1996-10-27 03:30:00'", "TIMESTAMP'2019-03-31 01:30:00'", "TIMESTAMP'2019-03-31 02:30:00'", "TIMESTAMP'2019-03-31 03:30:00'", "DATE'2020-01-01'", "'2020-01-01'",
           "to_timestamp('2020-01-01 00:00:00')", "to_timestamp('01/02/2024 05', 'dd/MM/yyyy HH')", "timestamp_seconds(1577836800)", "CAST('1900-01-01' AS TIMESTAMP)", "TIMESTAMP_NTZ'2020-01-01 00:00:00'", "TIMESTAMP_LTZ'2020-01-01 00:00:00'", "TIMESTAMP'1883-11-18 12:00:00'", "TIMESTAMP'1582-10-04 12:00:00'",
           "TIMESTAMP'2020-01-01 00:00:00.000001'", "TIMESTAMP'2020-01-01 WET'", "make_timestamp(2019, 3, 31, 1, 30, 0)", "TIMESTAMP'2024-11-03 01:30:00'", "date_trunc('DAY', TIMESTAMP'2020-01-01 10:00:00')"),
    "ntz": ("TIMESTAMP_NTZ'2020-01-01 00:00:00'", "'2020-01-01 00:00:00'", "TIMESTAMP'2020-01-01 00:00:00'", "DATE'2020-01-01'", "TIMESTAMP_NTZ'1930-05-05 00:19:32'"),
    "time": ("TIME'12:34:56.123456'", "TIME'01:30:00.5'", "'01:30:00.5'", "TIME'00:00:00'", "make_time(1, 30, 0.5)", "TIME'12:34:56'"),
    "ym": ("INTERVAL '1-1' YEAR TO MONTH", "INTERVAL 1 MONTH", "INTERVAL '-1-2' YEAR TO MONTH", "INTERVAL 0 YEAR", "INTERVAL '13' MONTH"),
    "dt": ("INTERVAL '1 02:03:04.5' DAY TO SECOND", "INTERVAL 1 DAY", "INTERVAL '-3 00:00:01' DAY TO SECOND", "INTERVAL 0 SECOND", "INTERVAL 26 HOUR"),
    "ints": ("array(1)", "array(1, 2, 3)", "array()", "array(5, NULL)", "array(1L)"),
    "strings": ("array('a')", "array('A', 'b1')"),
    "struct": ("named_struct('a', 1, 'b', 'x', 'c', named_struct('d', 1.5D))",),
    "map": (), "variant": (),
}  # fmt: skip

PATTERNS = (
    "'a%'", "'%b'", "'%a%'", "'5'", "'a_c'", "'a\\\\_c'", "'%'", "''", "'_'", "'A%'", "'1%'", "'2024%'", "'%0'",
    "'a%c'", "'true'", "'2020-01-01%'", "'b1'",
)  # fmt: skip
COMMENTS = (
    "/* c */", "/* a /* b */ c */", "-- c\n", "-- it's\n", "-- c \\\n {junk}\n", "-- \\\n {junk} \\\n {junk}\n",
    "/*+ hint */", "/* -- */", "-- /*\n", "-- `\n", "--\\\n{junk}\n",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes terms and conditions over these columns; `variables` are session variables by group."""

    random: Random
    sources: tuple[Source, ...]
    variables: tuple[Source, ...] = ()
    favourites: tuple[tuple[str, str], ...] = ()  # (term, group) that the index may know
    favour: float = 0.5  # how often one of them is taken

    def days(self) -> list[str]:
        """Comparisons of the day of a timestamp with days near those of some row: the zone decides which it is."""
        found = []
        for source in (s for s in self.sources if s.group == "ts"):
            for day in re.findall(r"\d{4}-\d\d-\d\d", " ".join(source.pool))[:3]:
                op = self.random.choice(("=", "<", "<=", ">", ">=", "!="))
                found.append(f"CAST({source.sql} AS DATE) {op} DATE'{day}' {self.random.choice(('- 1', '', '+ 1'))}")
        return found

    # --- terms ---

    def term(self, group: str, depth: int = 1) -> str | None:
        """A term of a group: a column, or an expression over columns; None where the table has nothing for it."""
        own = [s.sql for s in self.sources if s.group == group]
        if own and (depth <= 0 or self.random.random() < 0.55):
            return self.random.choice(own)
        for template in self.random.sample(TERMS[group], len(TERMS[group])) if depth > 0 else ():
            if (found := self.filled(template, depth - 1)) is not None:
                return found
        return self.random.choice(own) if own else None

    def filled(self, template: str, depth: int = 0) -> str | None:
        found: list[str] = []
        parts = re.split(r"\{(\w+)\}", template)
        for i, part in enumerate(parts):
            inner = self.term(part, depth if self.random.random() < 0.4 else 0) if i % 2 else part
            if inner is None:
                return None
            found.append(f"({inner})" if i % 2 and not re.fullmatch(r"[\w.]+|`[^`]*`", inner) else inner)
        return "".join(found)

    def any_term(self) -> tuple[str, str]:
        """A term with its group; often one that the index may know."""
        if self.favourites and self.random.random() < self.favour:
            return self.random.choice(self.favourites)
        groups = sorted({s.group for s in self.sources})
        while True:
            group = self.random.choice(groups if self.random.random() < 0.75 else list(TERMS))
            if (found := self.term(group)) is not None:
                return found, group

    def literal(self, group: str) -> str:
        """A literal that a term of the group is compared with."""
        r = self.random.random()
        pool = [v for s in self.sources if s.group == group for v in s.pool]
        named = [v.sql for v in self.variables if v.group == group]
        if r < 0.5 and pool:
            return self.random.choice(pool)
        if r < 0.55 and named:
            return self.random.choice(named)
        if r < 0.58:
            group = self.random.choice(("int", "string", "float", "date"))
        if group == "int" and self.random.random() < 0.25:  # arithmetic that leaves its type
            suffix = self.random.choice("YYS")
            one, other = (self.random.choice((100, 127, 50, 2, 120)) * (1 if suffix == "Y" else 256) for _ in range(2))
            return f"{one}{suffix} {self.random.choice('++*-')} {other}{suffix}"
        found = LITERALS.get(group) or LITERALS["string"]
        return self.random.choice(found)

    def exact(self, term: str, group: str, text: str) -> str | None:
        """A condition about a value that the term has on some row, by the text that Spark casts it to."""
        ways: dict[str, tuple[str, ...]] = {
            "ts": ("TIMESTAMP'{}'", "TIMESTAMP_LTZ'{}'", "'{}'", "CAST('{}' AS TIMESTAMP)", "to_timestamp('{}')"),
            "ntz": ("TIMESTAMP_NTZ'{}'", "'{}'"), "date": ("DATE'{}'", "'{}'", "to_date('{}')", "TIMESTAMP_NTZ'{} 00:00:00'"),
            "int": ("{}", "{}L", "'{}'", "{}BD"), "decimal": ("{}BD", "{}", "CAST('{}' AS DECIMAL(38, 18))"),
            "float": ("CAST('{}' AS DOUBLE)", "'{}'"), "time": ("TIME'{}'",), "bool": ("{}",), "string": ("'{}'",),
        }  # fmt: skip
        if group not in ways or not re.fullmatch(r"[\w :.+-]*", text):
            return None
        if group not in ("string", "int") and self.random.random() < 0.25:
            return f"{term} {self._not()}LIKE '{respelled(text)}'"
        if group == "date" and self.random.random() < 0.3:
            year, month, day = text.rsplit("-", 2)
            return f"{term} = to_date('{year}-{day}-{month}', 'yyyy-dd-MM')"
        literal = self.random.choice(ways[group]).format(text)
        return f"{term} {self.random.choice(('=', '=', '=', '<=>', '<=', '>='))} {literal}"

    # --- conditions ---

    def atom(self) -> str:
        term, group = self.any_term()
        lit = self.literal
        match self.random.choices(range(12), (34, 10, 8, 7, 3, 14, 3, 5, 4, 5, 3, 2))[0]:
            case 0:
                return f"{term} {self.random.choice(OPS)} {lit(group)}"
            case 1:
                values = ", ".join(lit(group) for _ in range(self.random.choice((1, 2, 3, 12))))
                return f"{term} {self._not()}IN ({values})"
            case 2:
                return f"{term} {self._not()}BETWEEN {lit(group)} AND {lit(group)}"
            case 3:
                return f"{term} IS {self._not()}NULL"
            case 4 if group == "bool":
                return term
            case 5 | 4:
                if group != "string" and self.random.random() < 0.6:
                    return self._pattern(
                        term, self.random.choice(("'5'", "'1'", "'0'", "'2.0'", "'true'", "'5%'", "'%0'"))
                    )
                return self._pattern(term if group == "string" else self.term("string", 1) or term)
            case 6:
                return f"{lit(group)} {self.random.choice(OPS)} {term}"
            case 7:
                return f"{term} {self.random.choice(OPS)} {self.term(group) or lit(group)}"
            case 8:
                return f"{term} IS {self._not()}DISTINCT FROM {lit(group)}"
            case 9:
                other = self.term(self.random.choice(("int", "string", "float", "date", "ts", "decimal")), 0)
                return f"{term} {self.random.choice(OPS)} {other or lit(group)}"
            case 10:
                return f"({term} {self.random.choice(OPS)} {lit(group)}) IS {self._not()}{self.random.choice(('TRUE', 'FALSE', 'UNKNOWN'))}"
        return f"{self.random.choice(('coalesce', 'nullif', 'equal_null'))}({term} = {lit(group)}, {self.random.choice(('true', 'false'))})"

    def _not(self) -> str:
        return self.random.choice(("", "", "NOT "))

    def _pattern(self, text: str, pattern: str = "") -> str:
        pattern = pattern or self.random.choice(PATTERNS)
        match self.random.randrange(7):
            case 0 | 1 | 2:
                return f"{text} {self._not()}LIKE {pattern}"
            case 3:
                return f"{text} {self._not()}ILIKE {pattern}"
            case 4:
                return f"{self.random.choice(('startswith', 'endswith', 'contains'))}({text}, {self.literal('string')})"
            case 5:
                return f"{text} {self._not()}RLIKE '^a.*'"
        return f"{text} {self._not()}LIKE {self.random.choice(('ANY', 'ALL'))} ({pattern}, 'a%')"

    def decorated(self, condition: str) -> str:
        """The same condition with a comment in it; its meaning to Spark stays, whatever stands in the comment."""
        comment = self.random.choice(COMMENTS)
        while "{junk}" in comment:
            comment = comment.replace("{junk}", f"{self.random.choice(('AND', 'OR', ')', ''))} {self.plain_atom()}", 1)
        if self.random.random() < 0.5:
            return f"({condition} {comment} )"
        return f"( {comment} {condition})"

    def plain_atom(self) -> str:
        source = self.random.choice([s for s in self.sources if s.pool] or list(self.sources))
        value = self.random.choice(source.pool) if source.pool else "NULL"
        return f"{source.sql} = {value}"


def respelled(text: str) -> str:
    """Another text of the same value, as a cast would read it: 5.0 as 5, true as TRUE, midnight as the day alone."""
    if re.fullmatch(r"-?\d+\.\d*0", text):
        return re.sub(r"\.?0+$", "", text)
    return text.removesuffix(" 00:00:00") if ":" in text else text.upper()


# --- combinations whose truth follows from that of their parts ---


@dataclass(frozen=True, slots=True)
class Known:
    """A condition with what it is on each row of the table."""

    sql: str
    truth: tuple[Truth, ...]


def negated(p: Known) -> Known:
    return Known(f"NOT ({p.sql})", tuple(None if t is None else not t for t in p.truth))


def is_null(p: Known) -> Known:
    return Known(f"({p.sql}) IS NULL", tuple(t is None for t in p.truth))


def rectified(p: Known, row: int) -> Known:
    """`p`, NOT `p` or `p` IS NULL: the one that is TRUE on the row."""
    found = p.truth[row]
    return p if found else is_null(p) if found is None else negated(p)


def both(p: Known, q: Known) -> Known:
    truth = (
        False if a is False or b is False else None if a is None or b is None else True
        for a, b in zip(p.truth, q.truth, strict=True)
    )
    return Known(f"({p.sql}) AND ({q.sql})", tuple(truth))


def either(p: Known, q: Known) -> Known:
    truth = (
        True if a or b else None if a is None or b is None else False for a, b in zip(p.truth, q.truth, strict=True)
    )
    return Known(f"({p.sql}) OR ({q.sql})", tuple(truth))


def chosen(p: Known, q: Known) -> Known:
    """CASE WHEN p THEN q ELSE NOT q END, in one of the ways to write it."""
    truth = (b if a else None if b is None else not b for a, b in zip(p.truth, q.truth, strict=True))
    return Known(f"if({p.sql}, {q.sql}, NOT ({q.sql}))", tuple(truth))


def same(p: Known, q: Known) -> Known:
    return Known(f"({p.sql}) <=> ({q.sql})", tuple(a is b for a, b in zip(p.truth, q.truth, strict=True)))


def compound(random: Random, parts: Sequence[Known], depth: int = 2) -> Known:
    if depth == 0 or random.random() < 0.25:
        return random.choice(parts)
    p = compound(random, parts, depth - 1)
    match random.randrange(9):
        case 0 | 1 | 2:
            return both(p, compound(random, parts, depth - 1))
        case 3 | 4 | 5:
            return either(p, compound(random, parts, depth - 1))
        case 6:
            return negated(p)
        case 7:
            return chosen(p, random.choice(parts))
    return same(p, random.choice(parts))
