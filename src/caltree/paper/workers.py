"""Joblib's jobs on the workers of a Dask cluster."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import joblib


@contextmanager
def workers(scheduler: str | None, package: str | Path | None = None) -> Iterator[None]:
    """Hand the jobs of joblib to the workers of a Dask cluster, given the address of its scheduler.

    Without one joblib stays as it is. Results do not depend on who does the work. Files are those
    that the workers see: give paths that mean the same to them. Joblib does the jobs itself if all
    the workers together have no more than one thread.

    A package that is not installed where the workers are is sent to them, given its folder; those
    that have loaded it before must be started again to see a change.
    """
    if scheduler is None:
        yield
        return
    try:
        from distributed import Client
    except ImportError:
        raise ImportError("a scheduler needs dask: pip install caltree[dask]") from None
    connect: Any = Client
    with connect(scheduler) as client, joblib.parallel_config(backend="dask"):
        if package is not None:
            _send(client, Path(package).resolve())
        yield


def _send(client: Any, package: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        name = str(Path(folder) / package.name)
        client.upload_file(shutil.make_archive(name, "zip", package.parent, package.name))
