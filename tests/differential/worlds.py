"""Random worlds as plain data: a table, how it was laid out, what happened to it, and how it is asked for.

A world is rendered as the Python lines that make it, and made by running just these lines: a failing case is a script.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from tests.differential.conditions import ZONES, Maker, Source
from tests.differential.functions import TERMS, declared, registered, some_change
from tests.differential.schemas import KINDS as COLUMN_KINDS
from tests.differential.schemas import Column, a_column, a_schema, quoted, rows_sql, scattered, table_ddl

BOOLEANS = ("true", "false")
# Settings under which expressions or texts may mean something else; the first value is Spark's default.
MEANING: dict[str, tuple[str, ...]] = {
    "spark.sql.ansi.enabled": ("true", "false", "false"),
    "spark.sql.session.timeZone": ("UTC", *ZONES[1:], "Pacific/Apia", "America/Sao_Paulo", "+05:45", "Asia/Seoul"),
    "spark.sql.caseSensitive": ("false", "true"),
    "spark.sql.legacy.timeParserPolicy": ("CORRECTED", "LEGACY", "EXCEPTION"),
    "spark.sql.timestampType": ("TIMESTAMP_LTZ", "TIMESTAMP_NTZ"),
    "spark.sql.decimalOperations.allowPrecisionLoss": ("true", "false", "false"),
    "spark.sql.legacy.sizeOfNull": ("false", "true"),
    "spark.sql.legacy.ctePrecedencePolicy": ("CORRECTED", "LEGACY", "EXCEPTION"),
    "spark.sql.parser.escapedStringLiterals": ("false", "true"),
    "spark.sql.ansi.doubleQuotedIdentifiers": ("false", "true"),
    "spark.sql.legacy.castComplexTypesToString.enabled": ("false", "true"),
    "spark.sql.legacy.typeCoercion.datetimeToString.enabled": ("false", "true"),
    "spark.sql.legacy.followThreeValuedLogicInArrayExists": ("true", "false"),
    "spark.sql.legacy.nullInEmptyListBehavior": ("false", "true"),
    "spark.sql.legacy.literal.pickMinimumPrecision": ("true", "false"),
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": ("false", "true"),
    "spark.sql.legacy.charVarcharAsString": ("false", "true"),
    "spark.sql.legacy.javaCharsets": ("false", "true"),
    "spark.sql.legacy.setopsPrecedence.enabled": ("false", "true"),
    "spark.sql.legacy.duplicateBetweenInput": ("false", "true"),
    "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": ("false", "true"),
    "spark.sql.legacy.parseQueryWithoutEof": ("false", "true"),
    "spark.sql.legacy.consecutiveStringLiterals.enabled": ("false", "true"),
    "spark.sql.optimizer.inSetConversionThreshold": ("10", "1"),
    "spark.sql.optimizer.nestedSchemaPruning.enabled": BOOLEANS,
    "spark.sql.constraintPropagation.enabled": BOOLEANS,
    "spark.sql.optimizer.replaceExceptWithFilter": BOOLEANS,
    "spark.sql.parquet.filterPushdown": BOOLEANS,
    "spark.sql.readSideCharPadding": BOOLEANS,
    "spark.sql.parquet.mergeSchema": ("false", "true"),
    "spark.sql.sources.useV1SourceList": ("avro,csv,json,kafka,orc,parquet,text", ""),
    "spark.sql.parquet.inferTimestampNTZ.enabled": BOOLEANS,
    "spark.sql.parquet.binaryAsString": ("false", "true"),
    "spark.sql.files.ignoreCorruptFiles": ("false", "true"),
    "spark.sql.cteRecursionAnchorRowsLimitToConvertToLocalRelation": ("100", "0"),
}
WEIGHTS = {"spark.sql.ansi.enabled": 10, "spark.sql.session.timeZone": 10, "spark.sql.caseSensitive": 4,
           "spark.sql.decimalOperations.allowPrecisionLoss": 5, "spark.sql.legacy.ctePrecedencePolicy": 4,
           "spark.sql.legacy.sizeOfNull": 3, "spark.sql.parquet.mergeSchema": 2,
           "spark.sql.parquet.outputTimestampType": 5}  # fmt: skip
# Under these Hedgerow refuses to learn, in a sentence.
OTHER_GRAMMAR = ("spark.sql.parser.escapedStringLiterals", "spark.sql.ansi.doubleQuotedIdentifiers")
# Settings that change how values are stored.
STORING: dict[str, tuple[str, ...]] = {
    "spark.sql.parquet.outputTimestampType": ("INT96", "TIMESTAMP_MILLIS", "TIMESTAMP_MICROS"),
    "spark.sql.parquet.datetimeRebaseModeInWrite": ("EXCEPTION", "LEGACY", "CORRECTED"),
    "spark.sql.parquet.int96RebaseModeInWrite": ("EXCEPTION", "LEGACY", "CORRECTED"),
    "spark.sql.parquet.writeLegacyFormat": ("false", "true"),
    "spark.sql.parquet.fieldId.write.enabled": ("true", "false"),
    "spark.sql.parquet.compression.codec": ("snappy", "none", "gzip"),
    "spark.sql.storeAssignmentPolicy": ("ANSI", "LEGACY"),
    "spark.sql.legacy.parquet.nanosAsLong": ("false", "true"),
}
# What the source is made under, so that it holds what its literals say.
NEUTRAL = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.ansi.enabled": "false",
}
FOLDERS = ("t", "t", "t", "t", "a b", "t[1]", "{x}", "t]", "ä", "p%20q", "k=v", "it's")
READER_OPTIONS = (
    {"mergeSchema": "true"}, {"recursiveFileLookup": "true"}, {"RECURSIVEFILELOOKUP": "true"}, {"pathGlobFilter": "*.parquet"},
    {"modifiedAfter": "2020-01-01T00:00:00"}, {"datetimeRebaseMode": "LEGACY"}, {"int96RebaseMode": "CORRECTED"}, {"basePath": "{table}"},
    {"ignoreMissingFiles": "true"}, {"ignoreCorruptFiles": "true"}, {"modifiedBefore": "2020-01-01T00:00:00"}, {"whatever": "1"},
)  # fmt: skip
WORLD_KINDS = (
    *("views", "names", "queries", "sets", "history", "foreign", "cases"),
    *("zones", "storing", "decimals", "texts", "any", "parquet", "delta", "lookups", "deletes", "trees", "functions"),
)
# What the layout of a kind of world surely knows: expressions whose values depend on the settings that the kind changes.
KIND_TERMS: dict[str, tuple[tuple[str, str], ...]] = {
    "views": (("size({ints})", "int"), ("cardinality({ints})", "int"), ("CAST({int} AS TINYINT)", "int"), ("CAST({string} AS INT)", "int")),
    "decimals": (("{decimal} * {decimal}", "decimal"), ("{decimal} / {decimal}", "decimal"), ("{decimal} / 3", "decimal"), ("{decimal} * {int}", "decimal")),
    "functions": TERMS,
    "zones": (("CAST({ts} AS DATE)", "date"), ("CAST({ts} AS STRING)", "string"), ("hour({ts})", "int"), ("date_trunc('DAY', {ts})", "ts")),
}  # fmt: skip
# Columns that a kind of world surely has.
KIND_COLUMNS: dict[str, tuple[str, ...]] = {
    "zones": ("TIMESTAMP",),
    "storing": ("TIMESTAMP",),
    "decimals": ("DECIMAL(30,10)",),
    "views": ("ARRAY<INT>",),
    "texts": ("DOUBLE",),
    "lookups": ("STRING", "BIGINT", "DECIMAL(30,10)", "DATE"),
    "functions": ("STRING", "INT", "DOUBLE", "DATE"),
    "sets": ("STRING", "INT", "BIGINT", "DOUBLE", "DATE", "TIMESTAMP"),
}


@dataclass(frozen=True)
class Plan:
    """All that makes a world."""

    number: str
    format: str
    columns: tuple[Column, ...]
    rows: int
    write: Mapping[str, str]
    terms: tuple[tuple[str, str], ...]  # expressions of the workload, with their groups
    workload: tuple[str, ...]
    learner: str
    block_rows: int
    folder: str = "t"
    history: tuple[str, ...] = ()  # lines of Python
    converted: bool = False
    lookups: bool = False  # every column that is looked up has a filter, whatever it gains
    trees: int = 1  # layouts, each of a full copy
    file_bytes: str | None = None  # neighbouring blocks share files
    functions: bool = False  # its queries call users' functions, declared in version 1

    @property
    def read_format(self) -> str:
        return "delta" if self.converted else self.format


@dataclass(frozen=True)
class Relation:
    """How a query names the table; `once` are statements for one session, `lines` for each session `s`."""

    name: str
    sql: str
    once: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    more: tuple[Source, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Phase:
    """What is set and defined while queries run."""

    settings: Mapping[str, str]
    relation: Relation
    variables: tuple[tuple[str, str, Source], ...] = ()  # name, declaration, as a literal
    functions: tuple[str, ...] = ()  # lines that register and declare users' functions


# --- drawing ---


def _a_zone(random: Random) -> str:
    """Often a zone whose past Java and Python tell differently."""
    return random.choice(("WET", "Europe/Amsterdam", random.choice(MEANING["spark.sql.session.timeZone"])))


def some_settings(
    random: Random, most: int, chance: float = 1.0, of: Mapping[str, tuple[str, ...]] = MEANING
) -> dict[str, str]:
    if random.random() > chance:
        return {}
    keys = list(of)
    chosen = random.choices(keys, [WEIGHTS.get(k, 1) for k in keys], k=random.randint(1, most))
    return {k: random.choice(of[k]) for k in dict.fromkeys(chosen)}


def a_plan(random: Random, number: str, kind: str) -> Plan:
    format_ = (
        "delta"
        if kind in ("delta", "storing", "deletes")
        or random.random() < {"names": 0.5, "any": 0.15, "texts": 0.15, "lookups": 0.4, "functions": 0.25}.get(kind, 0)
        else "parquet"
    )
    columns = a_schema(random, format_ == "delta", {"names": 1.0, "any": 0.2}.get(kind, 0.05))
    for i, type_ in enumerate(KIND_COLUMNS.get(kind, ())):
        column = a_column(random, f"z{i}", next(k for k in COLUMN_KINDS if k.type == type_))
        columns += (scattered(column) if kind == "lookups" else column,)
    write = some_settings(random, 3, 0.7)
    write = {k: v for k, v in write.items() if k not in OTHER_GRAMMAR}
    if kind == "zones":
        write["spark.sql.session.timeZone"] = _a_zone(random)
    if kind in ("decimals", "sets", "views"):  # otherwise most of their conditions raise
        write["spark.sql.ansi.enabled"] = random.choice(("true", "false", "false", "false"))
    if kind == "functions":  # what raises in an argument of a function in Python cannot be caught
        write["spark.sql.ansi.enabled"] = "false"
    write |= some_settings(random, 2, {"storing": 1.0, "any": 0.25}.get(kind, 0.05), STORING)
    drawn = Maker(random, sources(columns))
    own = random.sample(KIND_TERMS.get(kind, ()), min(4 if kind == "functions" else 2, len(KIND_TERMS.get(kind, ()))))
    known = tuple((found, group) for template, group in own if (found := drawn.filled(template)))
    if kind == "lookups":
        known = tuple((c.quoted, c.kind.group) for c in columns[-4:]) * 2
    terms = known + tuple(drawn.any_term() for _ in range(random.randint(4, 8)))
    maker = replace(drawn, favourites=terms, favour=0.9)
    # The index knows the columns and expressions that the workload asks for: so every column is asked for.
    asked = [
        f"{s.sql} = {random.choice(s.pool)}"
        for s in drawn.sources[-4 if kind == "lookups" else 0 :]
        if s.group not in ("ints", "strings", "map", "struct", "variant")
    ]
    asked += [f"{term} = {maker.literal(group)}" for term, group in known for _ in range(3)]
    asked += [maker.atom() for _ in range(random.randint(4, 9))]
    workload = tuple(f"SELECT * FROM t WHERE {p}" for p in asked)
    numbers = [s.sql for s in drawn.sources if s.group in ("int", "decimal")]
    workload += tuple(f"SELECT sum({number}) FROM t WHERE {number} IS NOT NULL" for number in numbers)
    plan = Plan(
        number, format_, columns, random.choice((150, 240, 300)), write, terms, workload,
        random.choice(("qdtree", "qdtree", "range")), random.choice((8, 12, 20)),
        random.choice(FOLDERS) if kind in ("names", "any") and format_ == "parquet" else "t", lookups=kind == "lookups",
        trees=2 if kind == "trees" else 1, functions=kind == "functions",
        file_bytes=random.choice((None, None, "2KB", "8KB")),
    )  # fmt: skip
    if kind == "foreign":
        return replace(plan, history=_alien(random, plan, random.choice(("", "sub"))))
    if kind == "deletes":
        return replace(plan, history=_deleted(random, plan))
    if random.random() < {"history": 1.0, "any": 0.2, "lookups": 0.5, "trees": 0.5}.get(kind, 0.05):
        plan = with_history(random, plan)
    return plan


def sources(columns: tuple[Column, ...]) -> tuple[Source, ...]:
    return tuple(Source(c.quoted if not c.name.isidentifier() else c.name, c.kind.group, c.pool) for c in columns)


def with_history(random: Random, plan: Plan) -> Plan:
    match random.choice(("convert", "junk", "alien", "append", "append plainly", "nested", "deleted")):
        case "convert" if plan.format == "parquet" and plan.folder == "t" and plan.trees == 1:
            return _converted(random, plan)
        case "junk":
            name = random.choice(
                ("state-old.json", "state-0x1.json", "delta-1.json", "state-.json", "x.txt", "state-1.json.bak")
            )
            return replace(plan, history=(f'pathlib.Path(table, "_hedgerow", {name!r}).write_text("{{}}")',))
        case "alien" if plan.format == "parquet":
            return replace(plan, history=_alien(random, plan, ""))
        case "nested" if plan.format == "parquet":
            return replace(plan, history=_alien(random, plan, "sub"))
        case "deleted" if plan.format == "delta":
            return replace(plan, history=_deleted(random, plan))
        case "append":
            return replace(plan, history=_appended(plan, 40))
    return replace(plan, history=_appended_plainly(plan, 30))


def _appended(plan: Plan, rows: int) -> tuple[str, ...]:
    return (f'hr.table(spark, table).append(spark.sql(r"""{rows_sql(plan.columns, rows)}"""))',)


def _appended_plainly(plan: Plan, rows: int) -> tuple[str, ...]:
    written = f'write.format({plan.format!r}).mode("append").save(table)'
    return (f'spark.sql(r"""{rows_sql(plan.columns, rows)}""").{written}',)


def _deleted(random: Random, plan: Plan) -> tuple[str, ...]:
    """Deletion vectors: the rows with some of the values of a column or of all; perhaps more rows before or after."""
    hashed = [c.quoted for c in plan.columns if c.kind.group not in ("map", "variant")]
    values = random.choice((", ".join(hashed), random.choice(hashed)))
    more = random.choice(((), (), _appended(plan, 40), _appended_plainly(plan, 30)))
    delete = (
        "spark.sql(f\"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')\")",
        f'spark.sql(f"DELETE FROM delta.`{{table}}` WHERE pmod(xxhash64({values}), {random.choice((3, 8, 20))}) = 0")',
    )
    return more + delete if random.random() < 0.5 else delete + more


def _alien(random: Random, plan: Plan, folder: str) -> tuple[str, ...]:
    """A file of somebody else's with other columns, whose name sorts before or after ours."""
    kept = [c for c in plan.columns if random.random() < 0.6]
    columns = ", ".join(f"{c.cells} AS {c.quoted}" for c in kept)
    sql = f"SELECT {columns + ', ' if columns else ''}id AS extra FROM range(0, 20, 1, 1)"
    name = random.choice(("0000.parquet", "zzzz.parquet"))
    return (
        f'spark.sql("""{sql}""").coalesce(1).write.parquet(place + "/alien")',
        f'pathlib.Path(table, {folder!r}).mkdir(exist_ok=True)',
        f'shutil.copy(glob.glob(glob.escape(place) + "/alien/*.parquet")[0], pathlib.Path(table, {folder!r}, {name!r}))',
    )  # fmt: skip


