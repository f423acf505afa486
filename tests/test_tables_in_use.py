"""Tables of a stranger: identifiers, columns in another order, values that training had not."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import make_column_transformer
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from caltree import (
    CalibratedClassifier,
    CalibrationBoosting,
    CalibrationEnsemble,
    CalibrationForest,
    CalibrationTree,
    PublishedCalibrationTree,
)
from caltree.report import report

N_ROWS = 600
KINDS = {
    "exact": CalibrationTree,
    "histograms": lambda **params: CalibrationTree(tree_method="hist", **params),
    "forest": lambda **params: CalibrationForest(10, random_state=0, **params),
    "boosting": CalibrationBoosting,
    "ensemble": lambda **params: CalibrationEnsemble(5, random_state=0, **params),
}
kinds = pytest.mark.parametrize("kind", KINDS)


def make_customers(n_rows=N_ROWS, seed=0):
    """Customers with a number and a name each, whose scores are wrong on plan a."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"customer": [f"customer-{row}" for row in rng.permutation(n_rows)]})
    frame["plan"] = rng.choice(["a", "b", "c"], n_rows)
    frame["age"] = rng.integers(18, 80, n_rows).astype(float)
    frame["number"] = 40_000 + rng.permutation(n_rows)
    scores = rng.random(n_rows)
    y = rng.random(n_rows) < np.where(frame["plan"] == "a", scores / 3, scores)
    return frame, y, scores


def fit(kind, frame, y, scores, **params):
    with pytest.warns(UserWarning, match=r"'customer', 'number' look like .* and are left out"):
        return KINDS[kind](**params).fit(frame, y, scores=scores)


@kinds
def test_identifiers_are_left_out(kind, tmp_path):
    frame, y, scores = make_customers()
    calibrator = fit(kind, frame, y, scores)
    without = KINDS[kind]().fit(frame[["plan", "age"]], y, scores=scores)
    expected = without.predict_proba(frame[["plan", "age"]], scores)
    assert np.array_equal(calibrator.predict_proba(frame, scores), expected)
    assert calibrator.n_features_in_ == 4
    assert calibrator.feature_names_in_.tolist() == list(frame.columns)
    assert calibrator.feature_importances_[[0, 3]].tolist() == [0.0, 0.0]
    calibrator.save(tmp_path / "model.json")
    stored = (tmp_path / "model.json").read_text()
    assert "customer-" not in stored
    columns = json.loads(stored)["model"]["attributes"]["columns"]
    assert [column["categories"] for column in columns] == [[], ["a", "b", "c"], None, []]
    restored = type(calibrator).load(tmp_path / "model.json")
    # Those columns need not be there any more.
    assert np.array_equal(restored.predict_proba(frame[["age", "plan"]], scores), expected)


@kinds
def test_identifiers_can_be_kept(kind):
    frame, y, scores = make_customers()
    calibrator = KINDS[kind](drop_identifiers=False).fit(frame, y, scores=scores)
    assert all(column.is_used for column in calibrator.model_.attributes.columns)
    with pytest.warns(UserWarning, match="attribute 'number' looks like an identifier"):
        calibrator = KINDS[kind](categorical_features=["customer"]).fit(frame, y, scores=scores)
    kept = [column.is_used for column in calibrator.model_.attributes.columns]
    assert kept == [True, True, True, False]


@kinds
def test_identifiers_of_arrays_keep_their_places(kind):
    _, y, scores = make_customers()
    X = np.column_stack([np.arange(N_ROWS), np.random.default_rng(0).normal(size=N_ROWS)])
    with pytest.warns(UserWarning, match="attribute 'x0' looks like an identifier"):
        calibrator = KINDS[kind]().fit(X, y, scores=scores)
    expected = calibrator.predict_proba(X, scores)
    X[:, 0] = -7.0
    assert np.array_equal(calibrator.predict_proba(X, scores), expected)
    with pytest.raises(ValueError, match=r"X has 1 attributes, but .* fitted with 2"):
        calibrator.predict_proba(X[:, 1:], scores)


def test_nothing_but_identifiers():
    frame, y, scores = make_customers()
    tree = fit("exact", frame[["customer", "number"]], y, scores)
    assert tree.get_n_leaves() == 1
    assert tree.predict_proba(frame[["number"]], scores).shape == (N_ROWS, 2)


