"""CalibrationEnsemble: files of it, and files that are none."""

import json

import numpy as np
import pytest

from caltree import CalibrationEnsemble, load

from ..support.boosting_cases import few_rounds, make_rows
from ..support.forests import calibrated_rows
from ..support.marks import new_values
from .test_boosted_storage import replaced

pytestmark = new_values


def fit(*rows, **params):
    with few_rounds(8):
        return CalibrationEnsemble(6, random_state=0, **params).fit(*rows)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("score_type", ["probability", "margin"])
def test_a_file_keeps_it_all(tmp_path, n_classes, score_type):
    X, y, scores = make_rows(800, n_classes)
    scores = scores if score_type == "probability" else 3 * np.log(scores)
    fitted = fit(X, y, scores, score_type=score_type)
    fitted.save(tmp_path / "ensemble.json")
    again = load(tmp_path / "ensemble.json")
    assert type(again) is CalibrationEnsemble and again.to_dict() == fitted.to_dict()
    assert again.model_.forest.attributes is again.model_.boosted.attributes
    for table in (X, X.assign(category="mauve", a=None)):
        expected = fitted.predict_proba(table, scores)
        assert np.array_equal(again.predict_proba(table, scores), expected)
    assert np.array_equal(again.feature_importances_, fitted.feature_importances_)
    assert vars(again).keys() == vars(fitted).keys()


def test_uncalibrated_scores_survive():
    X, y, scores = calibrated_rows(400, 3, 0)
    fitted = fit(X, y, scores)
    assert fitted.selection_.chosen == "uncalibrated"
    again = CalibrationEnsemble.from_dict(json.loads(json.dumps(fitted.to_dict())))
    assert np.array_equal(again.predict_proba(X, scores), fitted.predict_proba(X, scores))


@pytest.fixture(scope="module")
def stored():
    X, y, scores = make_rows(800, missing=0.0)
    return fit(X, y, scores[:, 1]).to_dict()


MALFORMED = [
    (("model",), None, "keys"),
    (("model", "trees"), {}, "keys"),
    (("model", "forest"), None, "must be dicts without attributes"),
    (("model", "boosted", "attributes"), {}, "must be dicts without attributes"),
    (("model", "boosted", "value"), [0.0], "entries"),
    (("model", "forest", "tree_weight", 0), -1.0, "must be from 0 to 1"),
    (("model", "boosted", "offset"), True, "has offset False in forest, but True in boosted"),
    (("model", "boosted", "n_scores"), 1, "cuts of a stored model must be"),
    (("model", "boosted", "curve_weight"), 0.99, "nor sum to more than 1"),
    (("selection", "candidates", 0, "weight"), 1.0, "sum to 1"),
    (("classes",), [0, 1, 2], "classes"),
]


@pytest.mark.parametrize(("path", "value", "message"), MALFORMED)
def test_malformed_files_are_refused(stored, path, value, message):
    with pytest.raises(ValueError, match=message):
        CalibrationEnsemble.from_dict(replaced(stored, path, value))


def test_both_together_weigh_no_more_than_1(stored):
    """Each of them may on its own."""
    model = stored["model"]
    weights = {"curve_weight": 0.95, "boosted_weight": 0.0}
    boosted = {**model["boosted"], **weights}
    with pytest.raises(ValueError, match="must sum to at most 1"):
        CalibrationEnsemble.from_dict({**stored, "model": {**model, "boosted": boosted}})


def test_the_weight_of_the_uncalibrated_is_that_of_the_selection(stored):
    boosted = {**stored["model"]["boosted"], "curve_weight": 0.0, "boosted_weight": 0.0}
    with pytest.raises(ValueError, match="but selection says"):
        CalibrationEnsemble.from_dict({**stored, "model": {**stored["model"], "boosted": boosted}})
