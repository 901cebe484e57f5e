"""Let hatch put a fresh jar into the wheel; PySpark, which compiling takes, is fetched only if the jar is stale."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent.parent
PYSPARK = "pyspark==4.2.0"
LATER = "HEDGEROW_JAR_LATER"  # set by the bootstrap, which builds the jar after PySpark is installed


class JarHook(BuildHookInterface):  # type: ignore[misc]
    """A step of the build of a wheel; an editable install builds its jar when it needs one."""

    def dependencies(self) -> list[str]:
        # Hatch asks for an editable install too, which does without.
        return [PYSPARK] if is_stale() and os.environ.get(LATER) is None else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "standard" and is_stale():
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}  # pip puts PySpark there
            if subprocess.run([sys.executable, ROOT / "scripts" / "build_jar.py"], env=environment).returncode:
                raise RuntimeError("the jar cannot be built, for the reason above")


def is_stale() -> bool:
    sys.path.insert(0, str(ROOT / "src"))
    from hedgerow.spark.start import jar

    return jar.is_stale()
