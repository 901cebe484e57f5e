"""Three sessions over one Spark: plain, attached, and one for `route` and `read`; and what a plan is going to open."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from pyspark.sql import SparkSession

import hedgerow as hr
from bench.comet import comet_settings
from hedgerow.spark.start.jar import conf_lines
from tests.support.light_session import LIGHT, drop_service_settings, keep_java_names

EVERY = "*"  # a scan whose files are not looked at one by one

# Walks an optimised plan: a line for each scan, with the number of its branch and the files that it opens.
_WALK = r"""
package differential;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EvalMode;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.StringType$;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.collection.Iterator;
public class Scans {
  public String of(Object plan) throws Exception {
    StringBuilder out = new StringBuilder();
    walk((TreeNode) plan, "0", out);
    return out.toString();
  }
  public String planned(org.apache.spark.sql.classic.SparkSession session, String sql) throws Exception {
    LogicalPlan plan = ((org.apache.spark.sql.classic.Dataset) session.sql(sql)).queryExecution().optimizedPlan();
    StringBuilder out = new StringBuilder(of(plan)).append("\f");
    values(plan, session.sessionState().conf().sessionLocalTimeZone(), out);
    return out.toString();
  }
  private void values(LogicalPlan at, String zone, StringBuilder out) {
    if (!((QueryPlan) at).subqueries().isEmpty()) out.append("subquery\n");
    if (at instanceof LocalRelation) {
      scala.collection.immutable.Seq columns = ((LocalRelation) at).output();
      for (Iterator rows = ((LocalRelation) at).data().iterator(); rows.hasNext();) {
        InternalRow row = (InternalRow) rows.next();
        for (int i = 0; i < columns.size(); i++) {
          Attribute column = (Attribute) columns.apply(i);
          Literal value = new Literal(row.get(i, column.dataType()), column.dataType());
          Object text = new Cast(value, StringType$.MODULE$, Option.apply(zone), EvalMode.LEGACY()).eval(null);
          String hex = text == null ? "" : "x" + java.util.HexFormat.of().formatHex(((UTF8String) text).getBytes());
          out.append(i == 0 ? "" : "\t").append(column.dataType().catalogString()).append("=").append(hex);
        }
        out.append("\n");
      }
    }
    for (Iterator each = at.children().iterator(); each.hasNext();) values((LogicalPlan) each.next(), zone, out);
  }
  private void walk(TreeNode at, String mark, StringBuilder out) throws Exception {
    if (at instanceof Project) {
      for (Iterator each = ((Project) at).projectList().iterator(); each.hasNext();) {
        Object one = each.next();
        if (one instanceof Alias && ((Alias) one).name().equals("mark__")) mark = ((Alias) one).child().toString();
      }
    }
    if (at instanceof LogicalRelation && ((LogicalRelation) at).relation() instanceof HadoopFsRelation) {
      Object location = ((HadoopFsRelation) ((LogicalRelation) at).relation()).location();
      out.append(mark);
      try {
        Object scan = location.getClass().getMethod("preparedScan", new Class[0]).invoke(location, new Object[0]);
        Object files = scan.getClass().getMethod("files", new Class[0]).invoke(scan, new Object[0]);
        for (Iterator each = ((scala.collection.Iterable) files).iterator(); each.hasNext();) {
          Object file = each.next();
          out.append("\t").append(file.getClass().getMethod("path", new Class[0]).invoke(file, new Object[0]));
        }
      } catch (NoSuchMethodException isParquet) {
        String[] files = ((HadoopFsRelation) ((LogicalRelation) at).relation()).location().inputFiles();
        for (int i = 0; i < files.length; i++) out.append("\t").append(files[i]);
      }
      out.append("\n");
    } else if (at.getClass().getName().indexOf("V2") >= 0 || at.getClass().getName().indexOf("LogicalRDD") >= 0) {
      out.append(mark).append("\t*\n");
    }
    for (Iterator each = at.children().iterator(); each.hasNext();) walk((TreeNode) each.next(), mark, out);
  }
}
"""


@dataclass(frozen=True)
class Planned:
    """The files that a plan opens, and the rows that it has by itself, as texts with their types."""

    opened: set[str]
    values: Sequence[Sequence[str | None]] = ()
    types: Sequence[str] = ()
    has_subquery: bool = False


@dataclass
class Sessions:
    """`plain` never hears of Hedgerow; `attached` is attached; `routed` makes the tables, and routes and reads."""

    plain: SparkSession
    attached: SparkSession
    routed: SparkSession
    walker: Any

    def __iter__(self) -> Any:
        return iter((self.plain, self.attached, self.routed))

    def opened(self, frame: Any) -> dict[int, set[str]]:
        """For each branch of a union, the names of the files that it opens; none where Spark needs no scan."""
        return _opened(str(self.walker.of(frame._jdf.queryExecution().optimizedPlan())))

    def planned(self, sql: str) -> Planned:
        """Plan a query in the attached session, without running it."""
        files, _, rest = str(self.walker.planned(self.attached._jsparkSession, sql)).partition("\f")
        lines = rest.splitlines()
        rows = [[cell.partition("=")[::2] for cell in line.split("\t")] for line in lines if line != "subquery"]
        values = [[bytes_text(text[1:]) if text else None for _, text in row] for row in rows]
        return Planned(
            set().union(*_opened(files).values()),
            values,
            [type_ for type_, _ in rows[0]] if rows else (),
            "subquery" in lines,
        )

    def configure(self, settings: Mapping[str, str], before: Sequence[str]) -> None:
        for session in self:
            for key in before:
                session.conf.unset(key)
            for key, value in settings.items():
                session.conf.set(key, value)


def _opened(lines: str) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for line in filter(None, lines.splitlines()):
        mark, *files = line.split("\t")
        found.setdefault(int(mark) if mark.isdigit() else -1, set()).update(map(short, files))
    return found


def bytes_text(hex_digits: str) -> str:
    """A text that is another for other bytes, valid UTF-8 or not."""
    return bytes.fromhex(hex_digits).decode("latin-1")


def short(path: str) -> str:
    """A file's name; names are unique within a table."""
    return unquote(path).rsplit("/", 1)[-1]


