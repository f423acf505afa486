"""The measures of a report: losses and their parts, calibration error and AUC."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._audit.adjust import adjust
from .._audit.effects import FEWEST_ROWS
from .._audit.parts import LOSSES, LossParts, predict_held_out, sample_rows, split_held_out
from .._audit.rows import Rows as Audited
from .._inputs.arrays import Floats
from .._training.losses import row_losses
from ..metrics import expected_calibration_error
from ..reliability import bins_for
from .estimates import (
    Estimate,
    compare_aucs,
    compare_calibration_errors,
    compare_means,
)
from .inputs import NO_ATTRIBUTES

ALPHA = 0.05
# A class of fewer rows says nothing about a curve that other folds have put right.
_FEWEST_OF_A_CLASS = 10
_SEED = 0
_DECIMALS = 4


def plain_number(number: float) -> str:
    """A measure as it is printed; what is rounded to 0 has no sign."""
    return f"{round(number, _DECIMALS) + 0.0:.{_DECIMALS}f}".replace("-", "−")


@dataclass(frozen=True)
class Measure:
    """A measure before and after calibration."""

    name: str
    of: str | None
    """The loss that it is a part of, if it is one."""
    more_is_better: bool
    estimate: Estimate
    intervals: list[list[float]] | None = None
    """Of the value before, and of that after."""
    adjusted_p_value: float | None = None
    """Adjusted for all measures."""

    @property
    def is_shown(self) -> bool:
        """Whether the change is more than chance."""
        return self.adjusted_p_value is not None and self.adjusted_p_value <= ALPHA

    @property
    def verdict(self) -> str:
        """How it changed, in words: better or worse if that is more than chance."""
        change = self.estimate.change
        if change == 0.0:
            return "unchanged"
        if plain_number(self.estimate.before) == plain_number(self.estimate.after):
            return "hardly changed"
        if self.is_shown:
            return "better" if (change > 0.0) == self.more_is_better else "worse"
        return "too few rows" if self.adjusted_p_value is None else "may be chance"

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "name": self.name,
            "of": self.of,
            "more_is_better": self.more_is_better,
            "before": self.estimate.before,
            "after": self.estimate.after,
            "intervals": self.intervals,
            "change": self.estimate.change,
            "low": self.estimate.low,
            "high": self.estimate.high,
            "p_value": self.estimate.p_value,
            "adjusted_p_value": self.adjusted_p_value,
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class Measured:
    """All measures, and what there was to gain."""

    measures: dict[str, Measure]
    potential: dict[str, LossParts] | None
    """The losses of the scores in three parts; None if there are too few rows to say."""
    split_rows: int
    """Of how many rows the losses are split: all, or as many as tell enough."""


def measure(before: Audited, after: Audited, n_jobs: int | None) -> Measured:
    """Measure the probabilities of the same rows before and after calibration."""
    enough = len(before) >= FEWEST_ROWS
    parts = _split(before, after, n_jobs) if enough and _has_classes(before) else None
    found = list(_losses(before, after, parts))
    found.append(_calibration_error(before, after))
    aucs = compare_aucs(before, after)
    if aucs is not None:
        found.append(Measure("auc", None, True, aucs[0], aucs[1] if enough else None))
    if not enough:
        found = [replace(each, estimate=_alone(each.estimate)) for each in found]
    tested = [each for each in found if each.estimate.p_value is not None]
    adjusted = adjust([each.estimate.p_value or 0.0 for each in tested], "holm")
    known = {each.name: p for each, p in zip(tested, adjusted, strict=True)}
    measures = {each.name: replace(each, adjusted_p_value=known.get(each.name)) for each in found}
    if parts is None:
        return Measured(measures, None, 0)
    return Measured(measures, parts.potential, len(parts.before))


def _alone(found: Estimate) -> Estimate:
    """The values without an interval: of few rows, it would not hold."""
    return Estimate(found.before, found.after)


def _has_classes(rows: Audited) -> bool:
    counts = np.bincount(rows.labels, minlength=len(rows.classes))
    return int(counts.min()) >= _FEWEST_OF_A_CLASS


@dataclass(frozen=True, eq=False)
class _Split:
    """Rows whose losses are split, with what a curve, the best by each loss, makes of them."""

    before: Audited
    after: Audited
    curves_before: dict[str, Floats]
    curves_after: dict[str, Floats]
    potential: dict[str, LossParts]


def _split(before: Audited, after: Audited, n_jobs: int | None) -> _Split:
    """Predict rows by curves that other folds were fitted to, and by regions.

    After calibration a curve will do: whether regions are still off, tests of these say.
    """
    chosen = sample_rows(before, np.random.default_rng(_SEED))
    before, after = before.take(chosen), after.without_matrix().take(chosen)
    predicted = predict_held_out(before, n_jobs)
    no_attribute = replace(after, attributes=NO_ATTRIBUTES, matrix=np.zeros((len(after), 1)))
    curves_after = predict_held_out(no_attribute, n_jobs, max_depth=0).curves
    potential = split_held_out(before, predicted)
    return _Split(before, after, predicted.curves, curves_after, potential)


def _losses(before: Audited, after: Audited, parts: _Split | None) -> Iterator[Measure]:
    """Both losses, each with its two parts."""
    for name, scoring in LOSSES.items():
        losses = [row_losses(rows.probabilities, rows.labels, scoring) for rows in (before, after)]
        yield Measure(name, None, False, compare_means(before, *losses))
        if parts is None:
            continue
        scores, calibrated, curve, second_curve = (
            row_losses(p, parts.before.labels, scoring)
            for p in (
                parts.before.probabilities,
                parts.after.probabilities,
                parts.curves_before[name],
                parts.curves_after[name],
            )
        )
        miscalibration = compare_means(parts.before, scores - curve, calibrated - second_curve)
        yield Measure(f"{name}_calibration", name, False, miscalibration)
        refinement = compare_means(parts.before, curve, second_curve)
        yield Measure(f"{name}_refinement", name, False, refinement)


def _calibration_error(before: Audited, after: Audited) -> Measure:
    bins = bins_for(len(before))
    errors = [
        expected_calibration_error(
            rows.labels,
            np.clip(rows.probabilities, 0.0, 1.0),
            n_bins=bins,
            sample_weight=rows.weights,
            labels=np.arange(len(rows.classes)),
        )
        for rows in (before, after)
    ]
    p_value = compare_calibration_errors(before, after, bins) if errors[0] != errors[1] else None
    found = Estimate(errors[0], errors[1], p_value=p_value)
    return Measure("calibration_error", None, False, found)
