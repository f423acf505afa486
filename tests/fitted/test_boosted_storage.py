"""CalibrationBoosting: files of it, and files that are none."""

import json

import numpy as np
import pytest

from caltree import CalibrationBoosting, load

from ..support.boosting_cases import make_rows
from ..support.forests import calibrated_rows
from ..support.marks import new_values
from ..support.nested import replaced

pytestmark = new_values


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("score_type", ["probability", "logit", "margin"])
def test_a_file_keeps_it_all(tmp_path, n_classes, score_type):
    X, y, scores = make_rows(1500, n_classes)
    scores = scores if score_type == "probability" else 3 * np.log(scores)
    fitted = CalibrationBoosting(score_type=score_type).fit(X, y, scores)
    assert fitted.model_.boosted_weight > 0.0
    fitted.save(tmp_path / "boosting.json")
    again = load(tmp_path / "boosting.json")
    assert type(again) is CalibrationBoosting and again.to_dict() == fitted.to_dict()
    assert again.get_params() == fitted.get_params()
    other = X.assign(category="mauve", a=None)
    for table in (X, other):
        expected = fitted.predict_proba(table, scores)
        assert np.array_equal(again.predict_proba(table, scores), expected)
    assert np.array_equal(again.feature_importances_, fitted.feature_importances_)
    assert vars(again).keys() == vars(fitted).keys()


def test_uncalibrated_scores_survive():
    X, y, scores = calibrated_rows(400, 3, 0)
    fitted = CalibrationBoosting().fit(X, y, scores)
    assert fitted.selection_.chosen == "uncalibrated"
    again = CalibrationBoosting.from_dict(json.loads(json.dumps(fitted.to_dict())))
    assert np.array_equal(again.predict_proba(X, scores), fitted.predict_proba(X, scores))


@pytest.fixture(scope="module")
def stored():
    """One whose first tree splits on a number at its root, and somewhere on a category."""
    X, y, scores = make_rows(1500, missing=0.0, seed=1)
    fitted = CalibrationBoosting().fit(X, y, scores[:, 1])
    model = fitted.model_
    assert model.attribute[0] < 4 and (model.attribute == 4).any()
    assert 0.0 < model.uncalibrated_weight < 1.0 and model.boosted_weight > 0.5
    return fitted.to_dict()


MALFORMED = [
    (("format",), "caltree.CalibrationForest", "read it with caltree.CalibrationForest"),
    (("params", "depth"), 3, "parameters"),
    (("classes",), [0, 1, 2], "classes"),
    (("chosen",), {"rounds": 3}, "chosen of a stored calibrator must be empty"),
    (("selection",), [], "selection"),
    (("model",), None, "keys"),
    (("model", "weight"), [1.0], "keys"),
    (("model", "attribute", 0), 7, "splits on an attribute or score that does not exist"),
    (("model", "attribute", 0), -1, "splits, but"),
    (("model", "attribute", 0), 4, "node 0 of a stored model has cut [0-9]+, but cuts has"),
    (("model", "cut", 0), 10**6, "node 0 of a stored model has cut 1000000"),
    (("model", "missing", 0), 2, "child that does not exist"),
    (("model", "cuts"), [[0.0]], "cuts of a stored model must be"),
    (("model", "cuts", 4, 0, 0), 2, "trees, but [0-9]+ entries in state"),
    (("model", "value"), [0.0], "entries"),
    (("model", "value", 0), 1e201, "values beyond any"),
    (("model", "value", 0), "1", "list of numbers"),
    (("model", "state"), [0], "entries in state"),
    (("model", "state", 0), 1, "a log-odds that does not exist"),
    (("model", "state", 0), -1, "a log-odds that does not exist"),
    (("model", "parameters", 0, 0), 1e201, "parameters beyond any"),
    (("model", "parameters"), [[0.0, 1.0, 0.0]] * 2, "no known shape"),
    (("model", "parameters"), [[0.0, 1.0]], "no known shape"),
    (("model", "parameters"), [0.0, 1.0, 0.0], "list of numbers"),
    (("model", "start"), 1.5, "start of a stored model must be from 0 to 1"),
    (("model", "start"), "1", "start of a stored model must be a number"),
    (("model", "curve_weight"), -0.1, "must not be negative"),
    (("model", "curve_weight"), None, "curve_weight of a stored model must be a number"),
    (("model", "boosted_weight"), True, "boosted_weight of a stored model must be a number"),
    (("model", "boosted_weight"), 1.5, "nor sum to more than 1"),
    (("model", "boosted_weight"), 0.1, "but selection says"),
    (("model", "offset"), 1, "true or false"),
    (("model", "n_scores"), 0, "positive whole number"),
    (("score_type",), "margin", "margins of a stored calibrator cannot be left uncalibrated"),
]


@pytest.mark.parametrize(("path", "value", "message"), MALFORMED)
def test_malformed_files_are_refused(stored, path, value, message):
    with pytest.raises(ValueError, match=message):
        CalibrationBoosting.from_dict(replaced(stored, path, value))


def test_margins_cannot_have_an_offset(stored):
    model = {**stored["model"], "curve_weight": 0.0, "boosted_weight": 1.0, "offset": True}
    changed = {**stored, "selection": None, "score_type": "margin", "model": model}
    with pytest.raises(ValueError, match="margins of a stored calibrator cannot be left"):
        CalibrationBoosting.from_dict(changed)


def test_a_key_that_is_lacking(stored):
    for name in stored["model"]:
        model = {key: value for key, value in stored["model"].items() if key != name}
        with pytest.raises(ValueError, match="must have exactly the keys"):
            CalibrationBoosting.from_dict({**stored, "model": model})