def started(memory: str = "2g", by_extension: bool = False, **settings: str) -> Sessions:
    """Start Spark, with Comet if HEDGEROW_COMET_JAR names its jar; `by_extension`: the JVM attaches each session."""
    os.environ.setdefault("TZ", "UTC")
    keep_java_names()
    own = {
        **LIGHT,
        "spark.driver.extraJavaOptions": "-XX:ReservedCodeCacheSize=512m -XX:+UseSerialGC -Duser.timezone=UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": tempfile.mkdtemp(prefix="differential-"),
        "spark.sql.timeType.enabled": "true",
        "spark.sql.ui.retainedExecutions": "1",
    }
    comet = comet_settings("1g")
    if comet:
        own["spark.sql.ui.retainedExecutions"] = "1000"  # their plans name the scans that were Comet's
    if by_extension:
        patient = {"spark.hedgerow.timeout": "120s", "spark.hedgerow.startTimeout": "300s"}
        settings = {**conf_lines(), **patient, **settings}
    spark = hr.session(memory, "local[2]", **{**own, **comet, **settings})
    drop_service_settings(spark)
    return over(spark, by_extension)


def over(spark: SparkSession, by_extension: bool = False) -> Sessions:
    spark.sparkContext.setLogLevel("OFF")
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):  # much of what we ask is refused
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    jvm: Any = spark._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(_WALK)
    nothing = spark.sparkContext._gateway.new_array(jvm.java.lang.Object, 0)
    walker = compiler.getClassLoader().loadClass("differential.Scans").getConstructors()[0].newInstance(nothing)
    found = Sessions(spark.newSession(), spark.newSession(), spark, walker)
    for session in found:
        session.conf.set("spark.sql.timeType.enabled", "true")
    # What several conditions share would be evaluated before each is tried by itself.
    found.plain.conf.set("spark.sql.subexpressionElimination.enabled", "false")
    if by_extension:
        found.plain.conf.set("hedgerow.enabled", "false")
    else:
        hr.attach(found.attached)
    return found
