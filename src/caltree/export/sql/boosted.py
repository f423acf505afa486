"""Boosted trees in SQL: a softmax of the curve, and one of what the leaves add to it."""

from __future__ import annotations

from collections.abc import Sequence

from ..._fitted.boosted import BoostedModel
from .logistic import linear, softmax
from .routes import Routes
from .scores import Scores
from .text import Lines, add_blocks, add_terms, join_lines
from .trees import TreeText

# The bends of scores are in the layer before.
_CURVE, _BOOSTED = 2, 3


def sums_of_boosted(
    given: Scores,
    model: BoostedModel,
    routes: Routes,
    seen: Sequence[Sequence[str]],
    offsets: Sequence[str],
) -> list[Lines]:
    """Return the weighted sum of both softmaxes, of each class.

    `seen` are the scores that the slopes of each log-odds belong to, and `offsets` what is to be
    added to each, if anything.
    """
    dialect = given.dialect
    lines = [
        linear(dialect, intercept, zip(slopes, scores, strict=True), offset)
        for (intercept, *slopes), scores, offset in zip(
            model.parameters.tolist(), seen, offsets or [""] * model.n_states, strict=True
        )
    ]
    curve = given.name_each("curve", lines, _CURVE)
    parts = [(model.curve_weight, curve)]
    if model.boosted_weight > 0.0:
        added = _added(model, routes)
        starts = [f"{dialect.double(model.start)} * {name}" for name in curve]
        sums = [add_terms([start, *terms]) for start, terms in zip(starts, added, strict=True)]
        parts.append((model.boosted_weight, given.name_each("boosted", sums, _BOOSTED)))
    zero = [dialect.double(0.0)] if model.n_states == 1 else []
    found: list[list[str]] = [[] for _ in range(model.n_classes)]
    for weight, odds in parts:
        if weight > 0.0:
            for terms, share in zip(found, softmax(dialect, [*zero, *odds]), strict=True):
                terms.append(f"{dialect.double(weight)} * ({share})")
    return [[add_terms(terms)] for terms in found]


def _added(model: BoostedModel, routes: Routes) -> list[list[str]]:
    """Return what each tree adds, by log-odds."""
    text = TreeText(
        routes, model.attribute < 0, lambda leaf: routes.dialect.double(float(model.value[leaf]))
    )
    found: list[list[str]] = [[] for _ in range(model.n_states)]
    for state, root in zip(model.state.tolist(), model.roots.tolist(), strict=True):
        found[state].append(f"({join_lines(add_blocks(text.tree(root)))})")
    return found
