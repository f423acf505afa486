"""Model files: a stored calibrator, and beside it which columns of a file it was fitted to."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .._base import Calibrator
from .._calibrators import read_calibrator
from .._fitted import storage
from .._fitted.files import write_atomically
from .._inputs.attributes import Attributes
from .._model_base import fitted_attributes
from .columns import Columns, find_positive, in_class_order
from .errors import CommandError, in_one_line, reading, writing
from .io.formats import STANDARD, is_table_name


@dataclass(frozen=True)
class Model:
    """The content of a model file."""

    path: str
    calibrator: Calibrator
    columns: Columns | None
    """None for what `calibrator.save` wrote."""
    score_names: tuple[str, ...] | None = None
    """The columns of the scores in the order of the classes, if the calibrator knows them."""

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
        stored = known.scores if known else self.score_names
        scores = scores or stored
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
            scores=scores if scores == stored else self._in_class_order(scores),
            attributes=self._attribute_columns(attributes),
            label=known.label if known else None,
            weight=known.weight if known else None,
            groups=known.groups if known else None,
        )

    def _in_class_order(self, scores: tuple[str, ...]) -> tuple[str, ...]:
        """Other columns of scores than those of the fit: by the classes they are named after."""
        positive = self.calibrator.pos_label_
        found = find_positive(scores, self.classes, None)
        if positive is not None and found.by_name and found.label != positive:
            raise CommandError(
                f"--scores {scores[0]} is named after {found.label}, but the model was fitted to "
                f"scores of {positive}; give a column of those"
            )
        return in_class_order(scores, self.classes)

    def _attribute_columns(self, given: tuple[str, ...] | None) -> tuple[str, ...]:
        learned = self.attributes
        if learned is None:
            return ()
        stored = self.columns.attributes if self.columns else learned.names
        found = given or stored
        if found is None:
            raise CommandError(
                f"{self.path} does not say which columns are the attributes; give --attributes, "
                f"{len(learned.columns)} names separated by commas"
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
        known = None if columns is None else Columns.from_dict(columns)
        return Model(path, calibrator, known, _take_names(calibrator))
    except ValueError as error:
        reason = in_one_line(error)
        remedy = "" if ";" in reason else "; make it with caltree fit"
        if is_table_name(path):
            reason, remedy = "its name ends like that of a table", "; give a file of caltree fit"
        raise CommandError(f"cannot use {path} as a model: {reason}{remedy}") from None


def _take_names(calibrator: Calibrator) -> tuple[str, ...] | None:
    """The names of the scores, from now on in the order of the classes: the command sees to it."""
    columns = calibrator.score_columns_
    calibrator.score_columns_ = replace(columns, names=None)
    names = columns.names
    return None if names is None else in_class_order(names, calibrator.classes_.tolist())


def write_model(calibrator: Calibrator, columns: Columns, path: str, fingerprint: bool) -> None:
    """Write a calibrator with its columns; the class it is of can load it, too."""
    made = calibrator.made_.with_time()
    stored = {**calibrator.to_dict(), "made": made, "columns": columns.to_dict()}
    if not fingerprint:
        stored["fingerprint"] = None
    content = storage.json_bytes(stored)
    with writing(path):
        if path == STANDARD:
            stream = sys.stdout.buffer
            stream.write(content)
            stream.flush()
        else:
            write_atomically(Path(path), content)
