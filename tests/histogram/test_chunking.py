"""However the rows are divided into chunks and among threads, the tree is the same to the bit."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caltree._histogram import in_process
from caltree._histogram.pool import LocalPool
from caltree._inputs.folds import hashed_folds
from caltree._running.threads import run_in_threads

from ..support.default_trees import fitted
from ..support.histogram_cases import Problem, chunks_of, examples, histogram_tree, problems
from ..support.trees import make_frame, make_rows


@examples(30)
@given(problems(), st.integers(2, 20), st.sampled_from([None, 30]), st.sampled_from([None, 2, 3]))
def test_chunks_and_threads_change_no_bit(problem, n_chunks, sample_rows, n_jobs):
    with chunks_of(10_000, sample_rows):
        whole = problem.fitted()
    with chunks_of(len(problem.y) // n_chunks, sample_rows):
        assert problem.fitted(n_jobs=n_jobs) == whole


def test_chunks_of_one_row():
    X, y, scores = make_rows(40)
    problem = Problem(X, y, scores, None, {"cv": 2})
    whole = problem.fitted()
    with chunks_of(1):
        assert problem.fitted() == whole


def test_the_trees_above_are_no_stumps():
    """Splits of every kind were compared, and averages."""
    wanted = {(kind, many) for kind in ("nominal", "numeric") for many in (False, True)}
    wanted |= {"uncalibrated", "global", "local", "averaged", "missing"}
    kinds = set()

    @examples(400)  # some are rare, and each version of hypothesis draws others
    @given(problems())
    def look(problem):
        if wanted <= kinds:
            return
        tree = problem.fit()
        model = tree.model_
        inner = model.attribute >= 0
        kinds.update(
            ("nominal" if nominal else "numeric", len(tree.classes_) > 2)
            for nominal in model.table[inner] >= 0
        )
        if tree.selection_ is not None:
            kinds.add(tree.selection_.chosen)
            kinds.update("averaged" for each in tree.selection_.candidates if 0 < each.weight < 1)
        kinds.update("missing" for rows in model.missing_rows if rows > 0)

    look()
    assert wanted <= kinds


def test_the_number_of_rows_decides_on_the_number_of_chunks():
    X, y, scores = make_rows(1000)
    expected = fitted(histogram_tree().fit(X, y, scores))
    counts = []

    class Counting(LocalPool):
        def __init__(self, plan, chunks, states, n_jobs):
            counts.append([len(chunk) for chunk in chunks])
            super().__init__(plan, chunks, states, n_jobs)

    for fewest, most, n_chunks in ((10, 10_000, 4), (300, 10_000, 8), (10, 90, 2)):
        with (
            patch.multiple(in_process, _FEWEST_ROWS=fewest, _MOST_ROWS=most, _CHUNKS=n_chunks),
            patch.object(in_process, "LocalPool", Counting),
        ):
            assert fitted(histogram_tree().fit(X, y, scores)) == expected
    assert counts == [[250] * 4, [300] * 3 + [100], [90] * 11 + [10]]


def test_a_chunk_without_a_row_of_positive_weight_is_left_out():
    frame, y, scores = make_frame(400)
    weights = np.ones(400)
    weights[100:220] = 0.0
    problem = Problem(frame, y, scores, weights, {})
    whole = problem.fitted()
    with chunks_of(50):
        assert problem.fitted(n_jobs=2) == whole
    kept = np.flatnonzero(weights)
    without = Problem(frame, y, scores, None, {}).reordered(kept)
    assert without.fitted()["model"]["n_rows"] == whole["model"]["n_rows"]


def dyadic_problem(n_classes, seed):
    """Rows of which means and deviations are exact, in whatever order they are added up."""
    rng = np.random.default_rng(seed)
    frame, y, _ = make_frame(1024, seed=seed)
    frame["number"] = np.round(8 * frame["number"]) / 8
    frame = frame.drop(columns=["count"])
    logits = np.round(4 * rng.standard_normal((1024, n_classes))) / 4
    region = (frame["number"] > 0.25).to_numpy()
    truth = np.where(region[:, np.newaxis], 1.5 * logits, -0.5 * logits)
    y = np.argmax(truth + rng.gumbel(size=truth.shape), axis=1)
    # The sums of missing numbers' complement must be exact, too.
    frame["number"] = frame["number"].fillna(0.0)
    # Of so large margins what bends node models is the size, and that is exact.
    odds = logits[:, 1:] - logits[:, :1]
    scores = logits if n_classes > 2 else odds + np.where(odds > 0.0, 64.0, -64.0)
    # Logits of more classes would be normed, which rounds them.
    return Problem(frame, y, scores, None, {"score_type": "margin"})


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("scoring", ["rmse", "log_loss"])
def test_the_order_of_the_rows_changes_no_bit(n_classes, scoring):
    problem = dyadic_problem(n_classes, seed=n_classes)
    fold = hashed_folds(0, 1024, 4, 4, 0)
    order = np.random.default_rng(0).permutation(1024)
    found = []
    for case, folds in ((problem, fold), (problem.reordered(order), fold[order])):
        cv = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(4)]
        with chunks_of(1024 if case is problem else 100):
            found.append(case.fitted(cv=cv, scoring=scoring))
    assert len(found[0]["model"]["attribute"]) > 3
    assert found[0] == found[1]


def test_a_number_of_folds_is_the_deal_of_the_rows_by_number():
    X, y, scores = make_rows(500)
    fold = hashed_folds(0, 500, 5, 5, 0)
    cv = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(5)]
    found, given = (fitted(histogram_tree(cv=folds).fit(X, y, scores)) for folds in (5, cv))
    assert found == given


def test_threads_are_no_more_than_chunks():
    X, y, scores = make_rows(200)
    n_threads = set()

    def watched(function, items, n):
        n_threads.add(n)
        return run_in_threads(function, items, n)

    with patch("caltree._histogram.pool.run_in_threads", watched), chunks_of(100):
        histogram_tree(n_jobs=8).fit(X, y, scores)
    assert n_threads == {2}
