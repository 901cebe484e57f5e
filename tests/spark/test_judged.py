"""Whatever Spark registers has one judgement, and no judgement is of a name that Spark lacks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from pyspark.sql import SparkSession

from hedgerow.spark.extensions import ENGINES_OFF
from hedgerow.spark.judged import (
    EXPRESSIONS,
    HARMLESS,
    HARMLESS_OPTIONS,
    MEANING,
    NEVER_FAIL,
    OF_OTHERS,
    ONLY_WITH_FIELD_IDS,
    READING,
    REPLACED_EXPRESSIONS,
    WHOLE_TASKS,
    WRITING,
    is_harmless_option,
    kind_of_setting,
)
from hedgerow.spark.storage.delta_log import has_delta

PACKAGE = "org.apache.spark.sql.catalyst.expressions."


def _refused(kind: str) -> list[frozenset[str]]:
    """Return the names of a kind that were read and refused, one set for each reason."""
    paragraphs = (Path(__file__).parents[1] / "golden/refused_names.txt").read_text().split("\n\n")
    return [frozenset(p.split("\n", 1)[1].split()) for p in paragraphs if p.startswith(f"[{kind}]")]


REFUSED = REPLACED_EXPRESSIONS.union(*_refused("expressions"))
# Lists are complete for every Spark that we support; names may be newer than the older one.
NEWEST = "4.2"
# Judged for 4.3, for which there is no Delta yet, and unknown to 4.2.
_NEXT = """
    Base32 CounterDiff CounterDiffWithStartTime CurrentTimestampNanos DecimalSubtractNoOverflowCheck
    ExternalUserDefinedFunction Hmac JaroWinkler JsonTable LocalTimestampNanos MakeTimestampLTZ MakeTimestampLTZNanos
    MakeTimestampNTZNanos MultiGetJsonObject NanosToTimestamp NullIfResult SecondWithFractionNanos
    StringInstrWithOccurrence TranspiledPythonUDF TranspiledUDFParameter UnBase32 UnixNanos Unnest
    spark.sql.binByRelationOperator.enabled spark.sql.dropDuplicates.deterministicKeyOrder.enabled
    spark.sql.experimental.optimizer.pyTranspilers spark.sql.experimental.optimizer.transpilePyUDFs
    spark.sql.files.archive.reader.enabled spark.sql.files.ignoredPathSegmentRegex
    spark.sql.generatedColumn.allowNullableIngest.enabled spark.sql.insertIntoReplaceWhereColumnList.enabled
    spark.sql.join.asofJoin.enabled spark.sql.join.sortMergeAsOfJoin.enabled
    spark.sql.join.splitStreamedSideJoinCondition spark.sql.kafka.disallowedOptions
    spark.sql.optimizeNullAwareAntiJoin.broadcastThreshold spark.sql.planChangeValidation.nullability
    spark.sql.protobuf.descriptorCacheSize spark.sql.reflect.allowList spark.sql.restrictedMode.enabled
    spark.sql.sources.structPredicateDecompose.* spark.sql.timeTravel.atSyntax.enabled
    spark.sql.timestampNanosTypes.enabled spark.sql.variant.pushVariantIntoScan.*
    spark.sql.xml.schemaInference.incrementalTypeCasting.enabled
