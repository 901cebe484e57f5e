"""The command `hedgerow`: every sub-command reads its arguments, makes one call and hands the answer to `Output`.

Data goes to standard output; warnings, errors and progress go to standard error. Nothing heavy is imported before a
command runs, so that asking for help is quick.
"""

from __future__ import annotations

import signal

from hedgerow.cli.app import app
from hedgerow.cli.auto_command import auto
from hedgerow.cli.demo_command import demo
from hedgerow.cli.examples import EXAMPLES, Command, epilog
from hedgerow.cli.flags import with_flags
from hedgerow.cli.jar_command import jar
from hedgerow.cli.layout_commands import advise, apply, learn, score
from hedgerow.cli.log_commands import calibrate, import_log, log
from hedgerow.cli.query_command import query
from hedgerow.cli.table_commands import (
    describe,
    doctor,
    explain,
    files,
    history,
    relearn,
    repair,
    rollback,
    show,
    verify,
)
from hedgerow.core.signals import as_if_interrupted

TABLE_COMMANDS = (verify, describe, show, explain, files, doctor, history, rollback, repair, relearn)
for command in (learn, advise, score, apply, query, demo, *TABLE_COMMANDS, log, auto, calibrate, jar, import_log):
    name = command.__name__.replace("_", "-")
    app.command(name, cls=Command, epilog=epilog(EXAMPLES[name]))(with_flags(command))


def main() -> None:
    signal.signal(signal.SIGTERM, as_if_interrupted)
    app(prog_name="hedgerow")
