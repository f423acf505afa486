"""Rows for trees on histograms, and ways to divide them into chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from scipy.special import softmax

from caltree import CalibrationTree
from caltree._histogram import binning, in_process

from .default_trees import fitted
from .trees import FIXED


def examples(number: int) -> settings:
    return settings(
        max_examples=number,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def histogram_tree(**params: Any) -> CalibrationTree:
    return CalibrationTree(**{"tree_method": "hist", **params})


def fixed_histogram_tree(**params: Any) -> CalibrationTree:
    """The same, with nothing chosen by cross-validation."""
    return histogram_tree(**{**FIXED, **params})


@contextmanager
def chunks_of(n_rows: int, sample_rows: int | None = None) -> Iterator[None]:
    """Within it, chunks have so many rows, and quantiles are those of about so many."""
    with (
        patch.multiple(in_process, _FEWEST_ROWS=n_rows, _MOST_ROWS=n_rows),
        patch.object(binning, "SAMPLE_ROWS", sample_rows or binning.SAMPLE_ROWS),
    ):
        yield


# -- Random problems ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """Everything that `fit` is given."""

    X: Any
    y: np.ndarray
    scores: np.ndarray
    weights: np.ndarray | None
    params: dict[str, Any]

    def fit(self, **params: Any) -> CalibrationTree:
        tree = histogram_tree(**{**self.params, **params})
        return tree.fit(self.X, self.y, self.scores, sample_weight=self.weights)

    def fitted(self, **params: Any) -> dict[str, Any]:
        return fitted(self.fit(**params))

    def reordered(self, order: np.ndarray) -> Problem:
        weights = None if self.weights is None else self.weights[order]
        X = self.X.iloc[order] if isinstance(self.X, pd.DataFrame) else self.X[order]
        return replace(self, X=X, y=self.y[order], scores=self.scores[order], weights=weights)


def make_table(rng: np.random.Generator, n_rows: int, kind: str) -> tuple[Any, np.ndarray]:
    """A table, and the region that each row lies in."""
    numbers = rng.standard_normal((n_rows, 3))
    numbers[:, 1] = np.round(numbers[:, 1])
    region = (numbers[:, 0] > 0.3).astype(float)
    if kind == "numbers":
        return numbers, region
    if kind == "codes":  # with categorical_features=[1]
        numbers[:, 1] = rng.integers(0, 12, n_rows)
        numbers[rng.random(numbers.shape) < 0.1] = np.nan
        return numbers.astype(np.float32), np.nan_to_num(numbers[:, 1]) % 2
    known = pd.Series(np.where(region > 0, "high", rng.choice(["low", "lower", "none"], n_rows)))
    sizes = rng.choice(["small", "large"], n_rows)
    frame = pd.DataFrame(
        {
            "number": numbers[:, 0],
            "known": known,
            "flag": rng.random(n_rows) < 0.5,
            "size": pd.Categorical(sizes, categories=["never", "small", "large"]),
            "count": rng.integers(0, 9, n_rows),
        }
    )
    for name in ("number", "known", "size"):
        frame.loc[rng.random(n_rows) < 0.1, name] = None
    return frame, region + (frame["size"] == "large").to_numpy()


def make_scores(
    evidence: np.ndarray, score_type: str, n_classifiers: int, rng: np.random.Generator
) -> np.ndarray:
    parts = [
        evidence + (0.5 * rng.standard_normal(evidence.shape) if k else 0.0)
        for k in range(n_classifiers)
    ]
    if score_type == "probability":
        parts = [softmax(part, axis=1) for part in parts]
    elif evidence.shape[1] == 2 and n_classifiers == 1:
        parts = [part[:, 1:] - part[:, :1] for part in parts]
    return np.hstack(parts)


@st.composite
def problems(draw: Callable[..., Any], largest: int = 300) -> Problem:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_rows = draw(st.sampled_from([40, 150, largest]))
    n_classes = draw(st.sampled_from([2, 2, 2, 3, 9]))
    kind = draw(st.sampled_from(["numbers", "codes", "frame"]))
    X, region = make_table(rng, n_rows, kind)
    evidence = 1.5 * rng.standard_normal((n_rows, n_classes))
    strength = draw(st.sampled_from([0.0, 1.5, 3.0]))
    truth = evidence * np.where(region > 0, 1.0, 0.4)[:, np.newaxis]
    truth[:, 0] += strength * (region - region.mean())
    y = np.argmax(truth + rng.gumbel(size=truth.shape), axis=1)
    y[:n_classes] = np.arange(n_classes)
    weights = None
    if draw(st.booleans()):
        weights = rng.choice([0.0, 0.5, 1.0, 3.0, np.pi], n_rows)
        weights[:n_classes] = 1.0
    score_type = draw(st.sampled_from(["probability", "probability", "logit", "margin"]))
    params: dict[str, Any] = {
        "scoring": draw(st.sampled_from(["rmse", "log_loss"])),
        "path_averaging": draw(st.booleans()),
        "do_no_harm": draw(st.booleans()),
        "score_type": score_type,
        "cv": draw(st.sampled_from([2, 3, 5])),
        "max_bins": draw(st.sampled_from([255, 255, 20, 400])),
        "max_leaf_nodes": draw(st.sampled_from([64, None, 3])),
        "kept_gain": draw(st.sampled_from([0.95, 0.95, None, 0.5])),
    }
    if kind == "codes":
        params["categorical_features"] = [1]
    scores = make_scores(evidence, score_type, draw(st.sampled_from([1, 1, 2])), rng)
    return Problem(X, y, scores, weights, params)