def _converted(random: Random, plan: Plan) -> Plan:
    """CONVERT TO DELTA, then columns that change their names or their values but not the files."""
    lines = [
        'delta = "delta.`" + table + "`"',
        'spark.sql(f"CONVERT TO DELTA parquet.`{table}`")',
        "spark.sql(f\"ALTER TABLE {delta} SET TBLPROPERTIES('delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')\")",
    ]
    columns = list(plan.columns)
    one = random.randrange(len(columns))
    like = [i for i, c in enumerate(columns) if c.kind.type == columns[one].kind.type and i != one]
    if like and random.random() < 0.6:
        other = random.choice(like)
        a, b = columns[one], columns[other]
        for old, new in ((a.quoted, "aside"), (b.quoted, a.quoted), ("aside", b.quoted)):
            lines.append(f'spark.sql(f"ALTER TABLE {{delta}} RENAME COLUMN {old} TO {new}")')
        columns[one], columns[other] = replace(a, name=b.name), replace(b, name=a.name)
    else:
        c = columns[one]
        lines.append(f'spark.sql(f"ALTER TABLE {{delta}} DROP COLUMN {c.quoted}")')
        lines.append(f'spark.sql(f"ALTER TABLE {{delta}} ADD COLUMN {c.ddl}")')
        lines.append(
            f'spark.sql(f"INSERT INTO {{delta}} SELECT {", ".join(k.cells for k in (*columns[:one], *columns[one + 1 :], c))} FROM range(0, 20, 1, 1)")'
        )
    changed = tuple((c.quoted, c.kind.group) for c in columns if c not in plan.columns or c is plan.columns[one])
    return replace(plan, history=tuple(lines), converted=True, columns=plan.columns, terms=(*plan.terms, *changed * 3))


