"""Settings, extensions and plugins that limit skipping, and the line that lifts a limit."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from hedgerow.spark.session_settings import TRUSTED, limits, relevant_settings, sentences
from hedgerow.tables.settings_fit import check_settings, difference

EXTENSIONS, PLUGINS = "spark.sql.extensions", "spark.plugins"
UNKNOWN = {PLUGINS: "org.other.Plugin", "org.other.mode": "fast"}


def trusting(names: str, settings: Mapping[str, str]) -> dict[str, str]:
    return relevant_settings({**settings, TRUSTED: names})


def named(settings: Mapping[str, str]) -> list[str]:
    return [limit.name for limit in limits(relevant_settings(settings))]


def test_settings_that_matter_are_kept() -> None:
    changed = {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.parquet.fieldId.read.enabled": "true",
        "spark.version": "4.2",
        EXTENSIONS: "org.other.Extension, io.delta.sql.DeltaSparkSessionExtension",
    }
    kept = {"spark.sql.ansi.enabled": "false", "spark.version": "4.2", EXTENSIONS: "org.other.Extension"}
    assert relevant_settings(changed) == kept


# What people load, with the settings that go with it.
LOADED = {
    "Delta": {EXTENSIONS: "io.delta.sql.DeltaSparkSessionExtension"},
    "Iceberg": {
        EXTENSIONS: "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.iceberg.vectorization.enabled": "false",
    },
    "Unity Catalog": {
        "spark.sql.catalog.unity": "io.unitycatalog.spark.UCSingleCatalog",
        "spark.sql.catalog.unity.token": "secret",
    },
    "Sedona": {
        EXTENSIONS: "org.apache.sedona.viz.sql.SedonaVizExtensions,org.apache.sedona.sql.SedonaSqlExtensions",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.sedona.viz.core.Serde.SedonaVizKryoRegistrator",
        "sedona.join.numpartition": "8",
    },
    "DataFlint": {
        PLUGINS: "io.dataflint.spark.SparkDataflintPlugin",
        EXTENSIONS: "org.apache.spark.dataflint.DataFlintInstrumentationExtension",
        "spark.dataflint.telemetry.enabled": "false",
    },
    "OpenLineage": {
        "spark.extraListeners": "io.openlineage.spark.agent.OpenLineageSparkListener",
        "spark.openlineage.namespace": "sales",
    },
    "Datadog": {"spark.datadog.service": "sales", "spark.driver.extraJavaOptions": "-javaagent:dd-java-agent.jar"},
    "Glue": {
        "spark.hadoop.hive.metastore.client.factory.class": "com.amazonaws.glue.catalog.metastore.Factory",
        "spark.hadoop.aws.glue.catalog.separator": "/",
    },
    "S3 committers": {
        "spark.hadoop.fs.s3a.committer.name": "magic",
        "spark.hadoop.mapreduce.outputcommitter.factory.scheme.s3a": "org.apache.hadoop.fs.s3a.commit.Factory",
        "spark.sql.sources.commitProtocolClass": "org.apache.spark.internal.io.cloud.PathOutputCommitProtocol",
        "spark.sql.parquet.output.committer.class": "org.apache.spark.internal.io.cloud.BindingParquetOutputCommitter",
    },
    "beeline": {"hive.server2.thrift.resultset.default.fetch.size": "1000"},
    "S3": {"fs.s3a.access.key": "k", "spark.hadoop.fs.s3a.aws.credentials.provider": "p"},
    "Spark Connect": {PLUGINS: "org.apache.spark.sql.connect.SparkConnectPlugin"},
    "an application": {"mine": "1", "spark.mine": "2", "spark.hadoop.mine": "3"},
}


@pytest.mark.parametrize("name", LOADED)
def test_known_code_and_its_settings_are_harmless(name: str) -> None:
    assert relevant_settings(LOADED[name]) == {}


@pytest.mark.parametrize(
    "key", ["spark.sql.new", "parquet.private.read.filter.predicate", "spark.hadoop.mapreduce.input.pathFilter.class"]
)
def test_settings_of_readers_stay_unknown(key: str) -> None:
    assert relevant_settings({key: "1"}) == {key: "1"}
    assert difference({}, relevant_settings({key: "1"})) is not None
    assert trusting(key, {key: "1"}) == {TRUSTED: key}


def test_settings_beside_unknown_code_are_unknown() -> None:
    assert relevant_settings(UNKNOWN) == UNKNOWN
    assert difference({}, relevant_settings(UNKNOWN)) is not None
    assert relevant_settings({**UNKNOWN, PLUGINS: "io.dataflint.spark.SparkDataflintPlugin"}) == {}
    assert difference({}, relevant_settings({PLUGINS: "org.other.Plugin"})) == (
        "meaning",
        "spark.plugins is not what it was when the table was written",
    )


def test_trust_lifts_a_limit() -> None:
    assert named(UNKNOWN) == ["org.other.Plugin"]  # its settings follow it
    for names in ("org.other.Plugin", "org.other.*", "another, org.other.*"):
        assert difference({}, trusting(names, UNKNOWN)) is None
        assert difference(relevant_settings(UNKNOWN), trusting(names, {})) is None, "written before it was trusted"
    assert difference({}, trusting("org.others.*", UNKNOWN)) is not None
    assert difference({}, trusting("spark.sql.ansi.enabled", {"spark.sql.ansi.enabled": "false"})) is None


# Comet's plugin adds the extension by itself.
COMET = {
    PLUGINS: "org.apache.spark.CometPlugin",
    EXTENSIONS: "org.apache.comet.CometSparkSessionExtensions",
    "spark.shuffle.manager": "org.apache.spark.sql.comet.execution.shuffle.CometShuffleManager",
    "spark.comet.enabled": "true",
    "spark.comet.exec.enabled": "true",
    "spark.memory.offHeap.size": "1g",
}


def test_comet_leaves_conditions_on_plain_columns() -> None:
    now = relevant_settings(COMET)
    kind, reason = difference({}, now) or ("", "")
    assert kind == "meaning" and reason.startswith("Comet")
    assert difference(now, now) == (kind, reason), "Spark itself evaluates what is stored"
    assert difference(now, {}) is None
    check_settings("rows cannot be appended", {}, now)


@pytest.mark.parametrize("plugin", ["com.nvidia.spark.SQLPlugin", "org.apache.gluten.GlutenPlugin"])
def test_untested_engines_are_refused(plugin: str) -> None:
    now = relevant_settings({PLUGINS: plugin})
    kind, reason = difference(now, now) or ("", "")
    assert kind == "reading" and "not tested" in reason
    assert difference({}, trusting(plugin, {PLUGINS: plugin})) is None


@pytest.mark.parametrize(
    "settings",
    [COMET, UNKNOWN, {PLUGINS: "com.nvidia.spark.SQLPlugin", "spark.rapids.sql.enabled": "true"}, {"parquet.new": "1"}],
)
def test_the_line_lifts_all_limits(settings: dict[str, str]) -> None:
    *found, line = sentences(relevant_settings(settings))
    assert found and all(": " in sentence for sentence in found)
    (names,) = re.findall(rf"SET {TRUSTED}=(\S+)", line)
    now = trusting(names, settings)
    assert not list(sentences(now)) and difference({}, now) is None


def test_nothing_is_said_without_limits() -> None:
    assert list(sentences(relevant_settings({"spark.sql.ansi.enabled": "false", **LOADED["OpenLineage"]}))) == []
