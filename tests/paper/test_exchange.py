"""Results as text: written, read again, and refused if they are not results."""

import json

import pytest

from caltree.paper.exchange import FORMAT, from_text, to_text
from caltree.paper.store import Cell, Shape, Store

SETTINGS = {"folds": "2", "seed": "1"}
SHAPE = Shape(435, 16, 2, "0123456789abcdef", "")


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "results.sqlite", SETTINGS)
    store.add_dataset("vote", SHAPE)
    measures = {"pct": {"rmse": 0.123456789, "auc": 1.0}, "none": {"rmse": 1e-9}}
    store.add(Cell("vote", "svm", 1, 0), measures, {"svm": 2.5, "calibrator pct": 1 / 3})
    return store


def read(path):
    return lambda text: from_text(text, lambda settings: Store(path, settings))


def test_round_trip_to_six_digits(store, tmp_path):
    text = to_text(store)
    again = read(tmp_path / "again.sqlite")(text)
    assert again.settings() == SETTINGS and again.datasets() == {"vote": SHAPE}
    assert again.results("vote", "svm", "pct") == {(1, 0): 0.123457}
    assert again.results("vote", "svm", "none") == {(1, 0): 1e-9}
    assert again.results("vote", "svm", "pct", "auc") == {(1, 0): 1.0}
    assert [seconds for *_, seconds in again.all_costs()] == [0.333333, 2.5]
    assert to_text(again) == text


def test_folds_are_in_their_places(store):
    stored = json.loads(to_text(store))
    assert stored["format"] == FORMAT
    assert stored["results"]["vote svm pct"]["rmse"] == [[None, None], [0.123457, None]]
    assert stored["seconds"] == {
        "vote svm": {
            "calibrator pct": [[None, None], [0.333333, None]],
            "svm": [[None] * 2, [2.5, None]],
        }
    }


def test_results_are_added_to_those_that_are_there(store, tmp_path):
    other = Store(tmp_path / "other.sqlite", SETTINGS)
    other.add(Cell("vote", "svm", 1, 0), {"pct": {"rmse": 0.9}}, {})
    other.add(Cell("vote", "svm", 0, 1), {"pct": {"rmse": 0.8}}, {})
    read(tmp_path / "other.sqlite")(to_text(store))
    assert other.results("vote", "svm", "pct") == {(0, 1): 0.8, (1, 0): 0.9}
    assert other.results("vote", "svm", "none") == {(1, 0): 1e-9}


def test_other_settings_and_other_copies_are_refused(store, tmp_path):
    Store(tmp_path / "three.sqlite", {"folds": "3", "seed": "1"})
    with pytest.raises(ValueError, match="folds = 3, not 2"):
        read(tmp_path / "three.sqlite")(to_text(store))
    Store(tmp_path / "copy.sqlite", SETTINGS).add_dataset("vote", Shape(435, 16, 2, "other", ""))
    with pytest.raises(ValueError, match="another copy of vote"):
        read(tmp_path / "copy.sqlite")(to_text(store))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[]", "format is None"),
        ('{"format": "caltree-paper-results-0"}', "format is 'caltree-paper-results-0'"),
    ],
)
def test_other_files_are_refused(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "new.sqlite")(text)
    assert not (tmp_path / "new.sqlite").exists()


def test_no_result_is_infinite(store, tmp_path):
    text = to_text(store).replace("0.123457", "Infinity")
    with pytest.raises(ValueError, match="not a finite number"):
        read(tmp_path / "new.sqlite")(text)