def a_phase(random: Random, plan: Plan, kind: str, number: int) -> Phase:
    settings = dict(plan.write)
    if random.random() < 0.75:
        settings |= some_settings(random, 3)
    if kind == "decimals" and random.random() < 0.7:
        now = settings.get("spark.sql.decimalOperations.allowPrecisionLoss", "true")
        settings["spark.sql.decimalOperations.allowPrecisionLoss"] = "false" if now == "true" else "true"
    if kind == "zones" and random.random() < 0.5:
        settings["spark.sql.session.timeZone"] = _a_zone(random)
    if kind in ("queries", "sets") and random.random() < 0.5:
        settings["spark.sql.legacy.ctePrecedencePolicy"] = "LEGACY"
    if plan.functions and random.random() < 0.9:
        settings["spark.sql.ansi.enabled"] = "false"
    relation = a_relation(random, plan, kind, number)
    settings |= relation.settings
    settings = {k: v for k, v in settings.items() if k not in STORING}
    variables = []
    maker = Maker(random, sources(plan.columns))
    for i, c in enumerate(random.choices(plan.columns, k=2)):
        if c.kind.group in ("int", "string", "date", "ts", "decimal", "float"):
            name = f"v{i}"
            variables.append(
                (
                    name,
                    f"DECLARE OR REPLACE VARIABLE {name} = {maker.literal(c.kind.group)}",
                    Source(name, c.kind.group),
                )
            )
    return Phase(settings, relation, tuple(variables), some_change(random) if plan.functions else ())