"""
OF_NEXT = frozenset(_NEXT.split())

# What no allowed expression may be. `AttributeReference` is the one that cannot be evaluated: scans bind it.
BANNED = [
    "Nondeterministic", "Unevaluable", "UserDefinedExpression", "PlanExpression", "Generator", "RuntimeReplaceable",
    "WindowFunction", "aggregate.AggregateFunction",
]  # fmt: skip
EXEMPT = {("AttributeReference", "Unevaluable")}

# The allowed classes whose code, or whose companion's, reads settings, each read by hand.
READERS = {
    # into an argument of theirs
    "Abs", "Add", "ArrayExists", "ArrayInsert", "ArraySort", "BRound", "Ceil", "Conv", "CreateArray", "DateAddInterval", "Divide", "DivideInterval", "ElementAt", "Elt", "Floor", "GetArrayItem", "GetTimestamp", "IntegralDivide", "MakeDate",
    "MakeDecimal", "MakeInterval", "MakeTimestamp", "Multiply", "MultiplyInterval", "NextDay", "Pmod", "Remainder", "Round", "Size", "Subtract", "SubtractDates", "SubtractTimestamps", "ToUnixTimestamp", "UnaryMinus", "UnixTimestamp",
    # into none: CHECKED_FURTHER says when that matters; of a literal it is the zone of its text
    "Cast", "In", "InSet", "Literal",
    # when they run, under the settings of the query
    "InitCap", "Lower", "StringSplit", "Upper",
}  # fmt: skip


class Classes:
    """Spark's classes by name, as its own loader finds them."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        self.jvm = jvm
        self.loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()

    def named(self, name: str, start: bool = False) -> Any:
        return self.jvm.java.lang.Class.forName(name, start, self.loader)

    def singleton(self, name: str) -> Any:
        return self.named(name + "$", start=True).getField("MODULE$").get(None)

    def listed(self, things: Any) -> list[Any]:
        """Of a Java or Scala collection."""
        if "scala." in things.getClass().getName():
            things = self.jvm.scala.jdk.javaapi.CollectionConverters.asJava(things)
        return list(self.jvm.java.util.ArrayList(things))


@pytest.fixture(scope="module")
def classes(spark: SparkSession) -> Classes:
    return Classes(spark)


@pytest.fixture(scope="module")
def jar(classes: Classes) -> Iterator[ZipFile]:
    expression = classes.named(PACKAGE + "Expression")
    with ZipFile(expression.getProtectionDomain().getCodeSource().getLocation().getPath()) as jar:
        yield jar


@pytest.fixture(scope="module")
def concrete(classes: Classes, jar: ZipFile) -> set[str]:
    """The expressions of the package that can be made."""
    expression, modifiers = classes.named(PACKAGE + "Expression"), classes.jvm.java.lang.reflect.Modifier
    found = set()
    for name in _of_package(jar):
        known = classes.named(PACKAGE + name)
        if expression.isAssignableFrom(known) and not modifiers.isAbstract(known.getModifiers()):
            found.add(name)
    assert len(found) > 400
    return found


def _of_package(jar: ZipFile) -> list[str]:
    folder = PACKAGE.replace(".", "/")
    inside = [name.removeprefix(folder) for name in jar.namelist() if name.startswith(folder)]
    names = {name.removesuffix(".class") for name in inside if name.endswith(".class") and "/" not in name}
    return [name for name in names if "$" not in name[:-1] or "$$anon$" in name]  # a named one inside another is none


# --- expressions --------------------------------------------------------------------------------------


def test_every_expression_is_judged_once(spark: SparkSession, concrete: set[str]) -> None:
    groups = [EXPRESSIONS, REPLACED_EXPRESSIONS, *_refused("expressions")]
    assert all(not one & other for one, other in itertools.combinations(groups, 2))
    assert concrete - EXPRESSIONS - REFUSED == set()
    if spark.version.startswith(NEWEST):
        assert (EXPRESSIONS | REFUSED) - concrete - OF_NEXT == set()


def test_every_function_makes_judged_expressions(classes: Classes, concrete: set[str]) -> None:
    """Spark names the class of each built-in function; of some it is a builder, or is in a package that we refuse."""
    registry = classes.singleton("org.apache.spark.sql.catalyst.analysis.FunctionRegistry").builtin()
    expression = classes.named(PACKAGE + "Expression")
    names = classes.listed(registry.listFunction())
    assert len(names) > 300
    for name in names:
        made = str(registry.lookupFunction(name).get().getClassName())
        within = made.removeprefix(PACKAGE)
        if made.startswith(PACKAGE) and "." not in within and expression.isAssignableFrom(classes.named(made)):
            assert (within in EXPRESSIONS) != (within in REFUSED), name


def test_nothing_allowed_is_of_a_refused_kind(classes: Classes, concrete: set[str]) -> None:
    kinds = {kind: classes.named(PACKAGE + kind) for kind in BANNED}
    for name in sorted(EXPRESSIONS & concrete):
        known = classes.named(PACKAGE + name)
        of = {kind for kind, trait in kinds.items() if trait.isAssignableFrom(known) and (name, kind) not in EXEMPT}
        assert not of, name


