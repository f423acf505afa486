"""When a tree is grown on histograms, and the folds that it refuses then."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit

from caltree import CalibrationTree, tree
from caltree._histogram import engine
from caltree._histogram.grower import grow_trees

from ..support.default_trees import fitted
from ..support.histogram_cases import histogram_tree
from ..support.trees import FIXED, make_frame, make_rows, same_tree

MOST = 300


@pytest.fixture
def few_rows(monkeypatch):
    """So few rows are looked at one by one."""
    monkeypatch.setattr(tree, "_MOST_EXACT_ROWS", MOST)


@pytest.mark.usefixtures("few_rows")
def test_auto_goes_over_beyond_that_many_rows():
    X, y, scores = make_rows(MOST + 1)
    for n_rows, methods in ((MOST, ("exact", "hist")), (MOST + 1, ("hist", "exact"))):
        rows = X[:n_rows], y[:n_rows], scores[:n_rows]
        auto, one, other = (
            fitted(CalibrationTree(tree_method=method).fit(*rows)) for method in ("auto", *methods)
        )
        assert auto == one
        assert auto != other


@pytest.mark.usefixtures("few_rows")
def test_rows_of_no_weight_do_not_count():
    X, y, scores = make_rows(MOST + 50)
    weights = np.ones(MOST + 50)
    weights[::7] = 0.0
    auto, rows = (
        CalibrationTree(tree_method=method).fit(X, y, scores, sample_weight=weights)
        for method in ("auto", "exact")
    )
    assert np.count_nonzero(weights) <= MOST and fitted(auto) == fitted(rows)


def test_the_documented_size_is_that_of_the_code():
    assert f"{tree._MOST_EXACT_ROWS:,} rows" in " ".join(CalibrationTree.__doc__.split())
    assert not CalibrationTree()._uses_histograms(tree._MOST_EXACT_ROWS)
    assert CalibrationTree()._uses_histograms(tree._MOST_EXACT_ROWS + 1)


@pytest.mark.parametrize(
    ("max_leaf_nodes", "n_rows", "split", "leaf"),
    [
        (None, 3200, 8, 5),
        (64, 3200, 8, 5),
        (2, 3200, 100, 12.5),  # one in 32 rows, and an eighth of that
        (20, 3200, 10, 5),
    ],
)
def test_nodes_are_split_as_far_as_the_leaves_can_use(max_leaf_nodes, n_rows, split, leaf):
    """What is cut back to few leaves need not be grown to many."""
    seen = []

    def watched(pool, plan, limits, reach):
        seen.append((limits.min_samples_split, limits.min_samples_leaf))
        return grow_trees(pool, plan, limits, reach)

    with patch.object(engine, "grow_trees", watched):
        tree = histogram_tree(max_leaf_nodes=max_leaf_nodes).fit(*make_rows(n_rows))
    assert seen == [(split, leaf)]
    assert tree.get_n_leaves() <= (max_leaf_nodes or n_rows)


def test_however_many_rows_there_are_regions_are_no_smaller_than_one_in_4096():
    seen = []

    def watched(pool, plan, limits, reach):
        seen.append(limits.min_samples_split)
        return grow_trees(pool, plan, limits, reach)

    X, y, scores = make_rows(300)
    # Rows that count for many.
    weights = np.full(300, 4096.0)
    with patch.object(engine, "grow_trees", watched):
        histogram_tree(max_leaf_nodes=None).fit(X, y, scores, weights)
        histogram_tree(max_leaf_nodes=100_000).fit(X, y, scores, weights)
    assert seen == [300.0, 300.0]


def test_a_fitted_tree_is_stored_and_read_like_any():
    frame, y, scores = make_frame(600)
    fit = histogram_tree().fit(frame, y, scores)
    again = CalibrationTree.from_dict(fit.to_dict())
    assert again.to_dict() == fit.to_dict()
    assert np.array_equal(again.predict_proba(frame, scores), fit.predict_proba(frame, scores))
    assert again.to_text() == fit.to_text()


# Refused


@pytest.mark.parametrize("value", ["yes", "Auto", True, False, 1, None, ["hist"]])
def test_other_values_are_refused(value):
    X, y, scores = make_rows(50)
    message = "tree_method must be one of 'auto', 'exact', 'hist', got"
    with pytest.raises(ValueError, match=message) as error:
        CalibrationTree(tree_method=value).fit(X, y, scores)
    assert repr(value) in str(error.value)


@pytest.mark.parametrize(("n_rows", "cv", "most"), [(40, 41, 40), (400, 251, 250)])
def test_too_many_folds_are_refused(n_rows, cv, most):
    message = f"cv gives {cv} folds of {n_rows} rows; with histograms use at most {most}"
    for folds in (cv, KFold(cv)):
        if cv > n_rows and not isinstance(folds, int):
            continue
        with pytest.raises(ValueError, match=message):
            histogram_tree(cv=folds).fit(*make_rows(n_rows))


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (RepeatedKFold(n_splits=3, n_repeats=2, random_state=0), "cv holds a row out more than"),
        (
            [(np.arange(100), np.arange(50, 300))],
            "fold 0 of cv has rows in both of its parts or in none",
        ),
        ([(np.arange(100, 300), np.arange(100)), (np.arange(100), np.arange(150, 300))], "fold 1"),
        ([(np.arange(100, 300), np.repeat(np.arange(50), 2))], "cv holds a row out more than once"),
    ],
    ids=["repeated", "overlap", "gap", "twice"],
)
def test_folds_that_sums_cannot_tell_are_refused(cv, message):
    with pytest.raises(ValueError, match=message) as error:
        histogram_tree(cv=cv).fit(*make_rows(300))
    assert "use tree_method='exact'" in str(error.value)


def test_folds_need_not_hold_every_row_out():
    X, y, scores = make_rows(500)
    cv = ShuffleSplit(n_splits=1, test_size=0.4, random_state=0)
    one = histogram_tree(cv=cv).fit(X, y, scores)
    assert one.selection_ is not None
    train, test = next(cv.split(X))
    other = histogram_tree(cv=[(train, test)]).fit(X, y, scores)
    assert fitted(one) == fitted(other)


def test_without_a_choice_there_are_no_folds():
    X, y, scores = make_rows(300)
    trees = [
        CalibrationTree(**FIXED, tree_method="hist", cv=cv).fit(X, y, scores)
        for cv in (5, 300, None)
    ]
    assert all(same_tree(trees[0], other) for other in trees) and trees[0].selection_ is None
    assert trees[0].get_n_leaves() > 2


def test_too_many_rows_of_one_class_need_no_stratification():
    """Folds are dealt without a look at the classes, so that one may miss a class."""
    X, y, scores = make_rows(400)
    y[:] = 0
    y[:2] = 1
    fit = histogram_tree(cv=50).fit(X, y, scores)
    assert np.isfinite(fit.predict_proba(X, scores)).all()