def a_relation(random: Random, plan: Plan, kind: str, number: int) -> Relation:
    path = f"{plan.read_format}.`{{table}}`"
    kinds = ["path", "read", "read", "catalog", "view", "view", "cased", "options"]
    if kind in ("queries", "sets", "texts", "zones", "decimals"):
        kinds = ["path", "read", "read", "catalog", "catalog"]
    if kind in ("views", "cases"):
        kinds = {"views": ["view", "view", "options"], "cases": ["cased", "cased", "catalog"]}[kind]
    if (
        plan.trees > 1 or plan.functions
    ):  # copies are read by their paths, and no view of the catalog may call functions
        kinds = ["path", "read", "read"]
    if any("alien" in line for line in plan.history) and plan.trees == 1 and not plan.functions:
        kinds = ["options", "options", "path", "read", "view"]
    word = random.choice(kinds)
    view = f"v_{plan.number}_{number}"
    if "`" in plan.folder or (plan.folder != "t" and word in ("catalog", "view")):
        word = "read"
    match word:
        case "read":
            return Relation("read", view, lines=(_reader(plan, {}, None, view),))
        case "options" if plan.read_format == "parquet":
            options = random.choice(READER_OPTIONS)
            if any("alien" in line for line in plan.history):
                options = random.choice(READER_OPTIONS[:3])
            return Relation("options", view, lines=(_reader(plan, options, None, view),))
        case "cased" if plan.read_format == "parquet":
            return _cased(random, plan, view)
        case "catalog" if plan.read_format == "parquet":
            ddl = table_ddl(plan.columns)
            return Relation("catalog", view, once=(f"CREATE TABLE {view} ({ddl}) USING parquet LOCATION '{{table}}'",))
        case "view" | "options" | "cased" | "catalog":
            return _view(random, plan, view, path)
    return Relation("path", path)


