"""Results as one small JSON file, which can be kept, compared and read into a file of results.

Measures and seconds have six digits. A fold that was not carried out is null::

    {
    "format": "caltree-paper-results-1",
    "settings": {"folds": "10", "seed": "1"},
    "datasets": {"vote": [435, 16, 2, "0123456789abcdef", ""]},
    "results": {"vote naive_bayes pct": {"rmse": [[0.18, 0.2, ...], ...]}},
    "seconds": {"vote naive_bayes": {"calibrator pct": [[0.1, 0.2, ...], ...]}}
    }

The lists are the runs, and in each its folds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple
from typing import Any, TypeAlias

from .store import Cell, Shape, Store

FORMAT = "caltree-paper-results-1"

_Series: TypeAlias = dict[str, dict[str, list[list[float | None]]]]


def to_text(store: Store) -> str:
    """All results of a store as JSON, one line for each data set, learner and calibrator."""
    n_folds = int(store.settings()["folds"])
    results = (
        (cell, f"{cell.dataset} {cell.learner} {calibrator}", measure, value)
        for cell, calibrator, measure, value in store.all_results()
    )
    seconds = (
        (cell, f"{cell.dataset} {cell.learner}", step, value)
        for cell, step, value in store.all_costs()
    )
    header = [
        f'"format": {json.dumps(FORMAT)}',
        f'"settings": {json.dumps(store.settings())}',
        _lines("datasets", {name: astuple(shape) for name, shape in store.datasets().items()}),
        _lines("results", _series(results, n_folds)),
        _lines("seconds", _series(seconds, n_folds)),
    ]
    return "{\n" + ",\n".join(header) + "\n}\n"


def _series(rows: Iterable[tuple[Cell, str, str, float]], n_folds: int) -> _Series:
    """Values by key and name, as lists by run and fold."""
    found: _Series = {}
    for cell, key, name, value in rows:
        runs = found.setdefault(key, {}).setdefault(name, [])
        while len(runs) <= cell.run:
            runs.append([None] * n_folds)
        runs[cell.run][cell.fold] = float(f"{value:.6g}")
    return found


def _lines(name: str, values: Mapping[str, Any]) -> str:
    lines = [
        f"{json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}"
        for key, value in values.items()
    ]
    return f"{json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n}"


def from_text(text: str, make_store: Callable[[Mapping[str, str]], Store]) -> Store:
    """Add the results of `to_text` to a store, which is made or opened with their settings.

    A result that is there already stays; ValueError if the text is no such file or has results on
    other copies of the data sets.
    """
    stored = _parse(text)
    shapes = {name: Shape(*values) for name, values in stored["datasets"].items()}
    cells = _read_cells(stored)
    store = make_store(stored["settings"])
    for name, shape in shapes.items():
        store.add_dataset(name, shape)
    store.add_all(cells)
    return store


def _parse(text: str) -> dict[str, Any]:
    try:
        stored = json.loads(text)
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from None
    found = stored.get("format") if isinstance(stored, dict) else None
    if found != FORMAT:
        raise ValueError(f"its format is {found!r}, not {FORMAT!r}")
    return dict(stored)


def _read_cells(
    stored: Mapping[str, Any],
) -> dict[Cell, tuple[dict[str, dict[str, float]], dict[str, float]]]:
    """The measures of each fold, by calibrator and name, and its seconds."""
    cells: dict[Cell, tuple[dict[str, dict[str, float]], dict[str, float]]] = {}
    for cell, key, measure, value in _unfold(stored["results"]):
        measures, _ = cells.setdefault(cell, ({}, {}))
        measures.setdefault(key[2], {})[measure] = value
    for cell, _, step, value in _unfold(stored["seconds"]):
        cells.setdefault(cell, ({}, {}))[1][step] = value
    return cells


def _unfold(series: _Series) -> Iterable[tuple[Cell, list[str], str, float]]:
    for key, names in series.items():
        parts = key.split(" ")
        for name, runs in names.items():
            for run, folds in enumerate(runs):
                for fold, value in enumerate(folds):
                    if value is not None:
                        if not math.isfinite(value):
                            raise ValueError(f"{key}, {name}: {value} is not a finite number")
                        yield Cell(parts[0], parts[1], run, fold), parts, name, value
