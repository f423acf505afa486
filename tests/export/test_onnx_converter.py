"""Calibrated classifiers as skl2onnx converts them, alone and in pipelines."""

import sys

import numpy as np
import pandas as pd
import pytest
import skl2onnx
from skl2onnx.common.data_types import FloatTensorType, StringTensorType
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC

from caltree import (
    BetaScaling,
    CalibratedClassifier,
    CalibrationBoosting,
    CalibrationEnsemble,
    CalibrationForest,
    CalibrationTree,
    IdentityCalibrator,
    IsotonicScaling,
    PlattScaling,
    PublishedCalibrationTree,
    TemperatureScaling,
)
from caltree.export.onnx import register_converter

from ..support.classifiers import Told
from ..support.onnx_cases import checked
from ..support.trees import FIXED

onnxruntime = pytest.importorskip("onnxruntime")
LABELS = np.array(["ant", "bee", "çat"])
QUICK = LogisticRegression(tol=0.01)
TREE = {**FIXED, "min_samples_split": 60}


@pytest.fixture(autouse=True)
def registered():
    register_converter()


def make_data(n_classes=2, dtype=np.float32):
    X, y = make_classification(
        300, 6, n_informative=5, n_redundant=0, n_classes=n_classes, random_state=0
    )
    return X.astype(np.float32).astype(dtype), y


def run(model, feeds):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    running = onnxruntime.InferenceSession(checked(model).SerializeToString(), options)
    return running.run(None, feeds)


def assert_converted(model, X, tolerance=1e-5, **options):
    converted = skl2onnx.to_onnx(model, X[:1], options={"zipmap": False, **options})
    label, probabilities = run(converted, {"X": X})
    assert probabilities.dtype == X.dtype
    np.testing.assert_allclose(probabilities, model.predict_proba(X), rtol=0, atol=tolerance)
    assert (label == model.predict(X)).all()
    return label


def calibrated(estimator, calibrator=None, **params):
    return CalibratedClassifier(
        estimator, CalibrationTree(**TREE) if calibrator is None else calibrator, cv=2, **params
    )


