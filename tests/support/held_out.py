"""Candidates for held-out rows, in memory or known by sums alone."""

from types import SimpleNamespace

import numpy as np

from caltree._histogram.held_out import Candidates, HeldOutSums
from caltree._histogram.pool import LocalPool
from caltree._training.held_out import HeldOutRows


def rows_of(probabilities, labels, weights=None, scoring="rmse", has_uncalibrated=False):
    """Candidates of which nothing but the predictions is known."""
    return HeldOutRows(
        names=tuple(f"candidate {k}" for k in range(len(probabilities))),
        probabilities=np.asarray(probabilities, dtype=np.float64),
        labels=np.asarray(labels),
        weights=None if weights is None else np.asarray(weights, dtype=np.float64),
        scoring=scoring,
        has_uncalibrated=has_uncalibrated,
    )


def sums_of(rows, n_chunks=3):
    """The same candidates in chunks, of which the sums alone are known."""
    n_classes = rows.probabilities.shape[2]
    plan = SimpleNamespace(
        n_rows=len(rows.labels),
        largest_weight=1.0 if rows.weights is None else float(rows.weights.max()),
        scale=SimpleNamespace(n_states=1 if n_classes == 2 else n_classes),
        scoring=rows.scoring,
        unit=lambda largest: 2.0**40 / 2.0 ** np.ceil(np.log2(largest)),
        n_groups=0,
    )
    shown = rows.probabilities[:, :, 1:] if n_classes == 2 else rows.probabilities
    states = [
        Candidates(
            shown[:, some].astype(np.float32),
            rows.labels[some],
            None if rows.weights is None else rows.weights[some],
        )
        for some in np.array_split(np.arange(len(rows.labels)), n_chunks)
    ]
    pool = LocalPool(plan, [None] * n_chunks, states, n_jobs=1)
    return HeldOutSums(pool, plan, rows.names, has_uncalibrated=rows.has_uncalibrated)


def random_candidates(seed, n_candidates=6, n_rows=60, n_classes=3):
    """Probabilities of various quality, some of them nearly or exactly the same, and labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, n_rows)
    truth = 2.0 * np.eye(n_classes)[labels] + rng.standard_normal((n_rows, n_classes))
    noise = rng.standard_normal((n_candidates, n_rows, n_classes))
    logits = truth * rng.uniform(0, 2, (n_candidates, 1, 1)) + noise
    logits[1] = logits[0] + rng.choice([0.0, 1e-9, 1e-3]) * noise[1]
    odds = np.exp(logits)
    return odds / odds.sum(axis=2, keepdims=True), labels


def tree_levels(qualities, *, uncalibrated=0.0, n_rows=600, noise=0.8, seed=0, scoring="rmse"):
    """A tree read at several levels that know that much of the truth, the root first."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n_rows)
    truth = np.where(labels == 1, 1.0, -1.0)

    def predict(quality):
        p = 1 / (1 + np.exp(-(quality * truth + noise * rng.standard_normal(n_rows))))
        return np.column_stack([1 - p, p])

    names = ["global", *(f"{2**k} regions" for k in range(1, len(qualities)))]
    known = list(qualities)
    if uncalibrated is not None:
        names, known = ["uncalibrated", *names], [uncalibrated, *known]
    return HeldOutRows(
        names=tuple(names),
        probabilities=np.array([predict(quality) for quality in known]),
        labels=labels,
        weights=None,
        scoring=scoring,
        has_uncalibrated=uncalibrated is not None,
    )
