"""What a model needs of the rows of a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from .columns import Columns
from .errors import working
from .io.convert import Floats, Where, as_learned, scores
from .io.sources import Source
from .models import Model


@dataclass(frozen=True)
class Inputs:
    """Attributes and scores of record batches, as the model learned them."""

    model: Model
    columns: Columns
    file: str

    @classmethod
    def of(cls, model: Model, columns: Columns, source: Source) -> Inputs:
        """Check that the file has what the model needs."""
        source.check(*columns.scores, *columns.attributes)
        return cls(model, columns, source.name)

    def scores(self, batch: Any, first_row: int) -> Floats:
        """The scores side by side."""
        names = self.columns.scores
        places = [Where(self.file, name, first_row) for name in names]
        taken_as = self.model.calibrator.score_type_
        return scores([batch.column(name) for name in names], places, taken_as)

    def converted(self, batch: Any, first_row: int) -> dict[str, Any]:
        """The columns of attributes by name, each as it was learned."""
        learned = self.model.attributes
        if learned is None:
            return {}
        return {
            name: as_learned(batch.column(name), attribute, Where(self.file, name, first_row))
            for name, attribute in zip(self.columns.attributes, learned.columns, strict=True)
        }

    def table(self, converted: dict[str, Any]) -> Any:
        """Converted attributes as the calibrator wants them; None if it looks at none."""
        learned = self.model.attributes
        if learned is None:
            return None
        columns = list(converted.values())
        if learned.names is not None:
            return pa.table(columns, names=list(learned.names))
        # A calibrator that was fitted without names wants none.
        nominal = any(attribute.categories is not None for attribute in learned.columns)
        if not nominal:
            return np.column_stack([_as_floats(column) for column in columns])
        table = np.empty((len(columns[0]), len(columns)), dtype=object)
        for j, column in enumerate(columns):
            table[:, j] = column.to_pylist()
        return table

    def probabilities(self, table: Any, scores: Floats) -> Floats:
        """Calibrated probabilities, one column a class."""
        with working(f"calibrate {self.file}"):
            found: Floats = self.model.calibrator.predict_proba(table, scores)
        return found


def _as_floats(column: Any) -> Floats:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
