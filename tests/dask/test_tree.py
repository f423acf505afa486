"""A tree on a cluster is the tree of the same rows on one machine, to the last bit."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from dask import delayed

from caltree import CalibrationTree
from caltree.dask import CalibrationTree as DaskTree

from ..support.dask_rows import QUICK, divided
from ..support.default_trees import fitted
from ..support.trees import make_frame, make_rows

pytestmark = pytest.mark.usefixtures("client")
SIZES = (150, 1, 249, 200)


def trees(X, y, scores, weights=None, sizes=SIZES, **params):
    """The tree of the plain rows, and that of the same rows in partitions."""
    params = {**QUICK, **params}
    local = CalibrationTree(tree_method="hist", **params).fit(X, y, scores, weights)
    parts = [divided(values, sizes) for values in (X, y, scores, weights)]
    return local, DaskTree(**params).fit(*parts)


@pytest.mark.parametrize("sizes", [(600,), (150, 1, 249, 200), (60,) * 10], ids=str)
def test_arrays_however_divided(sizes):
    local, tree = trees(*make_rows(600), sizes=sizes)
    assert local.get_n_leaves() == 2
    assert fitted(tree) == fitted(local)


def test_the_default_tree():
    local, tree = trees(*make_rows(600, seed=3), max_depth=None, cv=5)
    assert local.get_n_leaves() > 2 and len(local.selection_.candidates) > 2
    assert fitted(tree) == fitted(local)


def test_pieces_across_and_pieces_along():
    X, y, scores = make_rows(600)
    local = CalibrationTree(tree_method="hist", **QUICK).fit(X, y, scores)
    parts = da.from_array(X, chunks=(250, 2)), da.from_array(y, chunks=100), da.from_array(scores)
    assert fitted(DaskTree(**QUICK).fit(*parts)) == fitted(local)


@pytest.mark.parametrize("sizes", [SIZES, (0, 300, 0, 300)], ids=["some", "empty"])
def test_dataframes(sizes):
    X, y, scores = make_frame(600)
    X["empty"] = X["number"].where(np.arange(600) >= 300)  # no value in some partitions
    labels = pd.Series(np.where(y == 1, "yes", "no"))
    local, tree = trees(X, labels, pd.DataFrame(scores), sizes=sizes)
    assert fitted(tree) == fitted(local)
    given = divided(X, sizes), divided(pd.DataFrame(scores), sizes)
    expected = local.predict_proba(X, scores)
    assert np.array_equal(tree.predict_proba(*given).compute(), expected)
    assert np.array_equal(tree.apply(given[0]).compute(), local.apply(X))


def test_a_text_column_without_a_value_in_a_partition():
    X, y, scores = make_frame(600)
    X = X[["number", "colour"]].assign(colour=X["colour"].where(np.arange(600) >= 151))
    local, tree = trees(X, pd.Series(y), pd.Series(scores[:, 1]))
    assert fitted(tree) == fitted(local)


def test_weights_some_of_them_zero():
    X, y, scores = make_rows(600)
    weights = np.random.default_rng(0).integers(0, 4, 600) * 0.3
    weights[:150] = 0.0
    local, tree = trees(X, y, scores, weights)
    assert fitted(tree) == fitted(local)


def test_partitions_of_one_class():
    X, y, scores = make_rows(600)
    order = np.argsort(y, kind="stable")
    local, tree = trees(X[order], y[order], scores[order])
    assert fitted(tree) == fitted(local)


@pytest.mark.parametrize(
    "params",
    [
        {"scoring": "log_loss"},
        {"random_state": 7, "max_bins": 8},
        {"max_depth": 2, "max_leaf_nodes": 3, "kept_gain": None},
    ],
    ids=str,
)
def test_parameters(params):
    local, tree = trees(*make_rows(600), **params)
    assert fitted(tree) == fitted(local)


def test_many_classes():
    local, tree = trees(*make_rows(600, n_classes=12))
    assert fitted(tree) == fitted(local)


def test_margins_of_which_some_partition_could_be_probabilities():
    X, y, scores = make_rows(600)
    margins = np.log(scores[:, 1] / scores[:, 0])
    margins[:150] = scores[:150, 1]
    local, tree = trees(X, y, margins)
    assert tree.score_type_ == "margin"
    assert fitted(tree) == fitted(local)


@pytest.mark.parametrize("pos_label", [0, 1])
def test_rounded_scores_of_which_few_partitions_have_the_extremes(pos_label):
    X, y, scores = make_rows(600)
    scores = scores[:, pos_label].round(1).clip(0.1, 0.8)
    scores[:20], scores[-5:] = 0.0, 0.9
    local, tree = trees(X, y, scores, pos_label=pos_label)
    assert local.score_limits_.lowest == 0.05 or local.score_limits_.highest == 0.95
    assert fitted(tree) == fitted(local)


def test_several_classifiers():
    X, y, scores = make_rows(600)
    local, tree = trees(X, y, np.hstack([scores, np.roll(scores, 1, axis=1)]))
    assert tree.n_scores_ == 4
    assert fitted(tree) == fitted(local)


def fail():
    raise ArithmeticError("this partition cannot be made")


def test_predictions_are_lazy():
    X, y, scores = make_rows(600)
    local, tree = trees(X, y, scores)
    broken = da.from_delayed(delayed(fail)(), shape=(10, 3), dtype=float)
    rows = da.concatenate([da.from_array(X[:100]), broken])
    leaves = tree.apply(rows)
    found = tree.predict_proba(rows, da.from_array(np.full(110, 0.5), chunks=((100, 10),)))
    assert found.shape == (110, 2) and leaves.shape == (110,) and leaves.dtype == np.int32
    expected = local.predict_proba(X[:100], np.full(100, 0.5))
    assert np.array_equal(found.blocks[0].compute(), expected)
    assert np.array_equal(leaves.blocks[0].compute(), local.apply(X[:100]))
    for lazy in (found, leaves):
        with pytest.raises(ArithmeticError, match="this partition cannot be made"):
            lazy.compute()


def test_plain_rows_are_calibrated_here():
    X, y, scores = make_rows(600)
    local, tree = trees(X, y, scores)
    assert np.array_equal(tree.predict_proba(X, scores), local.predict_proba(X, scores))
    assert np.array_equal(tree.apply(X), local.apply(X))
    same = tree.to_local()
    assert type(same) is CalibrationTree
    assert fitted(same) == fitted(local)


def test_identifiers_new_values_and_columns_by_name():
    X, y, scores = make_frame(600)
    X["customer"], X["row"] = [f"c{j}" for j in range(600)], np.arange(600)
    with pytest.warns(UserWarning, match="'customer', 'row' look like identifiers") as caught:
        local, tree = trees(X, y, scores)
    assert len(caught) == 2
    assert fitted(tree) == fitted(local)
    used = local.model_.attributes.used_names
    assert "customer" not in used and "row" not in used
    new = X[used[::-1]].assign(extra=1.0, colour="new")
    given = divided(new, SIZES), divided(scores, SIZES)
    with pytest.warns(UserWarning, match="a new category such as 'new' in"):
        expected = local.predict_proba(new, scores)
    with pytest.warns(UserWarning, match="a new category such as 'new' in"):
        found = tree.predict_proba(*given).compute()
    assert np.array_equal(found, expected)


def test_bad_rows_become_nan_in_every_partition():
    X, y, scores = make_rows(600)
    local, tree = trees(X, y, scores)
    scores = np.array(scores, dtype=float)
    scores[[3, 599]] = np.nan
    given = divided(X, SIZES), divided(scores, SIZES)
    found = tree.predict_proba(*given, on_bad_rows="nan").compute()
    expected = local.predict_proba(X, scores, on_bad_rows="nan")
    np.testing.assert_array_equal(found, expected)
    assert np.flatnonzero(np.isnan(found).any(axis=1)).tolist() == [3, 599]
    with pytest.raises(ValueError, match="on_bad_rows must be one of"):
        tree.predict_proba(*given, on_bad_rows="null")
    with pytest.raises(TypeError, match=r"^scores is missing: give the scores"):
        tree.predict_proba(given[0])
