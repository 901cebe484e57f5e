"""Rewrites files of a Delta table through Py4J, in a transaction with the steps of OPTIMIZE; or appends rows.

    snapshot -> read files -> write files -> commit (adds and removes, dataChange=false)
                                             others appended meanwhile: their rows stay
                                             others removed a file that was read: Conflict, and nothing is changed
    snapshot -> write rows, as Delta does -> commit (adds)

The new files are invisible until the commit.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from hedgerow.spark.start.session import spark_errors
from hedgerow.spark.storage.delta_log import Snapshot, conflict_of
from hedgerow.spark.storage.folder import Folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The setter of a private field of Delta's writer: the folder for new files. No option sets it.
_SET_FOLDER = "org$apache$spark$sql$delta$files$TransactionalWrite$_setter_$deltaDataSubdir_$eq"
_MAX_WAIT_SECONDS = 20.0  # for the running tasks of a failed rewrite to end


def begin_rewrite(snapshot: Snapshot) -> Rewrite:
    """Start a transaction on this version of the table."""
    log = snapshot.log
    jvm = log.jvm
    java = log.java.startTransaction(log.catalog, jvm.scala.Option.apply(snapshot.java))
    return Rewrite(snapshot, java, f"hedgerow-{uuid4().hex[:12]}")


@dataclass(frozen=True)
class Rewrite:
    """A transaction that either replaces files without a change of rows, or appends rows.

    `folder`: the folder inside of the table for the new files. No other transaction writes there, so all files of a
    failed write can be deleted, also those that Delta did not report."""

    snapshot: Snapshot
    java: Any
    folder: str

    def write(self, frame: DataFrame, options: Mapping[str, str]) -> Written:
        """Write the frame's rows into new files, which are invisible until `commit`."""
        utils = self.snapshot.log.jvm.org.apache.spark.api.python.PythonUtils
        with self._in_own_folder():
            some = self.snapshot.log.jvm.scala.Option.apply(self._options(options))
            actions = self.java.writeFiles(frame._jdf, some, True, utils.toSeq([]))
        written = [_json_of(actions.apply(i)) | self._own for i in range(actions.size())]
        return self._of_same_rows(written)

    def write_new(self, frame: DataFrame, options: Mapping[str, str]) -> Any:
        """Write new rows as Delta's writer does, with its checks and generated columns; return the data to commit."""
        log = self.snapshot.log
        jvm = log.jvm
        utils, none = jvm.org.apache.spark.api.python.PythonUtils, jvm.scala.Option.empty()
        mode, nothing = jvm.org.apache.spark.sql.SaveMode.Append, utils.toSeq([])
        writer = jvm.org.apache.spark.sql.delta.commands.WriteIntoDelta(
            log.java, mode, self._options(options), nothing, utils.toScalaMap({}), frame._jdf, log.catalog, none, False
        )
        with self._in_own_folder():
            return writer.writeAndReturnCommitData(self.java, log.spark._jsparkSession, none, False)

    def commit_new(self, data: Any) -> int | None:
        """Commit new rows and return the new version, None if there are none; Conflict if others changed the table."""
        jvm = self.snapshot.log.jvm
        none = jvm.scala.Option.empty()
        utils = jvm.org.apache.spark.api.python.PythonUtils
        mode, nothing = jvm.org.apache.spark.sql.SaveMode.Append, utils.toSeq([])
        write = jvm.org.apache.spark.sql.delta.DeltaOperations.Write(
            mode, jvm.scala.Option.apply(nothing), none, none, none, none, none, none, none
        )
        actions = data.actions()
        if self._own:
            changes = (actions.apply(i) for i in range(actions.size()))
            actions = utils.toSeq([self._action(_json_of(c) | self._own) if _is_add(c) else c for c in changes])
        with self._committing():
            version = self.java.commitIfNeeded(actions, write, data.stringTags())
        log = self.snapshot.log
        log.spark.catalog.refreshByPath(log.path)  # frames that were cached before lack the new rows
        return int(version.get()) if version.isDefined() else None

    @contextmanager
    def _in_own_folder(self) -> Iterator[None]:
        """Make Delta write into `folder` while the body runs, and tag its Spark jobs for `give_up` to cancel."""
        context = self.snapshot.log.spark.sparkContext
        getattr(self.java, _SET_FOLDER)(self.snapshot.log.jvm.scala.Option.apply(self.folder))
        context.addJobTag(self.folder)
        try:
            yield
        finally:
            context.removeJobTag(self.folder)

    def _options(self, options: Mapping[str, str]) -> Any:
        jvm, conf = self.snapshot.log.jvm, self.snapshot.log.spark._jsparkSession.sessionState().conf()
        scala_options = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(dict(options))
        return jvm.org.apache.spark.sql.delta.DeltaOptions(scala_options, conf)

    @contextmanager
    def _committing(self) -> Iterator[None]:
        """Hold this machine's lock while the body commits; raise Conflict if another transaction came first."""
        log = self.snapshot.log
        try:
            with log.committing():
                yield
        except spark_errors() as error:
            conflict = conflict_of(error, log.path)
            if conflict is None:
                raise
            raise conflict from error

    @property
    def _own(self) -> dict[str, str]:
        """The fields that mark a file as ours in a liquid table, where OPTIMIZE leaves other providers' files alone."""
        return {"clusteringProvider": "hedgerow"} if "clustering" in self.snapshot.features else {}

    def _of_same_rows(self, adds: Sequence[dict[str, Any]]) -> Written:
        """Return the files without the mark of new data that `writeFiles` gives them.

        With the mark, every append would conflict, and the change feed would show all rows."""
        unchanged = [{**add, "dataChange": False} for add in adds]
        return Written(self.snapshot, [(add, self._action(add)) for add in unchanged])

    def _action(self, add: Mapping[str, Any]) -> Any:
        return self.snapshot.log.jvm.org.apache.spark.sql.delta.actions.Action.fromJson(json.dumps({"add": add}))

    def give_up(self) -> None:
        """Wait for tasks that still write, and delete the written files; call it only before `commit`."""
        context = self.snapshot.log.spark.sparkContext
        context.cancelJobsWithTag(self.folder)
        tracker, deadline = context._jsc.sc().statusTracker(), time.monotonic() + _MAX_WAIT_SECONDS
        while time.monotonic() < deadline and _active_tasks(tracker, self.folder):
            time.sleep(0.1)
        Folder(self.snapshot.log.spark, self.snapshot.log.path).delete(self.folder)

    def bring_back(self, older: Snapshot, names: Sequence[str]) -> Written:
        """Return the files of an older version, ready to be committed again."""
        listed = older.adds(names)
        return self._of_same_rows([_json_of(listed.get(i)) for i in range(listed.size())])

    def commit(self, added: Written, removed: Sequence[str], tags: Mapping[str, str]) -> int:
        """Commit the rewrite and return the new version; raise Conflict if another transaction came first."""
        log = self.snapshot.log
        jvm = log.jvm
        utils, none = jvm.org.apache.spark.api.python.PythonUtils, jvm.scala.Option.empty()
        nothing, now = utils.toSeq([]), int(time.time() * 1000)
        old = self.snapshot.adds(removed)
        removes = [old.get(i).removeWithTimestamp(now, False) for i in range(old.size())]
        self.java.trackFilesRead(utils.toSeq(old))
        self.java.trackReadPredicates(nothing, False, True)
        sizes, files = [int(add["size"]) for add, _ in added.actions], self.snapshot.files
        self._set_metrics(
            numAddedFiles=len(sizes),
            numRemovedFiles=len(removed),
            numAddedBytes=sum(sizes),
            numRemovedBytes=sum(int(files.sizes[files.place[n]]) for n in removed),
        )
        operation = jvm.org.apache.spark.sql.delta.DeltaOperations.Optimize(nothing, nothing, False, none, False)
        actions = utils.toSeq([java for _, java in added.actions] + removes)
        with self._committing():
            return int(self.java.commit(actions, operation, utils.toScalaMap(self._tags(tags))))

    def _tags(self, tags: Mapping[str, str]) -> dict[str, str]:
        tracking = self.snapshot.log.jvm.org.apache.spark.sql.delta.RowTracking
        tracks_rows = tracking.isEnabled(self.snapshot.java.protocol(), self.snapshot.java.metadata())
        return {**tags, **({"delta.rowTracking.preserved": "true"} if tracks_rows else {})}

    def _set_metrics(self, **metrics: int) -> None:
        """Set the metrics that DESCRIBE HISTORY shows beside the operation."""
        spark, jvm = self.snapshot.log.spark, self.snapshot.log.jvm
        java_metrics = {}
        for name, value in metrics.items():
            metrics_of_spark = jvm.org.apache.spark.sql.execution.metric.SQLMetrics
            java_metrics[name] = metrics_of_spark.createMetric(spark._jsparkSession.sparkContext(), name)
            getattr(java_metrics[name], "set")(value)  # noqa: B009  # mypy takes a plain `.set` for the builtin
        scala = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(java_metrics)
        self.java.registerSQLMetrics(spark._jsparkSession, scala)


@dataclass(frozen=True)
class Written:
    """New files as JSON and as Delta's own actions."""

    snapshot: Snapshot
    actions: list[tuple[dict[str, Any], Any]]

    @property
    def sizes(self) -> dict[str, int]:
        return {add["path"]: int(add["size"]) for add, _ in self.actions}

    def frame(self) -> DataFrame:
        utils = self.snapshot.log.jvm.org.apache.spark.api.python.PythonUtils
        return self.snapshot.frame_of(utils.toSeq([java for _, java in self.actions]), "batch")


def _is_add(action: Any) -> bool:
    return bool(action.getClass().getSimpleName() == "AddFile")


def _json_of(add: Any) -> dict[str, Any]:
    return dict(json.loads(add.json())["add"])


def _active_tasks(tracker: Any, tag: str) -> int:
    """Return the number of tasks that run in jobs with this tag."""
    jobs = (tracker.getJobInfo(job) for job in tracker.getJobIdsForTag(tag))
    stages = (tracker.getStageInfo(stage) for job in jobs if job.isDefined() for stage in job.get().stageIds())
    return sum(int(stage.get().numActiveTasks()) for stage in stages if stage.isDefined())
