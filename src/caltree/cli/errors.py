"""Errors of the command: one line that says what is wrong and what to do about it."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

import click

from .._inputs.unseen import Unseen

_REMEDIES = {
    errno.ENOENT: "check the path",
    errno.ENOTDIR: "check the path",
    errno.EISDIR: "give a file",
    errno.ELOOP: "the links lead back to themselves; remove one of them",
    errno.EACCES: "check the permissions",
    errno.EPERM: "check the permissions",
    errno.EROFS: "choose another place",
    errno.ENOSPC: "make room or choose another place",
    errno.EDQUOT: "make room or choose another place",
    errno.EFBIG: "raise the limit on the size of files or choose another format",
}


def warn(message: str) -> None:
    """Say in one line on standard error what the user should know."""
    click.echo(f"caltree: warning: {' '.join(message.split())}", err=True)


def warn_of_unseen(unseen: Unseen, table: str) -> None:
    """Say how many rows of a file have values that training did not have, if any has."""
    message = unseen.message()
    if message is not None:
        warn(f"{table}: {message}")


class CommandError(click.ClickException):
    """Something is wrong with the data, the model or a file."""

    exit_code = 1


def usage_error(message: str) -> click.UsageError:
    """Return an error of the options, which points to the help of the command."""
    return click.UsageError(message, click.get_current_context(silent=True))


class UnreadableError(ValueError):
    """A file holds something that it should not; the message says the remedy, too."""


@contextmanager
def reading(name: str, file_format: str | None = None) -> Iterator[None]:
    """Say in one line why a file cannot be read."""
    try:
        yield
    except (OSError, ValueError, NotImplementedError, EOFError, TypeError) as error:
        if isinstance(error, OSError) and error.errno:
            raise CommandError(f"cannot read {name}: {_reason(error)}") from None
        if isinstance(error, UnreadableError):
            raise CommandError(f"cannot read {name}: {in_one_line(error)}") from None
        remedy = "make the file again"
        if file_format is not None:
            remedy = f"if it is not {file_format}, say what it is with --format; else {remedy}"
        raise CommandError(f"cannot read {name}: {_reason(error)}; {remedy}") from None


@contextmanager
def writing(name: str) -> Iterator[None]:
    """Say in one line why a file cannot be written."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(f"cannot write {name}: {_reason(error)}") from None


@contextmanager
def working(what: str) -> Iterator[None]:
    """Say in one line what a calibrator refuses."""
    try:
        yield
    except (ValueError, TypeError, ImportError) as error:
        raise CommandError(f"cannot {what}: {in_one_line(error)}") from None
    except MemoryError:
        raise CommandError(
            f"cannot {what}: there is not enough memory; use fewer rows or columns"
        ) from None


def _reason(error: Exception) -> str:
    number = error.errno if isinstance(error, OSError) else None
    if not number:
        return in_one_line(error).rstrip(".")
    reason = os.strerror(number)
    return f"{reason}; {_REMEDIES[number]}" if number in _REMEDIES else reason


def in_one_line(error: Exception) -> str:
    """The message of an error without line breaks."""
    return " ".join(str(error).split())
