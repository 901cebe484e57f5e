"""Measure time and memory of each verb as the table grows, beside a plain Spark job in the same run.

learn     beside one job that counts the queries' conditions over all rows
apply     beside `repartitionByRange(files, column).sortWithinPartitions(column)` and a write into as many files
append    beside Spark's own append of the same rows to the plain table
verify    beside one job that sums a hash of all rows

Each verb runs in a session of its own, and all its processes are watched: `peak_mb` is of the driver's Python, and
`details` has the largest JVM and the largest Python worker. In local mode the JVM is driver and executor in one; with
`--learner qdtree --param master=local-cluster[2,1,1024]` executors have 1 GB. `--param verbs=learn,apply` runs some
verbs only, and `--param ways=ours` leaves out the plain jobs, where the disk has no room for their table.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.data.cache import cache_folder
from bench.options import Options
from bench.record import line, progress
from bench.suites import tpch
from bench.watched import watched

SCALES = {"quick": (0.1,), "full": (1.0, 3.0, 10.0)}
VERBS = ("learn", "apply", "append", "verify")
QUERIES, FILE_BYTES = 120, "16MB"
COLUMN, CORES, MEMORY = "l_shipdate", 2, "4g"
APPENDED_SHARE = 0.01


def run(options: Options) -> Iterator[dict[str, Any]]:
    master = options.params.get("master", f"local[{CORES}]")
    for scale in (options.sf,) if options.sf else SCALES[options.form]:
        source = tpch.lineitem(cache_folder() / "growth", scale, parts=16)
        for verb in str(options.params.get("verbs", ",".join(VERBS))).split(","):
            progress(f"growth: {verb}, scale factor {scale:g}")
            measured = {
                way: watched("bench.suites.growth", verb, way, source, f"{scale:g}", str(options.seed), master)
                for way in str(options.params.get("ways", "plain,ours")).split(",")
            }
            ours, plain = measured["ours"], measured.get("plain")
            yield line(
                suite="growth",
                params={"form": options.form, "verb": verb, **(options.params or {"cores": CORES}), "memory": MEMORY},
                sf=scale,
                rows=ours["rows"],
                blocks=ours.get("blocks"),
                rows_read=ours.get("rows_read"),
                queries=QUERIES,
                fit_seconds=ours.get("fit_seconds"),
                ratio=round(ours["seconds"] / plain["seconds"], 2) if plain else None,
                peak_mb=ours["python_mb"],
                details={
                    "seconds": round(ours["seconds"], 1),
                    **{key: ours[key] for key in ("python_mb", "jvm_mb", "worker_mb")},
                    **_of_plain(plain),
                },
                seed=options.seed,
            )


def _of_plain(plain: dict[str, Any] | None) -> dict[str, Any]:
    if plain is None:
        return {}
    return {"plain_seconds": round(plain["seconds"], 1), **{f"plain_{k}": plain[k] for k in ("jvm_mb", "worker_mb")}}


# --- one step, in a process of its own ------------------------------------------------------------


def _step(verb: str, way: str, source: str, scale: float, seed: int, master: str) -> dict[str, Any]:
    import hedgerow as hr
    from hedgerow.spark.start.session import local_session

    small = {"spark.executor.memory": f"{master.rstrip(']').split(',')[-1]}m"} if "cluster" in master else {}
    spark = local_session(MEMORY, master, **small)
    spark.sparkContext.setLogLevel("ERROR")
    place = Path(source).parent / "made"
    layout, ours, plain = place / "layout.json", str(place / "ours"), str(place / "plain")
    place.mkdir(exist_ok=True)
    texts = tpch.questions(QUERIES, scale, seed)
    workload = hr.Workload.from_sql(texts)
    frame = spark.read.parquet(source)
    measured: dict[str, Any] = {"rows": frame.count()}
    begun = time.perf_counter()
    match verb, way:
        case "learn", "ours":
            learned = hr.learn(spark, source, workload, options=hr.LearnOptions(block_bytes=FILE_BYTES, seed=seed))
            measured["seconds"] = time.perf_counter() - begun
            learned.save(str(layout))
            measured |= {"fit_seconds": learned.fit_seconds, "blocks": learned.blocks}
        case "learn", "plain":
            conditions = [text.split(" WHERE ", 1)[1] for text in texts]
            frame.selectExpr(*(f"count_if({c}) AS n{i}" for i, c in enumerate(conditions))).collect()
        case "apply", "ours":
            table = hr.apply(spark, source, hr.Learned.load(str(layout)), ours, overwrite=True)
            measured["seconds"] = time.perf_counter() - begun
            measured |= {"blocks": len(table.known), "rows_read": round(table.score(workload).rows_read, 4)}
        case "apply", "plain":
            files = hr.Learned.load(str(layout)).blocks if layout.exists() else 16
            ordered = frame.repartitionByRange(files, COLUMN).sortWithinPartitions(COLUMN)
            ordered.write.mode("overwrite").parquet(plain)
        case "append", _:
            rows = frame.sample(APPENDED_SHARE, seed)
            if way == "ours":
                hr.table(spark, ours).append(rows)
            else:
                rows.write.mode("append").parquet(plain)
        case "verify", "ours":
            hr.table(spark, ours).verify()
        case "verify", "plain":
            read = spark.read.parquet(plain)
            read.selectExpr("xxhash64(*) AS h").selectExpr("count(*)", "sum(h & 4294967295)").collect()
    measured.setdefault("seconds", time.perf_counter() - begun)
    spark.stop()
    return measured


if __name__ == "__main__":
    print(json.dumps(_step(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]), int(sys.argv[5]), sys.argv[6])))