def test_examples_of_allowed_functions_are_deterministic(spark: SparkSession, classes: Classes) -> None:
    registry = classes.singleton("org.apache.spark.sql.catalyst.analysis.FunctionRegistry").builtin()
    examples = []
    for name in classes.listed(registry.listFunction()):
        info = registry.lookupFunction(name).get()
        if str(info.getClassName()).removeprefix(PACKAGE) in EXPRESSIONS:
            lines = [line.strip() for line in str(info.getExamples()).splitlines()]
            examples += [line for line in lines if line.startswith("> SELECT") and line.endswith(";")][:1]
    assert len(examples) > 150
    columns = [line.removeprefix("> SELECT").removesuffix(";") for line in examples if " FROM " not in line]
    for start in range(0, len(columns), 25):
        query = "SELECT " + ", ".join(columns[start : start + 25])
        assert spark.sql(query)._jdf.queryExecution().analyzed().deterministic(), query


def test_scala_takes_one_zero_for_the_other(classes: Classes) -> None:
    """Why CHECKED_FURTHER has literals: `atan2(x, 0.0D)` is another value than `atan2(x, -0.0D)`."""
    literal = classes.jvm.org.apache.spark.sql.catalyst.expressions.Literal
    double = classes.singleton("org.apache.spark.sql.types.DoubleType")
    assert literal(0.0, double).equals(literal(-0.0, double))


def test_who_reads_settings_is_known(jar: ZipFile, concrete: set[str]) -> None:
    """A class that starts to read settings in another version has to be read again."""
    reads = b"org/apache/spark/sql/internal/SQLConf"
    folder, inside = PACKAGE.replace(".", "/"), set(jar.namelist())
    files = {name: [folder + name + end + ".class" for end in ("", "$")] for name in EXPRESSIONS & concrete}
    found = {name for name, own in files.items() if any(reads in jar.read(file) for file in own if file in inside)}
    assert found - READERS == set()


def test_expressions_that_never_fail_are_allowed() -> None:
    assert {"Alias", "ToPrettyString"} == NEVER_FAIL - EXPRESSIONS


def test_operators_that_see_whole_tasks_exist(classes: Classes) -> None:
    for name in WHOLE_TASKS:
        assert classes.named(f"org.apache.spark.sql.catalyst.plans.logical.{name}")


def test_what_spark_does_not_promise_is_deterministic_to_it(spark: SparkSession) -> None:
    """So that such queries skip files: only what is not deterministic opens all."""
    values = "first(id), last(id), any_value(id), collect_list(id), collect_set(id), max_by(id, 1), mode(id), approx_count_distinct(id)"
    assert spark.sql(f"SELECT {values} FROM range(3)")._jdf.queryExecution().analyzed().deterministic()


# --- settings -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def registered(spark: SparkSession, classes: Classes) -> set[str]:
    """Every key that Spark SQL, Hive's wiring and Delta know, older names of them included."""
    for more in ("org.apache.spark.sql.internal.StaticSQLConf", "org.apache.spark.sql.hive.HiveUtils"):
        classes.singleton(more)
    if has_delta(spark):
        classes.singleton("org.apache.spark.sql.delta.sources.DeltaSQLConf")
    entries = classes.listed(classes.singleton("org.apache.spark.sql.internal.SQLConf").getConfigEntries())
    older = ",".join(entry.alternatives().mkString(",") for entry in entries)
    return {str(entry.key()) for entry in entries} | set(filter(None, older.split(",")))


def test_every_setting_is_judged(registered: set[str]) -> None:
    assert len(registered) > 600
    assert sorted(key for key in registered if kind_of_setting(key) == "unknown") == []


def test_every_setting_of_a_session_is_judged(spark: SparkSession) -> None:
    told = str(spark.conf._jconf.getAllAsJava().keySet().toString()).strip("[]").split(", ")
    assert [key for key in told if kind_of_setting(key) == "unknown"] == []


def test_no_setting_is_in_two_lists() -> None:
    assert not HARMLESS & MEANING and not HARMLESS & READING and not MEANING & READING
    assert ONLY_WITH_FIELD_IDS < READING


