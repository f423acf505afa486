"""Model files: a stored calibrator, and beside it which columns of a file it was fitted to."""

from __future__ import annotations

import json
import reprlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import (
    CalibrationForest,
    CalibrationTree,
    IdentityCalibrator,
    IsotonicScaling,
    PlattScaling,
    PublishedCalibrationTree,
)
from .._base import Calibrator
from .._fitted import storage
from .._fitted.files import write_atomically
from .._inputs.attributes import Attributes
from .._model_base import fitted_attributes
from .columns import Columns
from .errors import CommandError, in_one_line, reading, writing
from .io.formats import STANDARD

_PACKAGE = "caltree."
_KINDS: dict[str, type[Calibrator]] = {
    f"{_PACKAGE}{kind.__name__}": kind
    for kind in (
        CalibrationTree,
        PublishedCalibrationTree,
        CalibrationForest,
        PlattScaling,
        IsotonicScaling,
        IdentityCalibrator,
    )
}


@dataclass(frozen=True)
class Model:
    """The content of a model file."""

    path: str
    calibrator: Calibrator
    columns: Columns | None
    """None for what `calibrator.save` wrote."""

    @property
    def classes(self) -> list[Any]:
        """The labels, sorted."""
        return list(self.calibrator.classes_.tolist())

    @property
    def attributes(self) -> Attributes | None:
        """The attributes as the calibrator learned them; None if it uses none."""
        return fitted_attributes(self.calibrator)

    def with_columns(
        self, scores: tuple[str, ...] | None, attributes: tuple[str, ...] | None
    ) -> Columns:
        """The columns to look for in a file: those named now, else those of the fit."""
        known = self.columns
        scores = scores or (known.scores if known else None)
        if scores is None:
            raise CommandError(
                f"{self.path} does not say which columns are the scores; give --scores"
            )
        if len(scores) != self.calibrator.n_scores_:
            raise CommandError(
                f"--scores names {len(scores)} column(s), but the model was fitted to "
                f"{self.calibrator.n_scores_}; give as many, in the same order"
            )
        return Columns(
            scores=scores,
            attributes=self._attribute_columns(attributes),
            label=known.label if known else None,
            weight=known.weight if known else None,
        )

    def _attribute_columns(self, given: tuple[str, ...] | None) -> tuple[str, ...]:
        learned = self.attributes
        if learned is None:
            return ()
        stored = self.columns.attributes if self.columns else learned.names
        found = given or stored
        if found is None:
            raise CommandError(
                f"{self.path} does not say which columns are the attributes; give --attributes, "
                f"{len(learned.columns)} names between commas"
            )
        used = [column.is_used for column in learned.columns]
        if given is not None and len(given) == sum(used):
            # Those that the model does not use need no other name, and need not be there.
            names = iter(given)
            return tuple(
                next(names) if here else column.name
                for here, column in zip(used, learned.columns, strict=True)
            )
        if len(found) != len(used):
            raise CommandError(
                f"--attributes names {len(found)} column(s), but the model was fitted to "
                f"{sum(used)}; give as many, in the same order"
            )
        return tuple(found)


def read_model(path: str) -> Model:
    """Read a model file of any kind of calibrator."""
    with reading(path):
        content = Path(path).read_bytes()
    try:
        stored = _parse(content)
        columns = stored.get("columns")
        return Model(
            path,
            _KINDS[stored["format"]].from_dict(stored),
            None if columns is None else Columns.from_dict(columns),
        )
    except ValueError as error:
        reason = in_one_line(error)
        remedy = "" if ";" in reason else "; make it with caltree fit"
        raise CommandError(f"cannot use {path} as a model: {reason}{remedy}") from None


def write_model(calibrator: Calibrator, columns: Columns, path: str) -> None:
    """Write a calibrator with its columns; the class it is of can load it, too."""
    stored = {**calibrator.to_dict(), "columns": columns.to_dict()}
    content = f"{json.dumps(stored, allow_nan=False)}\n".encode()
    with writing(path):
        if path == STANDARD:
            stream = sys.stdout.buffer
            stream.write(content)
            stream.flush()
        else:
            write_atomically(Path(path), content)


def _parse(content: bytes) -> dict[str, Any]:
    """The JSON object of a model file of a known format; ValueError on anything else."""
    if not content.strip():
        raise ValueError("it is empty")
    try:
        stored = storage.parse_json(content)
    except ValueError as error:
        raise ValueError(f"it is no JSON: {error}") from None
    kind = stored.get("format") if isinstance(stored, dict) else None
    if kind is None:
        raise ValueError("it says no format")
    if not isinstance(kind, str) or not kind.startswith(_PACKAGE):
        raise ValueError(f"its format is {reprlib.repr(kind)}")
    if kind not in _KINDS:
        raise ValueError(f"this caltree knows no {kind}")
    return dict(stored)