def _reader(plan: Plan, options: Mapping[str, str], schema: str | None, view: str) -> str:
    told = f".schema({schema!r})" if schema else ""
    chosen = "".join(f".option({k!r}, {v!r}.replace('{{table}}', table))" for k, v in options.items())
    return f"s.read.format({plan.read_format!r}){chosen}{told}.load(table_glob).createOrReplaceTempView({view!r})"


def _cased(random: Random, plan: Plan, view: str) -> Relation:
    """A schema of the reader's own: names in other letter case, wider types, columns left out."""
    columns = []
    for c in plan.columns:
        r = random.random()
        name = c.name.upper() if r < 0.3 else c.name
        wider = {
            "INT": "BIGINT",
            "SMALLINT": "INT",
            "TINYINT": "INT",
            "FLOAT": "DOUBLE",
            "DATE": "TIMESTAMP_NTZ",
            "INT ": "DECIMAL(20,2)",
        }
        type_ = wider.get(c.kind.type, c.kind.type) if r > 0.85 else c.kind.type
        if r < 0.95 and not type_.startswith("CHAR"):
            columns.append(f"{quoted(name)} {type_}")
    settings = {"spark.sql.caseSensitive": random.choice(BOOLEANS)}
    if random.random() < 0.5 and plan.folder == "t":
        return Relation(
            "cased",
            view,
            once=(f"CREATE TABLE {view} ({', '.join(columns)}) USING parquet LOCATION '{{table}}'",),
            settings=settings,
        )
    return Relation("cased", view, lines=(_reader(plan, {}, ", ".join(columns), view),), settings=settings)


