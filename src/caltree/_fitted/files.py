"""Atomic writes: files that appear whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl

_PRIVATE = 0o600
# Where files cannot be locked, a temporary file of this age is one that a killed process left.
_SECONDS_OF_A_WRITE = 86_400.0


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file; whatever goes wrong, the target is the old one or the new one."""
    with atomic_file(path) as temporary:
        temporary.write_bytes(content)


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A temporary file beside the target, which it replaces at the end.

    If anything goes wrong meanwhile, the target stays unchanged and the temporary file is removed;
    those that killed processes have left are removed at the beginning. A target that is there keeps
    its mode and, where that is allowed, its owner. A link stays a link, and a target that is no
    file, such as a pipe, is written to directly.
    """
    target = _resolve(path)
    if target.exists() and not target.is_file() and not target.is_dir():
        yield target
        return
    with _temporary_file(target) as temporary:
        yield temporary
        if target.exists():
            _copy_owner_and_mode(target, temporary)
        os.replace(temporary, target)


def check_writable(path: Path) -> None:
    """Raise the OSError with which `atomic_file` would end, before any work is done."""
    with _temporary_file(_resolve(path)):
        pass


def _resolve(path: Path) -> Path:
    """The file that a path leads to, which need not exist."""
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return target


@contextmanager
def _temporary_file(target: Path) -> Iterator[Path]:
    """A new file beside the target, removed at the end if it is still there."""
    # The name is short, however long that of the target is, and says which target it is for.
    digest = hashlib.blake2b(target.name.encode("utf-8", "surrogateescape"), digest_size=4)
    prefix = f".caltree-{digest.hexdigest()}-"
    _remove_stale(target.parent, prefix)
    temporary, lock = _create(target, prefix)
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
        if lock is not None:
            os.close(lock)


def _create(target: Path, prefix: str) -> tuple[Path, int | None]:
    """Create a file that this process has locked; private, if it is to replace another."""
    mode = _PRIVATE if target.exists() else 0o666
    while True:
        temporary = target.with_name(f"{prefix}{secrets.token_hex(4)}")
        try:
            descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
        except FileExistsError:
            continue
        except OSError as error:
            # The user knows the target, not the temporary file.
            raise OSError(error.errno, error.strerror, str(target)) from None
        else:
            if sys.platform == "win32":
                os.close(descriptor)  # an open file cannot be renamed there
                return temporary, None
            with suppress(OSError):  # not every file system has locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.fstat(descriptor).st_nlink:
                return temporary, descriptor
            # Another process found it before it was locked, and took it for stale.
            os.close(descriptor)


def _remove_stale(folder: Path, prefix: str) -> None:
    """Remove the temporary files of processes that are gone: nobody holds their locks."""
    with suppress(OSError):  # a folder need not be readable
        for name in os.listdir(folder):
            if name.startswith(prefix):
                _remove_if_stale(folder / name)


def _remove_if_stale(temporary: Path) -> None:
    with suppress(OSError):
        if sys.platform == "win32":
            if time.time() - temporary.stat().st_mtime > _SECONDS_OF_A_WRITE:
                temporary.unlink()
            return
        descriptor = os.open(temporary, os.O_RDWR | os.O_NOFOLLOW)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            temporary.unlink()
        finally:
            os.close(descriptor)


def _copy_owner_and_mode(target: Path, temporary: Path) -> None:
    found = target.stat()
    if hasattr(os, "chown"):
        with suppress(OSError):  # for which one may need to be root
            os.chown(temporary, found.st_uid, found.st_gid)
    temporary.chmod(stat.S_IMODE(found.st_mode))
