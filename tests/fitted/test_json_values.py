"""A model file takes no more memory to be read, or refused, than a small multiple of its size."""

import json
import tracemalloc

import numpy as np
import pytest

from caltree import CalibrationForest, CalibrationTree, IsotonicScaling, PlattScaling

from ..support.trees import make_frame, make_rows

LONG = "a" * 300_000
# Plain values of Python take up to so many times as much as their JSON.
MOST_TIMES = 40


def stored_tree():
    frame, y, scores = make_frame()
    return CalibrationTree(do_no_harm=False).fit(frame, y, scores).to_dict()


def stored_forest():
    X, y, scores = make_rows(400)
    forest = CalibrationForest(20, do_no_harm=False, random_state=0)
    return forest.fit(X, y, scores).to_dict()


def stored_isotonic():
    _, y, scores = make_rows(400, n_classes=3)
    return IsotonicScaling().fit(None, y, scores).to_dict()


def put(*path):
    """Put a value somewhere."""
    *above, last = path[:-1]

    def change(stored):
        for key in above:
            stored = stored[key]
        stored[last] = path[-1]

    return change


def many_children(stored):
    """Every node has all nodes behind it as children."""
    model, n = stored["model"], 30_000
    nominal = [column["categories"] is not None for column in model["attributes"]["columns"]]
    column = nominal.index(True)
    n_categories = len(model["attributes"]["columns"][column]["categories"])
    model["attribute"] = [column] * (n - 1) + [-1]
    model["cuts"][column] = [[child] * n_categories for child in range(n - 1, 0, -1)]
    for name, count in (("cut", n - 1), ("missing", n - 1), ("gain", n - 1), ("n_rows", 1)):
        model[name] = list(range(count))
    model["missing_rows"], model["missing"] = [], [0] * (n - 1)


CHANGES = {
    "a text among numbers": (stored_forest, put("model", "gain", 0, LONG)),
    "a text among whole numbers": (stored_forest, put("model", "attribute", 0, LONG)),
    "a text among parameters": (stored_forest, put("model", "parameters", 0, 0, 0, LONG)),
    "a list among numbers": (stored_forest, put("model", "gain", 0, [1.0] * 10_000)),
    "a huge number": (stored_forest, put("model", "gain", 0, 10**4000)),
    "a huge whole number": (stored_forest, put("model", "attribute", 0, 10**4000)),
    "a text among thresholds": (stored_isotonic, put("thresholds", 0, 0, LONG)),
    "many scores": (stored_tree, put("n_scores", 2 * 10**9)),
    "many scores of node models": (stored_tree, put("model", "n_scores", 2 * 10**9)),
    "many children": (stored_tree, many_children),
    "a long class": (stored_tree, put("classes", [*map(str, range(10_000, 50_000)), LONG])),
    "a long name": (stored_tree, put("model", "attributes", "columns", 0, "name", LONG)),
    "a long candidate": (stored_tree, put("selection", "candidates", 0, "name", LONG)),
    "a long score type": (stored_tree, put("score_type", LONG)),
    "a long fingerprint": (stored_tree, put("fingerprint", "hashes", "0" * 300_000)),
    "a long parameter": (stored_tree, put("params", "scoring", [LONG])),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_takes_no_more_memory_than_its_size_allows(change, tmp_path):
    make, mutate = CHANGES[change]
    stored = make()
    kind = {"Cal": CalibrationForest, "Iso": IsotonicScaling}[stored["format"][8:11]]
    kind = CalibrationTree if make is stored_tree else kind
    mutate(stored)
    path = tmp_path / "model.json"
    path.write_text(json.dumps(stored))
    tracemalloc.start()
    try:
        kind.load(path)
    except ValueError as error:
        assert len(str(error)) < 500
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < MOST_TIMES * path.stat().st_size


def test_long_and_short_classes_survive():
    y = np.array([*map(str, range(100, 140)), "x" * 99_999] * 2)
    rng = np.random.default_rng(0)
    platt = PlattScaling().fit(None, y, rng.dirichlet(np.ones(41), len(y)))
    again = PlattScaling.from_dict(json.loads(json.dumps(platt.to_dict())))
    assert again.classes_.tolist() == platt.classes_.tolist()
    assert again.classes_.nbytes < 1000


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"version":2', '"version":2, "version":2', "the key 'version' occurs twice"),
        ('"version":2', f'"version":{"[" * 100_000}', "not a stored calibrator"),
        ('"version":2', f'"version":2{"0" * 5000}', "not a stored calibrator"),
        ('"slopes":[', '"slopes":[NaN, ', "NaN is not a number"),
        ('"slopes":[', '"slopes":[1e999, ', "slopes of a stored calibrator holds a number that"),
        ('"slopes":[', '"slopes":[true, ', "slopes of a stored calibrator must be"),
        ('"classes":[0,1]', '"classes":[-1, 9223372036854775808]', "beyond the range"),
        ('"classes":[0,1]', '"classes":[0.0, 1e999]', "must be finite"),
        ('"params":{', '"params":{"score_type":1e999, ', "twice"),
        ('"score_type":"auto"', '"score_type":1e999', "plain values"),
    ],
)
def test_json_that_no_calibrator_writes_is_refused(old, new, message, tmp_path):
    _, y, scores = make_rows()
    platt = PlattScaling().fit(None, y, scores)
    path = tmp_path / "model.json"
    platt.save(path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(ValueError, match=message):
        PlattScaling.load(path)