def _view(random: Random, plan: Plan, view: str, path: str) -> Relation:
    """A view of the catalog with columns of its own, made under other settings than those it is asked under."""
    maker = Maker(random, sources(plan.columns), favourites=plan.terms, favour=0.7)
    more, parts = [], []
    for i in range(3):
        term, group = plan.terms[i] if i < 2 else maker.any_term()
        parts.append(f"{term} AS e{i}")
        more.append(Source(f"e{i}", group))
    condition = f" WHERE {maker.atom()}" if random.random() < 0.3 else ""
    made = some_settings(random, 3) | {"spark.sql.ansi.enabled": random.choice(BOOLEANS)}
    made = {k: v for k, v in made.items() if k != "spark.sql.sources.useV1SourceList"}
    once = (
        f"SETTINGS {json.dumps(made)}",
        f"CREATE VIEW {view} AS SELECT *, {', '.join(parts)} FROM {path}{condition}",
    )
    return Relation("view", view, once=once, more=tuple(more))


# --- rendering ---

HEAD = '''"""A case of tests/differential: run it with Hedgerow's PYTHONPATH."""
import glob, os, pathlib, shutil, tempfile, warnings
import hedgerow as hr
from hedgerow.core.index import top_k
from hedgerow.pipeline import apply

warnings.simplefilter("ignore")
top_k._FEWEST = top_k._FEWEST_IF_SURE = top_k._FEWEST_ROWS = 1
apply._LEAST_GROUP_ROWS = 5
spark = hr.session("2g", "local[2]", **{"spark.sql.timeType.enabled": "true"})
spark.sparkContext.setLogLevel("OFF")
plain, attached = spark.newSession(), spark.newSession()
hr.attach(attached)
place = tempfile.mkdtemp()
'''