def test_the_published_method_keeps_identifiers_and_says_so():
    frame, y, scores = make_customers()
    with pytest.warns(UserWarning, match=r"'customer', 'number' look .*; the published .* keeps"):
        tree = PublishedCalibrationTree(boosting_iterations=2).fit(frame, y, scores=scores)
    assert all(column.is_used for column in tree.model_.attributes.columns)


def test_the_classifier_gets_all_columns():
    frame, y, _ = make_customers()
    chosen = make_column_transformer(("passthrough", ["age", "number"]))
    model = CalibratedClassifier(make_pipeline(chosen, GaussianNB()), cv=2)
    with pytest.warns(UserWarning, match=r"'customer', 'number' look like identifiers"):
        model.fit(frame, y)
    assert model.calibrator_.model_.attributes.used_names == ["plan", "age"]
    assert model.predict_proba(frame).shape == (N_ROWS, 2)


def test_readers_of_the_model_skip_identifiers():
    frame, y, scores = make_customers()
    tree = fit("exact", frame, y, scores)
    assert {row["attribute"] for row in tree.segments(frame, y, scores)} == {"plan", "age"}
    assert '"customer"' not in str(tree.to_sql())
    page = report(tree, frame[["plan", "age"]], y, scores)
    assert page.data["data"]["training_rows"]["status"] == "seen"
    shares = {each["name"]: each["share"] for each in page.data["importances"]["shares"]}
    assert shares["customer"] == 0.0


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("kind", [*KINDS, "published"])
def test_columns_go_by_name(kind, library, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    make = {
        "pandas": lambda frame: frame,
        "polars": pl.from_pandas,
        "pyarrow": pa.Table.from_pandas,
    }
    frame, y, scores = make_customers()
    known = frame[["plan", "age"]]
    published = PublishedCalibrationTree(boosting_iterations=2)
    calibrator = published if kind == "published" else KINDS[kind]()
    calibrator.fit(make[library](known), y, scores=scores)
    other = known[["age", "plan"]].assign(when=pd.Timestamp("2020-01-01"), extra="text")
    for table in (make[library](other), other):
        expected = calibrator.predict_proba(known, scores)
        assert np.array_equal(calibrator.predict_proba(table, scores), expected)
        assert calibrator.segments(table, y, scores) == calibrator.segments(known, y, scores)
        assert (
            report(calibrator, table, y, scores).data == report(calibrator, known, y, scores).data
        )
    with pytest.raises(ValueError, match=r"X lacks \['plan'\], .*'extra'\] instead"):
        calibrator.predict_proba(make[library](other.drop(columns="plan")), scores)


@kinds
def test_new_values_are_counted_in_one_warning(kind):
    frame, y, scores = make_customers()
    frame = frame[["plan", "age"]]
    calibrator = KINDS[kind]().fit(frame, y, scores=scores)
    calibrator.predict_proba(frame, scores)  # no warning
    new = frame.assign(plan=frame["plan"].where(np.arange(N_ROWS) % 3 > 0, "gold"))
    new.loc[:4, "age"] = np.nan
    with pytest.warns(UserWarning) as caught:
        calibrator.predict_proba(new, scores)
    [warning] = caught
    assert warning.filename == __file__
    assert str(warning.message).startswith(
        "some of 600 rows have values that no training row had: 'plan': a new category such as "
        "'gold' in 200 rows; 'age': missing in 5 rows, though never in training."
    )


def test_a_classifier_counts_new_values():
    frame, y, _ = make_customers()
    frame = frame[["plan", "age"]]
    chosen = make_column_transformer(("passthrough", ["age"]))
    model = CalibratedClassifier(make_pipeline(chosen, GaussianNB()), cv=2).fit(frame, y)
    with pytest.warns(UserWarning, match="of 600 rows have .* new category such as 'z' in 600"):
        model.predict_proba(frame.assign(plan="z"))


def test_a_report_counts_new_values():
    frame, y, scores = make_customers()
    frame = frame[["plan", "age"]]
    tree = CalibrationTree().fit(frame, y, scores=scores)
    unseen = report(tree, frame, y, scores).data["data"]["unseen"]
    assert unseen == {"attributes": [], "message": None}
    with pytest.warns(UserWarning, match="a new category such as '<b>' in 600 rows"):
        page = report(tree, frame.assign(plan="<b>"), y, scores)
    [found] = page.data["data"]["unseen"]["attributes"]
    assert (found["attribute"], found["new_category"]) == ("plan", 600)
    assert "a new category such as &#39;&lt;b&gt;&#39; in 600 rows" in page.to_html()
