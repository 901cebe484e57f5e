"""Runs the generator of TPC-H's tables."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from hedgerow.core.errors import HedgerowError


def generate(folder: Path, scale: float, tables: Sequence[str], parts: int) -> None:
    """Write tables of TPC-H as Parquet files, each into its folder."""
    installed = Path(sys.executable).with_name("tpchgen-cli")
    program = installed if installed.exists() else shutil.which("tpchgen-cli")
    if program is None:
        raise HedgerowError("the tables of TPC-H need tpchgen-cli, which is missing: pip install 'hedgerow[bench]'")
    options = ["-s", f"{scale:g}", "-T", ",".join(tables), "--parts", str(parts), "-o", str(folder), "--quiet"]
    subprocess.run([program, "parquet", *options], check=True)
