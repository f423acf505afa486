"""Model files: a stored calibrator, and beside it which columns of a file it was fitted to."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._base import Calibrator
from .._calibrators import read_calibrator
from .._fitted import storage
from .._fitted.files import write_atomically
from .._inputs.attributes import Attributes
from .._model_base import fitted_attributes
from .columns import Columns
from .errors import CommandError, in_one_line, reading, writing
from .io.formats import STANDARD


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
            groups=known.groups if known else None,
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
        calibrator, stored = read_calibrator(content)
        columns = stored.get("columns")
        return Model(path, calibrator, None if columns is None else Columns.from_dict(columns))
    except ValueError as error:
        reason = in_one_line(error)
        remedy = "" if ";" in reason else "; make it with caltree fit"
        raise CommandError(f"cannot use {path} as a model: {reason}{remedy}") from None


def write_model(calibrator: Calibrator, columns: Columns, path: str) -> None:
    """Write a calibrator with its columns; the class it is of can load it, too."""
    made = calibrator.made_.with_time()
    content = storage.json_bytes(
        {**calibrator.to_dict(), "made": made, "columns": columns.to_dict()}
    )
    with writing(path):
        if path == STANDARD:
            stream = sys.stdout.buffer
            stream.write(content)
            stream.flush()
        else:
            write_atomically(Path(path), content)
