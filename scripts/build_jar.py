"""Compile `java/` against the installed PySpark, into the jar that the package brings.

Eclipse's compiler needs no more than the Java that Spark runs on. (`javac` does not extend Spark's scan of files, since
Scala gave its methods other types.) It and Delta's jars come from Maven Central, if they are not on this machine.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from dataclasses import dataclass
from pathlib import Path

from hedgerow.spark.start.delta_jars import DELTA, VARIABLE, cached_jars, named_jars
from hedgerow.spark.start.jar import JAR
from hedgerow.spark.start.java import NO_JAVA, cache_folder, find_java

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "java" / "src" / "main" / "java"
RELEASE = "17"  # the oldest Java that Spark 4 runs on
MAVEN = "https://repo1.maven.org/maven2"
ONCE = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]  # a compiler that runs once: half the time
WARNINGS = ["-warn:unusedImport,unusedLocal,unusedPrivate,fallthrough,raw,unchecked", "-failOnWarning"]
EPOCH = (1980, 1, 1, 0, 0, 0)  # the time of every entry: the same sources give the same bytes
NOTICES = ("LICENSE", "NOTICE")  # the jar has them too, since it may be passed on by itself


@dataclass(frozen=True)
class Artifact:
    """A jar on Maven Central, and its SHA-256."""

    group: str
    name: str
    version: str
    digest: str

    @property
    def file_name(self) -> str:
        return f"{self.name}-{self.version}.jar"

    @property
    def url(self) -> str:
        return f"{MAVEN}/{self.group.replace('.', '/')}/{self.name}/{self.version}/{self.file_name}"


ECJ = Artifact("org.eclipse.jdt", "ecj", "3.42.0", "29f6d3918ee02db4400c103bc25dd90a22491c3a395867d9393070cb96a7dd29")
DELTA_JARS = (
    Artifact(
        "io.delta", "delta-spark_4.2_2.13", DELTA, "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead"
    ),
    Artifact("io.delta", "delta-storage", DELTA, "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=Path, default=SOURCES)
    parser.add_argument("--out", type=Path, default=JAR)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hedgerow-jar-") as folder:
        compile_into(Path(folder), args.sources)
        pack(Path(folder), args.out)


def compiler() -> list[str]:
    """Return the command that compiles, as far as the class path."""
    home = find_java()
    if home is None:
        sys.exit(NO_JAVA)
    # A Java without a compiler has no record of older releases, which --release needs.
    java = [str(home / "bin" / "java"), *ONCE, "-jar", str(fetched(ECJ))]
    return [*java, "-source", RELEASE, "-target", RELEASE, "-encoding", "UTF-8", *WARNINGS]


def compile_into(folder: Path, sources: Path) -> None:
    files = sorted(map(str, sources.rglob("*.java")))
    places = ["-d", str(folder), "-cp", os.pathsep.join(class_path())]
    run = subprocess.run([*compiler(), *places, *files], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"the compiler failed:\n{run.stderr}{run.stdout}")


def class_path() -> list[str]:
    """Return the jars of the installed PySpark, and Delta's."""
    import pyspark

    spark = sorted(map(str, Path(pyspark.__file__).with_name("jars").glob("*.jar")))
    return [*spark, *delta_jars()]


def delta_jars() -> list[str]:
    here = named_jars() if os.environ.get(VARIABLE) else cached_jars()
    return here or [str(fetched(jar)) for jar in DELTA_JARS]


def fetched(artifact: Artifact) -> Path:
    """Return the jar from the cache; fetch it once."""
    path = cache_folder() / artifact.file_name
    if not path.exists():
        try:
            with urllib.request.urlopen(artifact.url, timeout=60) as response:
                content = response.read()
        except OSError as error:
            sys.exit(f"{artifact.url} cannot be fetched: {error}")
        if hashlib.sha256(content).hexdigest() != artifact.digest:
            sys.exit(f"{artifact.url} is not the file that this script knows")
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, content)
    return path


def pack(classes: Path, jar: Path) -> None:
    with tempfile.TemporaryDirectory(dir=jar.parent) as folder:
        draft = Path(folder) / jar.name
        files = {f"META-INF/{name}": ROOT / name for name in NOTICES}
        files |= {path.relative_to(classes).as_posix(): path for path in sorted(classes.rglob("*.class"))}
        with zipfile.ZipFile(draft, "w") as out:
            for name, path in files.items():
                out.writestr(zipfile.ZipInfo(name, EPOCH), path.read_bytes(), zipfile.ZIP_DEFLATED)
        os.replace(draft, jar)


def write(path: Path, content: bytes) -> None:
    """Write a file in one step, since other processes may fetch the same."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as draft:
        draft.write(content)
    os.replace(draft.name, path)


if __name__ == "__main__":
    main()
