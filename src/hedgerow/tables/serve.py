"""Answers the rules of the JVM that has started this process: `spark.sql.extensions=hedgerow.HedgerowExtensions`.

Requests are lines of a number and JSON on standard input, answers the same on standard output (see `spark/wire`). The
process reads tables through the JVM, by the gateway that Spark opens for Python. It ends when the JVM ends, since then
its input does.
"""

from __future__ import annotations

import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TYPE_CHECKING, Any, BinaryIO

from hedgerow.spark import wire
from hedgerow.spark.optimizer.jvm_facts import settings
from hedgerow.spark.session_settings import sentences
from hedgerow.spark.start.jar import lists
from hedgerow.tables.answers import Answers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_THREADS = 16  # requests that are answered at the same time


def main() -> None:
    """Answer until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a shell is for the query, not for this process
    output = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what libraries print must not come between answers
    spark = session_of_the_jvm()
    for sentence in sentences(settings(spark)):
        print(f"Hedgerow: {sentence}", file=sys.stderr, flush=True)
    serve(sys.stdin.buffer, output, Answers(spark))
    os._exit(0)  # threads may still wait for a JVM that is gone


def serve(requests: BinaryIO, output: BinaryIO, answers: Answers) -> None:
    lock = Lock()

    def say(number: int, message: str) -> None:
        with lock:
            output.write(f"{number} {message}\n".encode())

    def answer(line: bytes) -> None:
        number, _, request = line.decode().partition(" ")
        say(int(number), answers.apply(request))

    say(0, wire.write(lists()))
    pool = ThreadPoolExecutor(_THREADS)
    for line in requests:
        pool.submit(answer, line)


def session_of_the_jvm() -> SparkSession:
    """Return a session in the JVM whose gateway the environment names."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    gateway: Any = launch_gateway()  # type: ignore[no-untyped-call]
    java = gateway.jvm.org.apache.spark.sql.classic.SparkSession.active().newSession()
    context = gateway.jvm.JavaSparkContext(java.sparkContext())
    conf = SparkConf(_jconf=context.getConf())
    handler = signal.getsignal(signal.SIGINT)
    spark = SparkSession(SparkContext(gateway=gateway, jsc=context, conf=conf), java)
    signal.signal(signal.SIGINT, handler)  # PySpark has set its own
    return spark


if __name__ == "__main__":
    main()
