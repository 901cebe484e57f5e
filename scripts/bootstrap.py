"""Make .venv with all that the Makefile's targets need, and find a Java for Spark.

Standard library only, since it runs before anything is installed. What is done already is not done again.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "installed"
JAVA_HOME = VENV / "java-home"
EXTRAS = "dev,bench,delta,rl"


def main() -> None:
    wanted = fingerprint()
    if not STAMP.exists() or STAMP.read_text() != wanted:
        make_venv()
        install()
        STAMP.write_text(wanted)
    if not java_is_known():
        look_for_java()
    build_jar()


def fingerprint() -> str:
    """Return a digest of all that the environment depends on; an editable install also depends on the folder."""
    content = (ROOT / "pyproject.toml").read_bytes() + f"{ROOT} {EXTRAS}".encode()
    return hashlib.sha256(content).hexdigest()


def make_venv() -> None:
    if succeeds(PYTHON, "-m", "pip", "--version"):
        return
    command = venv_command()
    if command is None:
        sys.exit(
            f"{sys.executable} cannot make virtual environments: install its venv module "
            "(on Debian and Ubuntu the package python3-venv) or virtualenv."
        )
    say("making .venv")
    if subprocess.run([*command, "--clear", VENV]).returncode:
        sys.exit("Making .venv failed, for the reason above.")


def venv_command() -> list[str] | None:
    # Debian ships venv without ensurepip, and such a venv fails half-way.
    if has_module("venv") and has_module("ensurepip"):
        return [sys.executable, "-m", "venv"]
    if has_module("virtualenv"):
        return [sys.executable, "-m", "virtualenv"]
    if tool := shutil.which("virtualenv"):
        return [tool, "--python", sys.executable]
    return None


def install() -> None:
    say("installing the dependencies into .venv (the first time a few minutes: Spark is a big download)")
    if subprocess.run(pip_install(f".[{EXTRAS}]"), cwd=ROOT, env=environment()).returncode:
        sys.exit("Installing the dependencies failed, for the reason above.")


def java_is_known() -> bool:
    return JAVA_HOME.exists() and Path(JAVA_HOME.read_text().strip(), "bin", "java").exists()


def look_for_java() -> None:
    """Write the path of Java to a file; without a Java only warn, because most tests need none."""
    answer = ask_for_java()
    if answer.returncode:
        say("no Java for Spark on this machine, getting one from PyPI")
        # Hide pip's output: the warning below says what to do.
        subprocess.run(pip_install(".[jre]"), cwd=ROOT, env=environment(), capture_output=True)
        answer = ask_for_java()
    if answer.returncode:
        say(f"warning: {last_line(answer.stderr)} What needs Spark is skipped until then.")
    else:
        JAVA_HOME.write_text(answer.stdout)


def build_jar() -> None:
    """Compile the jar if a source is newer; without it only warn, because most tests need none."""
    command = "from hedgerow.spark.start.jar import jar_path; jar_path()"
    home = {"JAVA_HOME": JAVA_HOME.read_text().strip()} if JAVA_HOME.exists() else {}
    built = subprocess.run(
        [PYTHON, "-c", command], cwd=ROOT, env={**home, **os.environ}, capture_output=True, text=True
    )
    if built.returncode:
        say(f"warning: {last_line(built.stderr)} Until then, no query skips files.")


def ask_for_java() -> subprocess.CompletedProcess[str]:
    command = [str(PYTHON), "-m", "hedgerow.spark.start.java"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def pip_install(requirement: str) -> list[str]:
    pip = [str(PYTHON), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    return [*pip, "install", "--use-pep517", "--editable", requirement]  # older pips warn about Spark without it


def environment() -> dict[str, str]:
    return {**os.environ, "HEDGEROW_JAR_LATER": "1"}


def has_module(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def succeeds(*command: str | Path) -> bool:
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        return False


def last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1]


def say(text: str) -> None:
    print(f"bootstrap: {text}", file=sys.stderr)


if __name__ == "__main__":
    main()
