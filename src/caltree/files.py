"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write beside the target first, and put it in its place when it is complete."""
    beside = beside_of(path)
    try:
        beside.write_bytes(content)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def beside_of(path: Path) -> Path:
    """A file in the same folder that no other process or thread writes."""
    return path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
