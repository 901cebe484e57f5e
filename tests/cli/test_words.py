"""The words of the command line: types of parameters, help texts, the session that they ask for; without Spark."""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import sys
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from hedgerow.cli import app as cli_app
from hedgerow.cli import commands as cli
from hedgerow.cli.examples import EXAMPLES
from hedgerow.cli.flags import _value, learner_params
from hedgerow.cli.output import Output
from hedgerow.core.errors import HedgerowError
from hedgerow.spark.start.jvm_output import start_failure


def test_parameters_have_the_learners_types() -> None:
    assert learner_params("zorder", ["columns=a", "most=2"]) == {"columns": ("a",), "most": 2}
    assert learner_params("hilbert", ["columns=a, 2"]) == {"columns": ("a", "2")}
    assert learner_params("range", ["columns="]) == {"columns": ()}
    assert [_value(kind, "1") for kind in (int, float, str, int | None)] == [1, 1.0, "1", 1]
    assert _value(bool, "False") is False
    for words, told in {"most=few": "cannot be 'few'", "best=3": "takes columns, most"}.items():
        with pytest.raises(HedgerowError, match=told):
            learner_params("zorder", [words])


def test_session_is_as_asked_for_and_stopped_on_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    stopped: list[bool] = []

    class Session:
        def stop(self) -> None:
            stopped.append(True)

    def start(memory: str, master: str, **settings: str) -> Session:
        asked.append((memory, master, settings))
        return Session()

    monkeypatch.setattr("hedgerow.spark.start.session.session", start)
    options = cli_app.Options("local[2]", "1g", {"spark.sql.ansi.enabled": "true"})
    with pytest.raises(KeyError), cli_app._session(options):
        raise KeyError
    assert asked == [("1g", "local[2]", {"spark.log.level": "OFF", "spark.sql.ansi.enabled": "true"})]
    assert stopped == [True]


def test_why_a_jvm_did_not_start() -> None:
    usual = "WARNING: Using incubator modules: x\nUsing Spark's default log4j profile: y\n26/01/01 WARN Utils: z\n\n"
    assert start_failure(io.StringIO(usual)) is None
    assert start_failure(io.StringIO(usual + "Invalid maximum heap size: -Xmx4x\nError: no\n")) == (
        "Invalid maximum heap size: -Xmx4x"
    )
    assert start_failure(io.StringIO(usual + 'Exception in thread "main" org.x.SparkException: No\n\tat a.b\n')) == "No"


def test_everything_has_a_help_text() -> None:
    group: Any = typer.main.get_command(cli.app)
    own = "advise demo learn score apply query explain files show verify describe doctor jar history rollback repair relearn log import-log auto calibrate"
    assert set(group.commands) == set(own.split())
    for command in [group, *group.commands.values()]:
        assert command.help
        assert len(command.help.split("\n")[0].split(". ")[0]) < 110
        for param in command.params:
            assert param.help, (command.name, param.name)


def test_examples_parse() -> None:
    group: Any = typer.main.get_command(cli.app)
    assert set(EXAMPLES) == set(group.commands)
    for name, command in {"": group, **group.commands}.items():
        shown = CliRunner().invoke(cli.app, [name, "--help"] if name else ["--help"]).output
        examples = re.search(r"^Examples?:\n\n((?:    .+\n)+)", shown, re.M)
        assert examples, name
        for example in examples[1].splitlines():
            if name == "jar":  # its answer is a part of another program's command
                assert "$(hedgerow jar)" in example
                continue
            first, *words = shlex.split(example)
            assert first == "hedgerow"
            parent = group.make_context(first, words)  # options of the session, and the rest
            rest = [*getattr(parent, "_protected_args", ()), *parent.args]
            chosen, own, arguments = group.resolve_command(parent, rest)
            assert not name or own is command, example
            own.make_context(chosen, arguments, parent=parent)


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys\nfrom typer.testing import CliRunner\nfrom hedgerow.cli.commands import app\n"
        "assert CliRunner().invoke(app, ['learn', '--help']).exit_code == 0\n"
        "print({'numpy', 'pyarrow', 'pyspark', 'sqlglot'} & set(sys.modules))"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "set()\n"


def test_messages_name_flags_in_place_of_arguments() -> None:
    learn = typer.main.get_command(cli.app).commands["learn"]  # type: ignore[attr-defined]
    for message, told in {
        "name the queries' table with table=": "name the queries' table with --table",
        "trees= and given= exclude each other": "--trees and --given exclude each other",
        "learn with learner='mto': a, b": "learn with --learner mto: a, b",
        "block_rows=, or to=": "--block-rows, or to=",
        "the folder table=3 hides its files": "the folder table=3 hides its files",
    }.items():
        assert cli_app.with_flags(learn, message) == told


def test_a_list_in_a_message_stays_in_lines(capsys: pytest.CaptureFixture[str]) -> None:
    Output.line("warning", "2 of 3 queries are left out:\n  query q1\tis bad\n  query q2 is worse")
    assert capsys.readouterr().err == "warning: 2 of 3 queries are left out:\n  query q1 is bad\n  query q2 is worse\n"