def test_no_judged_setting_is_stale(delta: SparkSession, registered: set[str]) -> None:
    if not delta.version.startswith(NEWEST):
        pytest.skip("lists are of the newest Spark")
    judged = (HARMLESS | MEANING | READING) - OF_NEXT - OF_OTHERS
    ours = [name for name in judged if name.startswith(("spark.sql.", "spark.databricks."))]
    whole = [
        name for name in [*ours, *(WRITING.keys() - ENGINES_OFF)] if not name.endswith("*") and name not in registered
    ]
    families = [name[:-1] for name in ours if name.endswith("*")]
    assert whole == []
    assert [name for name in families if not any(key.startswith(name) for key in registered)] == []


@pytest.mark.parametrize(
    "key, kind",
    [
        ("spark.sql.ansi.enabled", "meaning"),
        ("spark.sql.session.timeZone", "meaning"),
        ("spark.sql.legacy.timeParserPolicy", "meaning"),
        ("spark.sql.legacy.thingOfTomorrow", "meaning"),
        ("spark.sql.legacy.parquet.datetimeRebaseModeInRead", "reading"),
        ("spark.sql.caseSensitive", "reading"),
        ("spark.sql.files.ignoreCorruptFiles", "reading"),
        ("spark.sql.optimizer.metadataOnly", "reading"),
        ("spark.sql.optimizer.excludedRules", "harmless"),
        ("spark.sql.shuffle.partitions", "harmless"),
        ("spark.sql.catalog.lake.warehouse", "harmless"),
        ("spark.databricks.delta.properties.defaults.enableChangeDataFeed", "harmless"),
        ("spark.hadoop.fs.s3a.endpoint", "harmless"),
        ("hedgerow.enabled", "harmless"),
        ("parquet.private.read.filter.predicate", "unknown"),
        ("spark.hadoop.mapreduce.input.pathFilter.class", "unknown"),
        ("spark.sql.parquet.thingOfTomorrow", "unknown"),
        ("spark.sql", "unknown"),
        ("mine", "unknown"),
        ("spark.comet.enabled", "harmless"),
        ("spark.comet.expression.Cast.allowIncompatible", "meaning"),
        ("spark.comet.scan.unsignedSmallIntSafetyCheck", "reading"),
        ("spark.hadoop.hive.metastore.client.factory.class", "harmless"),
        ("spark.hadoop.mapreduce.outputcommitter.factory.scheme.s3a", "harmless"),
        ("spark.sql.iceberg.vectorization.enabled", "harmless"),
    ],
)
def test_kinds(key: str, kind: str) -> None:
    assert kind_of_setting(key) == kind


# --- reader options -----------------------------------------------------------------------------------


def test_every_reader_option_is_judged(spark: SparkSession, classes: Classes) -> None:
    refused = frozenset[str]().union(*_refused("options"))
    assert not HARMLESS_OPTIONS & refused
    sources = "org.apache.spark.sql.execution.datasources."
    options = {"ignoreCorruptFiles", "ignoreMissingFiles"}  # FileSourceOptions has no registry
    for known in ("parquet.ParquetOptions", "FileIndexOptions"):
        options |= {str(name) for name in classes.listed(classes.singleton(sources + known).getAllOptions())}
    if has_delta(spark):
        delta = classes.singleton("org.apache.spark.sql.delta.DeltaOptions")
        options |= {str(name) for name in classes.listed(delta.validOptionKeys())}
    lower = {name.lower() for name in options}
    assert len(lower) > 10
    assert lower - HARMLESS_OPTIONS - refused == set()


def test_harmless_options() -> None:
    assert is_harmless_option("Path") and is_harmless_option("fs.s3a.endpoint")
    assert not is_harmless_option("mergeSchema")


def test_written_values_are_judged_and_known(delta: SparkSession) -> None:
    """Each is accepted by the check of its own setting."""
    before = {key: delta.conf.get(key, None) for key in WRITING}
    try:
        for key, value in WRITING.items():
            assert kind_of_setting(key) != "unknown"
            delta.conf.set(key, value)
    finally:
        for key, old in before.items():
            delta.conf.unset(key) if old is None else delta.conf.set(key, old)
