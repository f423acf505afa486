"""The group of all commands: errors in one line, exit codes, and signals that leave no trace."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

import click

from .. import __version__
from .._inputs.identifiers import IdentifierWarning
from .._inputs.warning import did_you_mean
from . import INTERRUPTED
from .errors import warn, writing

_SIGNALS = [signal.SIGINT, signal.SIGTERM]
# Of identifiers, by whether they are left out.
_REMEDIES = {
    True: "to keep such columns, name all attributes with --attributes",
    False: "the published method keeps such columns; leave them out with --exclude",
}

_HOMES = {
    "audit": ".audit",
    "fit": ".fit",
    "apply": ".apply",
    "evaluate": ".evaluate",
    "report": ".report",
    "show": ".show",
    "demo": ".demo",
    "paper": "..paper.command",
}

_EXPORTS = ' Python exports a model: caltree.load("model.json").to_sql("duckdb"), to_onnx().'

EPILOG = """\
Files are CSV, Parquet, Arrow or JSON lines. Their ending says which: .csv, .tsv, .parquet, .pq,
.arrow, .feather, .ipc, .arrows, .jsonl or .ndjson. Names of text files may also end in .gz. The
name - is standard input or output. Rows are counted from 1, without the header.

\b
Exit codes:
  0    done
  1    something is wrong with the data, the model or a file
  2    something is wrong with the options
  130  interrupted (143: terminated)

An output file is written completely or not at all.

Python turns a model into SQL and ONNX: caltree.load("model.json").to_sql("duckdb"), to_onnx().
"""


class Stopped(BaseException):
    """A signal asked to stop; no Exception, so that nothing takes it for an error."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


class Group(click.Group):
    """Commands whose errors are one line on standard error, without a traceback.

    A command is imported when it is asked for, so that others do not wait for what it needs.
    """

    def list_commands(self, context: click.Context) -> list[str]:
        """The names of all commands, in the order of the help."""
        return list(_HOMES)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """The command of a name, or None."""
        if name not in _HOMES:
            return None
        found: click.Command = getattr(import_module(_HOMES[name], __package__), name)
        return found

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments begin with, and the other arguments."""
        try:
            return super().resolve_command(context, args)
        except click.UsageError as error:
            wants_export = args[0].lower() in ("export", "sql", "onnx")
            hint = _EXPORTS if wants_export else did_you_mean(args[0], list(_HOMES))
            raise click.UsageError(f"{error.message}{hint}", context) from None

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command and exit with its code."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, False, **extra)
        try:
            # Any other file has an error of its own by then.
            with writing("standard output"):
                code = super().main(args, prog_name, complete_var, False, **extra)
        except click.ClickException as error:
            _complain(error)
            _drop_output()
            sys.exit(error.exit_code)
        except click.Abort:
            click.echo("caltree: interrupted", err=True)
            sys.exit(INTERRUPTED)
        except Stopped as stopped:
            click.echo("caltree: interrupted; no file was changed", err=True)
            sys.exit(stopped.exit_code)
        sys.exit(code if isinstance(code, int) else 0)


class Command(click.Command):
    """A command that can be stopped at any moment and prints each warning in one line."""

    def invoke(self, context: click.Context) -> Any:
        """Run it."""
        with _stop_on_signals(), _warnings_in_one_line():
            return super().invoke(context)


@click.group(cls=Group, epilog=EPILOG)
@click.version_option(__version__, prog_name="caltree")
def caltree() -> None:
    """Trustworthy probabilities from any classifier's scores."""


def _drop_output() -> None:
    """Drop what could not be written to standard output, or Python would try again at its end."""
    if sys.stdout is None:  # it is closed
        return
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(error: click.ClickException) -> None:
    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
        error.show()
        return
    hint = ""
    if isinstance(error, click.UsageError) and error.ctx is not None:
        hint = f" (see: {error.ctx.command_path} --help)"
    message = " ".join(error.format_message().split())
    click.echo(f"caltree: error: {message}{hint}", err=True)


@contextmanager
def _stop_on_signals() -> Iterator[None]:
    """Turn the first signal into an exception, and ignore others while cleaning up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: Any) -> None:
        for known in _SIGNALS:
            signal.signal(known, signal.SIG_IGN)
        raise Stopped(number)

    before = {number: signal.signal(number, stop) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    def show(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
        if isinstance(message, IdentifierWarning):
            warn(f"{message.finding}; {_REMEDIES[message.dropped]}")
        elif issubclass(category, UserWarning):
            warn(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = show
        yield
