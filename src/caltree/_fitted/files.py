"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write beside the target first, and put it in its place when it is complete."""
    with whole_file(path) as beside:
        beside.write_bytes(content)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A file to write to beside the target; it takes the target's place at the end.

    Whatever goes wrong meanwhile, the target stays as it was and nothing else is left. A link
    stays a link, and what is neither a file nor absent, such as a pipe, is written to directly.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file() and not target.is_dir():
        yield target
        return
    beside = beside_of(target)
    try:
        yield beside
        os.replace(beside, target)
    finally:
        beside.unlink(missing_ok=True)


def beside_of(path: Path) -> Path:
    """A file in the same folder that no other process or thread writes."""
    return path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