# A filter of such small tables gains nothing, for the index lists all values of each file.
GAINS = ("from unittest.mock import patch", 'gains = patch("hedgerow.tables.lookups.gain_of_filter", lambda *_: 1.0); gains.start()', "gains.stop()")  # fmt: skip


def configured(session: str, settings: Mapping[str, str]) -> list[str]:
    return [f"{session}.conf.set({key!r}, {value!r})" for key, value in settings.items()]


def made(plan: Plan) -> list[str]:
    """The lines that make the table, from its source to the last event of its history; `spark` and `place` are given."""
    source = f"source_{plan.number}"
    lines = [
        f"folder = {plan.folder!r}",
        'source = place + "/source"',
        *([] if plan.format == "parquet" else ["table = source"]),
        *configured("spark", NEUTRAL),
        f"spark.sql(f\"CREATE TABLE {source} ({_braces(table_ddl(plan.columns))}) USING {plan.format} LOCATION '{{source}}'\")",
        f'spark.sql(r"""INSERT INTO {source} {rows_sql(plan.columns, plan.rows)}""")',
        *[f"spark.conf.unset({key!r})" for key in NEUTRAL],
        *configured("spark", plan.write),
        *([*registered(), *declared()] if plan.functions else []),
        "workload = hr.Workload.from_sql([" + ", ".join(repr(sql) for sql in plan.workload) + "])",
        f"options = hr.LearnOptions(block_rows={plan.block_rows}, recurrence=1.0)",
        f'learned = hr.learn(spark, source, workload, {plan.learner!r}, options, table="t", trees={plan.trees})',
    ]
    to, how = (", table", ['table = place + "/" + folder']) if plan.format == "parquet" else ("", [])
    share = "lookup_share=1.0, " if plan.lookups else ""
    write = f"hr.apply(spark, source, learned{to}, options=hr.WriteOptions({share}file_bytes={plan.file_bytes!r}))"
    lines += [*how, *([*GAINS[:2], write, GAINS[2]] if plan.lookups else [write])]
    lines += [r'table_glob = re.sub(r"([\\{}\[\]*?])", r"\\\1", table)']
    return lines


def _braces(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}").replace('"', '\\"')


def to_json(settings: Mapping[str, Any]) -> str:
    return json.dumps(dict(settings), sort_keys=True)
