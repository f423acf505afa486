"""Checks of the output, made before any work is done."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ..._fitted.files import check_writable
from ..errors import CommandError, usage_error, writing
from .formats import STANDARD, Format


def check_target(path: str, *inputs: str | None) -> None:
    """Refuse a path that cannot be written to, and one that is read."""
    if path == STANDARD:
        if sys.stdout is None:
            raise CommandError("cannot write standard output: it is closed; give a file")
        return
    if Path(path).is_dir():
        raise CommandError(f"cannot write {path}: it is a folder; give the name of a file")
    if not Path(path).exists() or Path(path).is_file():
        with writing(path):
            check_writable(Path(path))
    for given in inputs:
        if given not in (None, STANDARD) and _same_file(path, str(given)):
            raise usage_error(f"--out {path} is the file that is read; give another name")


def check_terminal(path: str, file_format: Format) -> None:
    """Refuse to write a binary format to a terminal."""
    binary = file_format.name not in ("csv", "jsonl")
    if path == STANDARD and binary and is_terminal():
        raise usage_error(
            f"standard output is a terminal, which cannot show {file_format.name}; use --out FILE "
            "or --out-format csv"
        )


def is_terminal() -> bool:
    """Whether standard output is one."""
    return sys.stdout.isatty()


def _same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
