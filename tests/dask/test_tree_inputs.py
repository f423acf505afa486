"""Parameters and rows that a tree on a cluster refuses, and the messages."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask import delayed
from sklearn.exceptions import NotFittedError

from caltree.dask import CalibrationTree

from ..support.dask_rows import QUICK, divided
from ..support.trees import make_rows

SIZES = (40, 60)


def rows(**changed):
    X, y, scores = make_rows(100)
    plain = {"X": X, "y": y, "scores": scores[:, 1], **changed}
    return {
        name: divided(value, SIZES) if isinstance(value, np.ndarray) else value
        for name, value in plain.items()
    }


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"X": [[1.0]]}, "X must be a Dask array or dataframe, got list; use dask.array.from_arr"),
        ({"scores": delayed(1)}, "scores must be a Dask array or dataframe, got Delayed"),
        ({"sample_weight": 1.0}, "sample_weight must be a Dask array or dataframe, got float"),
    ],
    ids=["list", "delayed", "number"],
)
def test_other_things_than_collections(changed, message):
    with pytest.raises(TypeError, match=message):
        CalibrationTree().fit(**rows(**changed))


def test_other_rows():
    y = da.zeros(99, chunks=50)
    with pytest.raises(ValueError, match="y has 99 rows, but X has 100; give both the same rows"):
        CalibrationTree().fit(**rows(y=y))


def test_other_partitions():
    y = dd.from_pandas(pd.Series(np.arange(100) % 2), npartitions=3)
    with pytest.raises(ValueError, match="y has 3 partitions, but X has 2; repartition it"):
        CalibrationTree().fit(**rows(y=y))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"tree_method": "exact"}, "caltree.dask.CalibrationTree grows on histograms: .*'exact'"),
        ({"cv": [([0], [1])]}, r"cv must be a whole number from 2"),
        ({"l2_regularization": -1}, "l2_regularization must be"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_parameters(params, message):
    with pytest.raises(ValueError, match=message):
        CalibrationTree(**params).fit(**rows())


def test_groups():
    with pytest.raises(ValueError, match="groups cannot be kept together on a cluster"):
        CalibrationTree().fit(**rows(), groups=np.arange(100) // 2)


def test_no_client():
    message = r"there is no Dask client; connect to a cluster first: client = distributed.Client"
    with pytest.raises(ValueError, match=message):
        CalibrationTree().fit(**rows())


def test_a_tree_that_is_not_fitted():
    given = rows()
    with pytest.raises(NotFittedError):
        CalibrationTree().predict_proba(given["X"], given["scores"])
    with pytest.raises(NotFittedError):
        CalibrationTree().apply(given["X"])


def with_value(values, place, value):
    values = values.astype(object if isinstance(value, str) else float)
    values[place] = value
    return values


LABELS = np.arange(100) % 2
WORDS = np.where(LABELS == 1, "yes", "no").astype(object)


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        (
            {"scores": with_value(np.full(100, 0.5), 70, np.nan)},
            ValueError,
            r"scores contains NaN in row 30.* \(in partition 1\)",
        ),
        (
            {"X": with_value(np.zeros((100, 2)), (3, 1), np.inf)},
            ValueError,
            r"X contains infinity in attribute 'x1'.*\(in partition 0\)",
        ),
        (
            {"y": with_value(LABELS, 41, np.nan)},
            ValueError,
            r"y contains a missing label in row 1.*\(in partition 1\)",
        ),
        (
            {"sample_weight": with_value(np.ones(100), 99, -1.0)},
            ValueError,
            r"negative weight -1 in row 59.*\(in partition 1\)",
        ),
        ({"y": np.ones(100)}, ValueError, r"y contains one class only, 1.0"),
        ({"sample_weight": np.zeros(100)}, ValueError, "X has no row of positive weight"),
        (
            {"y": np.concatenate([WORDS[:40], LABELS[40:].astype(object)])},
            TypeError,
            "y has strings in some partitions and numbers in others",
        ),
        ({"scores": np.full((100, 3), 0.3)}, ValueError, r"scores has 3 columns.*2 classes"),
    ],
    ids=["nan", "infinity", "missing", "negative", "one class", "no row", "mixed", "columns"],
)
def test_rows(client, changed, error, message):
    with pytest.raises(error, match=message):
        CalibrationTree(**QUICK).fit(**rows(**changed))


def test_lengths_that_only_the_workers_see(client):
    X = pd.DataFrame(make_rows(100)[0], columns=["a", "b", "c"])
    y, scores = pd.Series(LABELS), pd.Series(np.full(100, 0.5))
    given = divided(X, SIZES), divided(y, (50, 50)), divided(scores, SIZES)
    message = r"y has 50 labels, but X has [46]0 rows \(in partition [01]\)"
    with pytest.raises(ValueError, match=message):
        CalibrationTree(**QUICK).fit(*given)


def test_columns_that_differ_between_partitions(client):
    X = pd.DataFrame(make_rows(100)[0], columns=["a", "b", "c"])
    parts = [delayed(X[:40]), delayed(X[40:].rename(columns={"c": "d"}))]
    given = rows(X=dd.from_delayed(parts, meta=X[:0], verify_meta=False))
    with pytest.raises(ValueError, match=r"X has the attributes \['a', 'b', 'c'\] in some of its"):
        CalibrationTree(**QUICK).fit(**given)


def test_weights_that_were_meant_as_shares(client):
    weights = np.full(100, 0.01)
    with pytest.warns(UserWarning, match="sample_weight sums to 1. A weight is a number of rows"):
        CalibrationTree(**QUICK).fit(**rows(sample_weight=weights))
    with pytest.raises(ValueError, match=r"sample_weight sums to inf, .* rescale"):
        CalibrationTree(**QUICK).fit(**rows(sample_weight=np.full(100, 2.5e306)))


def test_a_stray_score_is_named_whatever_its_partition_looks_like(client):
    stray = make_rows(100)[2][:, 1].copy()
    stray[45] = 1.02
    with pytest.raises(
        ValueError, match=r"1\.02 in row 5 of partition 1, .* 99 rows are .*correct"
    ):
        CalibrationTree(**QUICK).fit(**rows(scores=stray))


def test_a_single_column_of_the_first_class(client):
    X, _, scores = make_rows(400)
    second = scores[:, 1]
    y = (np.random.default_rng(0).random(400) < second).astype(int)
    sizes = (150, 250)
    X, y, first = divided(X, sizes), divided(y, sizes), divided(1.0 - second, sizes)
    plain = CalibrationTree(**QUICK).fit(X, y, divided(second, sizes))
    turned = CalibrationTree(**QUICK, pos_label=0).fit(X, y, first)
    assert turned.pos_label_ == 0
    named = dd.from_dask_array(first, columns="p_0")
    by_name = CalibrationTree(**QUICK).fit(X, y, named)
    expected = plain.predict_proba(X, divided(second, sizes)).compute()
    for tree, given in ((turned, first), (by_name, named)):
        np.testing.assert_allclose(tree.predict_proba(X, given).compute(), expected, atol=1e-9)
    with pytest.warns(UserWarning, match="rank 1 backwards.*pos_label=0") as caught:
        CalibrationTree(**QUICK).fit(X, y, first)
    assert len([each for each in caught if "backwards" in str(each.message)]) == 1


def test_a_copy_of_the_label_is_noticed(client):
    X, y, scores = make_rows(300)
    X[:, 1] = 3.0 - y
    sizes = (90, 0, 110, 100)
    given = divided(y, sizes), divided(scores, sizes)
    with pytest.warns(UserWarning, match="attribute 'x1' has one value for each class") as caught:
        CalibrationTree(**QUICK).fit(divided(X, sizes), *given)
    assert len(caught) == 1
    X[250, 1] += 1.0
    CalibrationTree(**QUICK).fit(divided(X, sizes), *given)  # a warning would be an error
