"""Any table, any scores: what goes into a calibrated classifier."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from caltree import (
    BetaScaling,
    CalibratedClassifier,
    CalibrationTree,
    IdentityCalibrator,
    IsotonicScaling,
    PlattScaling,
    TemperatureScaling,
)

from ..support.classifiers import Says, SaysMargins, Told
from ..support.trees import assert_probabilities, fixed_tree, make_frame, make_rows

X, Y, SCORES = make_rows(120)
X3, Y3, SCORES3 = make_rows(150, n_classes=3)
NAMES = ["a", "b", "c"]
FRAME = pd.DataFrame(X, columns=NAMES)
CALIBRATORS = [
    PlattScaling(),
    TemperatureScaling(),
    BetaScaling(),
    IsotonicScaling(),
    IdentityCalibrator(),
    fixed_tree(),
]


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("attributes", [None, ["c", "a"]], ids=["all", "two"])
def test_a_frame_gives_what_its_numbers_give(kind, attributes):
    frame = kind({name: X[:, j] for j, name in enumerate(NAMES)})
    by_number = None if attributes is None else [NAMES.index(name) for name in attributes]
    model = CalibratedClassifier(GaussianNB(), fixed_tree(), cv=3, attributes=attributes)
    plain = CalibratedClassifier(GaussianNB(), fixed_tree(), cv=3, attributes=by_number).fit(X, Y)
    model.fit(frame, Y)
    np.testing.assert_allclose(
        model.predict_proba(frame), plain.predict_proba(X), rtol=0, atol=1e-12
    )
    assert model.calibrator_.feature_names_in_.tolist() == (attributes or NAMES)


class Colours(BaseEstimator):
    """A classifier that reads polars or pyarrow itself: how often the colour of a row was 1."""

    def fit(self, X, y):
        self.kind_ = type(X)
        self.classes_ = np.unique(y)
        colours = np.array(X["colour"].to_pylist() if isinstance(X, pa.Table) else X["colour"])
        self.shares_ = {colour: y[colours == colour].mean() for colour in set(colours)}
        return self

    def predict_proba(self, X):
        assert type(X) is self.kind_
        colours = X["colour"].to_pylist() if isinstance(X, pa.Table) else X["colour"]
        share = np.array([self.shares_.get(colour, 0.5) for colour in colours])
        return np.column_stack([1 - share, share])


@pytest.mark.parametrize("kind", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "pyarrow"])
def test_a_classifier_is_given_the_rows_of_a_frame_as_a_frame_of_that_kind(kind):
    frame, y, _ = make_frame(120)
    table = kind(frame[["number", "colour", "size"]].fillna({"colour": "none"}))
    model = CalibratedClassifier(Colours(), fixed_tree(), cv=3).fit(table, y)
    assert model.estimator_.kind_ is type(table)
    assert_probabilities(model.predict_proba(table))
    assert model.calibrator_.feature_names_in_.tolist() == ["number", "colour", "size"]


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.coo_matrix, sparse.csc_matrix])
def test_a_sparse_matrix_gives_what_the_dense_one_gives(kind):
    dense = np.where(np.abs(X) > 0.5, X, 0)
    model = CalibratedClassifier(LogisticRegression(), fixed_tree(), cv=3, attributes=[0, 2])
    found = model.fit(kind(dense), Y).predict_proba(kind(dense))
    np.testing.assert_allclose(found, model.fit(dense, Y).predict_proba(dense), rtol=0, atol=1e-6)


def test_texts_are_between_you_and_the_classifier():
    words = ["cheap pills now", "meeting at noon", "cheap meeting", "noon pills", "now now now"]
    texts = [words[i % 5] + (" offer" if i % 3 else "") for i in range(60)]
    y = np.where(["cheap" in text or "offer" in text for text in texts], "spam", "ham")
    y[::7] = "ham"
    model = CalibratedClassifier(make_pipeline(CountVectorizer(), MultinomialNB()), PlattScaling())
    model.fit(texts, y)
    assert model.classes_.tolist() == ["ham", "spam"]
    assert_probabilities(model.predict_proba(["cheap offer", "never seen"]))
    assert model.predict(["cheap cheap offer"]) == ["spam"]
    assert not hasattr(model, "n_features_in_")
    arrays = [np.array(texts), np.array(texts, dtype=object), pd.Series(texts), tuple(texts)]
    for same in arrays:
        other = CalibratedClassifier(model.estimator, PlattScaling()).fit(same, y)
        assert np.array_equal(other.predict_proba(texts), model.predict_proba(texts))


def test_a_kernel_is_cut_in_rows_and_columns():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(120, 2))
    y = (centres[:, 0] + 0.3 * rng.normal(size=120) > 0).astype(int)
    new = rng.normal(size=(30, 2))
    direct = CalibratedClassifier(SVC(kernel="linear"), PlattScaling(), cv=3).fit(centres, y)
    kernel = CalibratedClassifier(SVC(kernel="precomputed"), PlattScaling(), cv=3)
    kernel.fit(centres @ centres.T, y)
    assert kernel.__sklearn_tags__().input_tags.pairwise
    np.testing.assert_allclose(
        kernel.predict_proba(new @ centres.T), direct.predict_proba(new), rtol=0, atol=1e-9
    )


@pytest.mark.parametrize(
    "labels",
    [np.array(["no", "yes"]), np.array([False, True]), np.array([-1, 1]), np.array([3.0, 7.0])],
    ids=lambda labels: str(labels.dtype.kind),
)
@pytest.mark.parametrize("calibrator", CALIBRATORS, ids=lambda each: type(each).__name__)
def test_labels_are_names_and_nothing_more(labels, calibrator):
    named = CalibratedClassifier(GaussianNB(), calibrator, cv=3).fit(X, labels[Y])
    plain = CalibratedClassifier(GaussianNB(), calibrator, cv=3).fit(X, Y)
    assert np.array_equal(named.classes_, labels) and named.classes_.dtype == labels.dtype
    assert np.array_equal(named.predict_proba(X), plain.predict_proba(X))
    assert np.array_equal(named.predict(X), labels[plain.predict(X)])


@pytest.mark.parametrize("y", [pd.Series(Y, index=range(500, 620)), Y.tolist(), pl.Series(Y)])
def test_labels_go_by_position_whatever_holds_them(y):
    model = CalibratedClassifier(GaussianNB(), PlattScaling())
    expected = model.fit(X, Y).predict_proba(X)
    assert np.array_equal(model.fit(FRAME, y).predict_proba(FRAME), expected)


class Single(Says):
    """Single precision, a few units too much here and too little there."""

    def predict_proba(self, X):
        probabilities = super().predict_proba(X).astype(np.float32)
        probabilities[::3] *= np.float32(1 + 1e-7)
        probabilities[1::4, 0] = 1.0000001
        probabilities[1::4, 1:] = 0
        probabilities[2::4, 0] = -1e-7
        return probabilities


@pytest.mark.parametrize("data", [(SCORES, Y), (SCORES3, Y3)], ids=["two", "three"])
@pytest.mark.parametrize("calibrator", CALIBRATORS, ids=lambda each: type(each).__name__)
def test_probabilities_of_single_precision_will_do(calibrator, data):
    scores, y = data
    model = CalibratedClassifier(Single(), calibrator, cv=3).fit(scores, y)
    assert_probabilities(model.predict_proba(scores))
    assert model.predict_proba(scores).dtype == np.float64
    told = CalibratedClassifier(Single(), Told(), cv=3).fit(scores, y).calibrator_.given_
    assert told["scores"].min() == 0 and told["scores"].max() == 1


def test_probabilities_below_0_alone_are_cut_off_too():
    scores = np.where(np.arange(120)[:, None] % 5, [[0.4, 0.6]], [[-1e-8, 0.9]])
    model = CalibratedClassifier(Says(), PlattScaling()).fit(scores, Y)
    assert_probabilities(model.predict_proba(scores))


@pytest.mark.parametrize("size", [1e-6, 1e6, np.inf])
@pytest.mark.parametrize("calibrator", CALIBRATORS, ids=lambda each: type(each).__name__)
def test_margins_of_any_size(calibrator, size):
    rows = X.copy()
    rows[:, 0] = -np.where(X[:, 0] == 0, 1, X[:, 0]) * size
    model = CalibratedClassifier(SaysMargins(), calibrator, cv=3, attributes=[1, 2]).fit(rows, Y)
    assert_probabilities(model.predict_proba(rows))
    assert model.predict_proba(rows)[:, 1].std() > 0


def test_the_unit_of_a_margin_does_not_matter():
    models = [CalibratedClassifier(SaysMargins(), PlattScaling()) for _ in range(2)]
    small, large = models[0].fit(X, Y), models[1].fit(X * 1e6, Y)
    np.testing.assert_allclose(
        small.predict_proba(X), large.predict_proba(X * 1e6), rtol=0, atol=1e-8
    )


ATTRIBUTES = {
    "names": ["a", "c"],
    "indices": [0, 2],
    "numpy indices": np.array([0, 2]),
    "mask": [True, False, True],
    "numpy mask": np.array([True, False, True]),
    "slice": slice(0, 3, 2),
    "selector": make_column_selector("[ac]"),
    "callable": lambda table: [name for name in table.columns if name != "b"],
}


@pytest.mark.parametrize("attributes", ATTRIBUTES.values(), ids=ATTRIBUTES)
def test_the_calibrator_sees_the_chosen_columns(attributes):
    model = CalibratedClassifier(GaussianNB(), Told(), attributes=attributes).fit(FRAME, Y)
    pd.testing.assert_frame_equal(model.calibrator_.given_["X"], FRAME[["a", "c"]])
    assert model.n_features_in_ == 3


def test_the_calibrator_sees_columns_that_the_classifier_does_not():
    frame, y, _ = make_frame(300)
    chosen = make_column_transformer(("passthrough", ["known"]))
    model = CalibratedClassifier(
        make_pipeline(chosen, GaussianNB()),
        CalibrationTree(do_no_harm=False),
        attributes=["number", "colour"],
    ).fit(frame, y)
    assert model.estimator_[-1].n_features_in_ == 1
    assert model.calibrator_.feature_names_in_.tolist() == ["number", "colour"]
    assert model.calibrator_.get_n_leaves() > 1
    np.testing.assert_array_equal(
        model.predict_proba(frame),
        model.calibrator_.predict_proba(
            frame[["number", "colour"]], model.estimator_.predict_proba(frame)
        ),
    )


@pytest.mark.parametrize("attributes", [["c", "a"], [2, 0]], ids=["names", "indices"])
def test_new_columns_are_found_by_name(attributes):
    chosen = make_column_transformer(("passthrough", ["b", "c"]))
    estimator = make_pipeline(chosen, GaussianNB())
    model = CalibratedClassifier(estimator, fixed_tree(), attributes=attributes, cv=2)
    model.fit(FRAME, Y)
    expected = model.predict_proba(FRAME)
    assert np.array_equal(model.predict_proba(FRAME[["b", "c", "a"]]), expected)
    assert np.array_equal(model.predict_proba(FRAME.assign(d="?")[["d", *"cab"]]), expected)
