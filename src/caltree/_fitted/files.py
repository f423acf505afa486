"""Atomic writes: files that appear whole or not at all."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file; whatever goes wrong, the target is the old one or the new one."""
    with atomic_file(path) as temporary:
        temporary.write_bytes(content)


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A temporary file beside the target, which it replaces at the end.

    If anything goes wrong meanwhile, the target stays unchanged and the temporary file is removed.
    A link stays a link, and a target that is no file, such as a pipe, is written to directly.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file() and not target.is_dir():
        yield target
        return
    temporary = temporary_path(target)
    try:
        yield temporary
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def temporary_path(path: Path) -> Path:
    """A path in the same folder that no other process or thread writes to."""
    return path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
