"""A forest and boosted trees, averaged: their models side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from .._inputs.arrays import Floats
from .._inputs.attributes import Attributes
from .boosted import BoostedModel
from .model import FittedModel
from .trees import WEIGHT_ROUNDING, Trees


@dataclass(frozen=True, eq=False)
class BlendedModel:
    """A forest and boosted trees of the same attributes and scores.

    The probabilities are the sum of those of both models, by the weights of each. If all weights
    sum to less than 1, the rest is the weight of the uncalibrated probabilities.

    Parameters
    ----------
    forest : FittedModel
        The forest. Without any weight, its trees are roots.
    boosted : BoostedModel
        The curve and the boosted trees.
    """

    forest: FittedModel
    boosted: BoostedModel

    @property
    def parts(self) -> tuple[Trees, Trees]:
        """Both models."""
        return self.forest, self.boosted

    @property
    def attributes(self) -> Attributes:
        """The attributes that both split on."""
        return self.forest.attributes

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return self.forest.n_trees + self.boosted.n_trees

    @property
    def n_nodes(self) -> int:
        """Number of nodes of all trees."""
        return self.forest.n_nodes + self.boosted.n_nodes

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.forest.n_classes

    @property
    def n_scores(self) -> int:
        """Number of scores, as the models see them."""
        return self.forest.n_scores

    @property
    def offset(self) -> bool:
        """Whether the models correct the log-odds of the uncalibrated probabilities."""
        return self.forest.offset

    @property
    def splits_attributes(self) -> bool:
        """Whether any tree splits on an attribute."""
        return any(part.splits_attributes for part in self.parts)

    def probabilities(self, matrix: Floats, scores: Floats, offset: Floats | None = None) -> Floats:
        """Return the sum of both models, without the uncalibrated probabilities."""
        said = [part.probabilities(matrix, scores, offset) for part in parts_that_count(self)]
        return np.asarray(sum(said, np.zeros((len(matrix), self.n_classes))))

    def effective_rows(self, matrix: Floats, scores: Floats) -> Floats:
        """Return the number of training rows that the probabilities of each row are based on.

        Boosted trees count as a node of all rows.
        """
        return self.forest.effective_rows(matrix, scores)

    @property
    def uncalibrated_weight(self) -> float:
        """The weight of the uncalibrated probabilities."""
        rest = 1.0 - sum(1.0 - part.uncalibrated_weight for part in self.parts)
        return rest if rest > WEIGHT_ROUNDING else 0.0

    @property
    def importances(self) -> Floats:
        """The shares of every attribute in both, by the weights of both."""
        total = np.zeros(len(self.attributes.columns))
        for part in parts_that_count(self):
            total += (1.0 - part.uncalibrated_weight) * part.importances
        whole = float(total.sum())
        return total / whole if whole > 0.0 else total

    def to_dict(self) -> dict[str, Any]:
        """Return the model as lists and numbers that JSON keeps exactly; attributes once."""
        found: dict[str, Any] = {"attributes": self.attributes.to_dict()}
        for name, part in zip(_PARTS, self.parts, strict=True):
            found[name] = part.to_dict()
            del found[name]["attributes"]
        return found

    @classmethod
    def from_dict(cls, stored: Any) -> BlendedModel:
        """Rebuild a model from :meth:`to_dict`; ValueError on anything malformed."""
        keys = {"attributes", *_PARTS}
        if not isinstance(stored, dict) or set(stored) != keys:
            raise ValueError(f"a stored model must have exactly the keys {sorted(keys)}")
        parts: list[Any] = [stored[name] for name in _PARTS]
        if not all(isinstance(part, dict) and "attributes" not in part for part in parts):
            raise ValueError(
                "forest and boosted of a stored model must be dicts without attributes"
            )
        shared = {"attributes": stored["attributes"]}
        forest = FittedModel.from_dict({**parts[0], **shared})
        boosted = BoostedModel.from_dict({**parts[1], **shared})
        model = cls(forest, replace(boosted, attributes=forest.attributes))
        model._check_parts()
        return model

    def _check_parts(self) -> None:
        """Refuse models that do not fit together."""
        for name in ("n_classes", "n_scores", "offset"):
            first, second = (getattr(part, name) for part in self.parts)
            if first != second:
                raise ValueError(
                    f"a stored model has {name} {first} in forest, but {second} in boosted"
                )
        if sum(1.0 - part.uncalibrated_weight for part in self.parts) > 1.0 + WEIGHT_ROUNDING:
            raise ValueError(
                "the weights of forest and boosted of a stored model must sum to at most 1"
            )


_PARTS = ("forest", "boosted")
Model: TypeAlias = Trees | BlendedModel
"""Any fitted model."""


def parts_of(model: Model) -> tuple[Trees, ...]:
    """Return the models of trees that a model is made of."""
    return model.parts if isinstance(model, BlendedModel) else (model,)


def parts_that_count(model: Model) -> list[Trees]:
    """Return the models of trees that have any weight."""
    return [part for part in parts_of(model) if part.uncalibrated_weight < 1.0]