@pytest.mark.parametrize(
    "estimator",
    [
        QUICK,
        GaussianNB(),
        KNeighborsClassifier(),
        RandomForestClassifier(10, random_state=0),
        GradientBoostingClassifier(n_estimators=5),
        make_pipeline(StandardScaler(), make_pipeline(MinMaxScaler(), QUICK)),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_probabilities(estimator):
    X, y = make_data(3, np.float64)
    assert_converted(calibrated(estimator).fit(X, y), X, 1e-6)


def test_the_best_classifier_of_a_search():
    X, y = make_data(2, np.float64)
    search = GridSearchCV(QUICK, {"tol": [1e-4]}, cv=2)
    assert_converted(calibrated(search).fit(X, y), X, 1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "estimator",
    [
        QUICK,
        LinearSVC(),
        SVC(),
        RidgeClassifier(),
        SGDClassifier(random_state=0),
        LinearDiscriminantAnalysis(),
        GradientBoostingClassifier(n_estimators=5),
        make_pipeline(StandardScaler(), LinearSVC()),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.filterwarnings("ignore:Attribute `prob[AB]_` was deprecated:FutureWarning")
def test_margins(estimator, n_classes):
    X, y = make_data(n_classes)
    model = calibrated(estimator, response_method="decision_function").fit(X, y)
    assert_converted(model, X)


@pytest.mark.parametrize(
    "calibrator",
    [
        CalibrationTree(),
        PublishedCalibrationTree(),
        CalibrationForest(20, random_state=0, max_depth=4),
        CalibrationBoosting(),
        CalibrationEnsemble(5, random_state=0),
        PlattScaling(),
        TemperatureScaling(),
        BetaScaling(),
        IsotonicScaling(),
        IdentityCalibrator(),
    ],
    ids=[
        "tree",
        "published",
        "forest",
        "boosting",
        "ensemble",
        "platt",
        "temperature",
        "beta",
        "isotonic",
        "identity",
    ],
)
def test_every_calibrator(calibrator):
    X, y = make_data(3, np.float64)
    assert_converted(calibrated(QUICK, calibrator).fit(X, y), X, 1e-12)


@pytest.mark.parametrize("combine", ["side_by_side", "average"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_several_classifiers(combine, n_classes):
    X, y = make_data(n_classes)
    both = [QUICK, LogisticRegression(C=0.01, tol=0.01)]
    assert_converted(calibrated(both, combine=combine).fit(X, y), X)
    margins = [LinearSVC(), LinearSVC(C=0.01)]
    assert_converted(calibrated(margins, combine=combine).fit(X, y), X)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_beside_margins(n_classes):
    X, y = make_data(n_classes)
    assert_converted(calibrated([QUICK, LinearSVC()]).fit(X, y), X)


@pytest.mark.parametrize(
    "labels", [LABELS, [3, 5, 9], [1.0, 2.0, 3.0]], ids=["text", "int", "float"]
)
def test_labels(labels):
    X, y = make_data(3)
    assert_converted(calibrated(QUICK).fit(X, np.array(labels)[y]), X)


def test_labels_that_are_booleans_or_left_out():
    X, y = make_data()
    model = calibrated(QUICK).fit(X, y > 0)
    assert_converted(model, X)
    converted = skl2onnx.to_onnx(
        calibrated(QUICK).fit(X, LABELS[y]),
        X[:1],
        options={"zipmap": False, "nocl": True},
    )
    assert set(run(converted, {"X": X})[0].tolist()) == {0, 1}


def test_dictionaries_and_columns():
    X, y = make_data()
    model = calibrated(QUICK).fit(X, y)
    expected = model.predict_proba(X)
    dictionaries = run(skl2onnx.to_onnx(model, X[:1]), {"X": X})[1]
    np.testing.assert_allclose([[d[0], d[1]] for d in dictionaries], expected, atol=1e-5)
    columns = run(skl2onnx.to_onnx(model, X[:1], options={"zipmap": "columns"}), {"X": X})[1:]
    np.testing.assert_allclose(np.column_stack(columns), expected, atol=1e-5)


def test_the_last_step_of_a_pipeline():
    X, y = make_data(2, np.float64)
    model = make_pipeline(StandardScaler(), calibrated(QUICK)).fit(X, y)
    assert_converted(model, X, 1e-6)


def test_two_calibrated_classifiers_in_one_model():
    X, y = make_data(2, np.float64)
    forest = CalibrationForest(20, random_state=0, max_depth=4)
    inner = calibrated(QUICK, forest)
    assert_converted(calibrated([inner, calibrated(GaussianNB(), forest)]).fit(X, y), X, 1e-6)


def test_chosen_attributes():
    X, y = make_data()
    model = calibrated(QUICK, attributes=[4, 1]).fit(X, y)
    assert model.calibrator_.get_n_leaves() > 1
    assert_converted(model, X)


@pytest.mark.parametrize("estimator", [QUICK, LinearSVC()], ids=["proba", "margin"])
@pytest.mark.filterwarnings("ignore:no calibration row has the classes:UserWarning")
def test_classes_that_no_calibration_row_has(estimator):
    X, y = make_data(3, np.float32)
    frozen = FrozenEstimator(estimator.fit(X, y))
    for present in ([0, 1], [0, 2]):
        rows = np.isin(y, present)
        model = calibrated(frozen).fit(X[rows], y[rows])
        assert len(model.classes_) == 3
        assert_converted(model, X)


def test_a_classifier_that_lacks_a_class():
    X, y = make_data(3, np.float64)
    some = y != 1
    known = QUICK.fit(X[some], y[some])
    assert_converted(calibrated(FrozenEstimator(known)).fit(X, y), X, 1e-12)
    margins = FrozenEstimator(LinearSVC().fit(X[some], y[some]))
    model = calibrated(margins).fit(X, y)
    with pytest.raises(ValueError, match=r"margins, but none for the classes \[1\]"):
        skl2onnx.to_onnx(model, X[:1].astype(np.float32))


def mixed_frame(n_rows=900):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "amount due": rng.normal(size=n_rows).astype(np.float32),
            "colour": rng.choice(["red", "green", "blue"], n_rows).astype(object),
            "label": rng.normal(size=n_rows).astype(np.float32),
        }
    )
    frame.loc[rng.random(n_rows) < 0.1, "colour"] = None
    chance = np.where(frame["colour"] == "red", 0.8, 0.3) + 0.15 * np.tanh(frame["label"])
    return frame, (rng.random(n_rows) < chance).astype(int)


def mixed_model(frame, y, **params):
    # The classifier, as ONNX has it, sees the text that stands for a missing string.
    columns = make_column_transformer(
        (OneHotEncoder(categories=[["blue", "green"]], handle_unknown="ignore"), ["colour"]),
        (StandardScaler(), ["amount due"]),
    )
    return calibrated(make_pipeline(columns, QUICK), **params).fit(frame, y)


def initial_types(order=("amount due", "colour", "label")):
    types = {"colour": StringTensorType([None, 1])}
    return [(name, types.get(name, FloatTensorType([None, 1]))) for name in order]


@pytest.mark.parametrize("attributes", [None, ["colour", "amount due"]])
def test_a_table_of_several_kinds(attributes):
    frame, y = mixed_frame()
    model = mixed_model(frame, y, attributes=attributes)
    assert "colour" in model.calibrator_.to_text()
    for order in (["amount due", "colour", "label"], ["label", "colour", "amount due"]):
        converted = skl2onnx.to_onnx(
            model,
            initial_types=initial_types(order),
            options={id(model): {"zipmap": False, "missing_text": "?"}},
        )
        names = [each.name for each in converted.graph.input]
        filled = frame.assign(colour=frame["colour"].where(frame["colour"].notna(), "?"))
        columns = [filled[[column]].to_numpy() for column in order]
        label, probabilities = run(converted, dict(zip(names, columns, strict=True)))
        np.testing.assert_allclose(probabilities, model.predict_proba(frame), rtol=0, atol=1e-5)
        assert (label == model.predict(frame)).all()


def test_inputs_that_do_not_fit():
    frame, y = mixed_frame()
    model = mixed_model(frame, y)
    with pytest.raises(ValueError, match=r"the inputs lack the attributes \['label'\]"):
        skl2onnx.to_onnx(model, initial_types=initial_types(["amount due", "colour"]))
    wrong = [(name, FloatTensorType([None, 1])) for name in frame]
    with pytest.raises(TypeError, match="'colour' holds numbers, but attribute 'colour' held str"):
        skl2onnx.to_onnx(model, initial_types=wrong)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"missing_text": 3}, TypeError, "missing_text must be a string, got 3"),
        ({"missing_text": "red"}, ValueError, "'red' is a category of attribute 'colour'"),
    ],
)
def test_wrong_options(options, error, message):
    frame, y = mixed_frame()
    model = mixed_model(frame, y)
    with pytest.raises(error, match=message):
        skl2onnx.to_onnx(model, initial_types=initial_types(), options={id(model): options})


def test_what_cannot_be_converted():
    X, y = make_data()
    told = CalibratedClassifier(QUICK, Told()).fit(X, y)
    with pytest.raises(TypeError, match="Told cannot be written as ONNX"):
        skl2onnx.to_onnx(told, X[:1])
    model = calibrated(QUICK).fit(X, y)
    with pytest.raises(ValueError, match="target_opset=12 is too old for CalibratedClassifier"):
        skl2onnx.to_onnx(model, X[:1], target_opset=12)


def test_margins_that_skl2onnx_does_not_give():
    X, y = make_data()
    model = calibrated(GaussianNB()).fit(X, y)
    model.response_methods_ = ["decision_function"]
    with pytest.raises(ValueError, match="skl2onnx cannot give decision_function of GaussianNB"):
        skl2onnx.to_onnx(model, X[:1])


def test_how_to_install_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(ImportError, match=r"needs skl2onnx: pip install caltree\[onnx\]$"):
        register_converter()
