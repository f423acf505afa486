"""The models of trees, forests and boosted trees in SQL, with the uncalibrated probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..._fitted.blended import Model, parts_that_count
from ..._fitted.boosted import BoostedModel
from ..._fitted.model import FittedModel
from ..._fitted.trees import Trees
from ..._inputs.scores import bend
from .boosted import sums_of_boosted
from .routes import Routes
from .scaling import identity
from .scores import Scores
from .text import Lines, add_blocks, indent
from .trees import NodeModels, sums_of_many, sums_of_two


def model_bodies(model: Model, published: bool, given: Scores, names: Sequence[str]) -> list[Lines]:
    """Return the probability of every class, in terms of scores and names of attributes."""
    weight = model.uncalibrated_weight
    if weight == 1.0:
        return identity(given)
    by_part = [
        _sums(part, _ModelScores.of(part, published, given, names), given)
        for part in parts_that_count(model)
    ]
    sums = [add_blocks(blocks) for blocks in zip(*by_part, strict=True)]
    dialect = given.dialect
    if weight == 0.0 and _is_probability(model):
        return sums
    if weight > 0.0:
        uncalibrated = given.name_each("uncalibrated", given.uncalibrated())
        part = dialect.double(weight)
        sums = [
            add_blocks([lines, [f"{part} * {name}"]])
            for lines, name in zip(sums, uncalibrated, strict=True)
        ]
    # A sum of weights may be rounded to beyond a certainty.
    low, high = dialect.double(0.0), dialect.double(1.0)
    return [
        [f"{dialect.least}({high}, {dialect.greatest}({low},", *indent(lines), "))"]
        for lines in sums
    ]


@dataclass(frozen=True)
class _ModelScores:
    """The scores as the models of trees see them, by short names."""

    routes: Routes
    seen: list[list[str]]
    """The scores that the slopes of each log-odds belong to."""
    offsets: list[str]
    vector: str
    """All scores as a list; see `NodeModels`."""
    largest: float
    """The largest absolute value of a score."""

    @classmethod
    def of(cls, model: Trees, published: bool, given: Scores, names: Sequence[str]) -> _ModelScores:
        """Name the scores."""
        dialect = given.dialect
        values, largest = given.regressors(given.columns, published)
        factors = [given.for_products(value) for value in values]
        scores = given.name_each("score", factors)
        offsets = given.name_each("offset", given.offsets()) if model.offset else []
        split_on = scores
        if factors != values and int(model.attribute.max()) >= len(names):
            split_on = given.name_each("split", values)
        if model.n_states == 1 and not published:
            bends = given.name_each("bend", [given.bend(score) for score in scores], layer=1)
            scores, split_on = scores + bends, split_on + bends
            largest = -float(bend(np.array(largest)))
        columns = [dialect.column(name, "attributes") for name in names]
        seen = [[scores[k] for k in of_state] for of_state in model.seen_scores]
        vector = ""
        if dialect.name == "duckdb" and model.n_states > 1 and len(seen[0]) == len(scores):
            vector = given.layers.name(0, "scores", f"[{', '.join(factors)}]")
        return cls(Routes(dialect, model, columns, split_on), seen, offsets, vector, largest)


def _sums(model: Trees, scores: _ModelScores, given: Scores) -> list[Lines]:
    """Return what the model says of each class, less the share of the uncalibrated ones."""
    dialect, routes = given.dialect, scores.routes
    if isinstance(model, BoostedModel):
        return sums_of_boosted(given, model, routes, scores.seen, scores.offsets)
    assert isinstance(model, FittedModel)
    models = NodeModels(
        dialect,
        model.weight,
        model.parameters,
        scores.seen,
        scores.offsets,
        scores.largest,
        scores.vector,
    )
    roots = model.roots.tolist()
    if model.n_states > 1:
        return sums_of_many(given.layers, routes, models, roots)
    second = sums_of_two(routes, models, roots)
    whole = dialect.double(1.0 - model.uncalibrated_weight)
    return [[f"{whole} - (", *indent(second), ")"], second]


def _is_probability(model: Model) -> bool:
    """Whether a model has no sums of weights, which may be rounded to beyond a certainty."""
    if isinstance(model, FittedModel):
        return model.n_trees == 1 and not model.weight[model.attribute >= 0].any()
    return False
