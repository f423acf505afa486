"""The reader in JavaScript says what `predict_proba` says."""

import json
import os
import shutil
import subprocess
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax

from caltree import (
    BetaScaling,
    CalibrationBoosting,
    CalibrationEnsemble,
    CalibrationForest,
    CalibrationTree,
    PlattScaling,
    PublishedCalibrationTree,
    TemperatureScaling,
)

from ..support.boosting_cases import few_rounds
from ..support.markdown import assert_prints_what_is_shown, blocks
from ..support.marks import new_values
from ..support.trees import boosted_tree, make_frame, make_rows

pytestmark = new_values

EXAMPLE = Path(__file__).parents[2] / "examples" / "javascript" / "caltree.mjs"
PAGE = Path(__file__).parents[2] / "docs" / "format.md"
RUN = f"""
import {{ readFileSync }} from "node:fs";
import {{ load }} from {json.dumps(EXAMPLE.as_uri())};
for (const [stored, rows, scores] of JSON.parse(readFileSync(0, "utf8"))) {{
  const calibrator = load(stored);
  console.log(JSON.stringify(rows.map((row, i) => calibrator.predictProba(row, scores[i]))));
}}
"""
N_ROWS = 1000


@pytest.fixture(scope="module")
def node():
    found = shutil.which("node")
    if found is None and os.environ.get("CI") != "true":
        pytest.skip("Node is not installed")
    return found


def said_by_javascript(node, *cases, text=None):
    """The probabilities of each case: a stored calibrator, rows and scores."""
    command = [node, "--input-type=module", "--eval", RUN]
    given = text or json.dumps(cases, allow_nan=False)
    done = subprocess.run(command, input=given, capture_output=True, encoding="utf-8")
    if done.returncode:
        raise RuntimeError(done.stderr)
    return [np.array(json.loads(line)) for line in done.stdout.splitlines()]


def plain_rows(X):
    """The rows of a table or array as JSON has them, null where missing."""
    frame = pd.DataFrame(X)
    objects = frame.astype(object).where(frame.notna(), None)
    return objects.to_dict("records") if frame is X else objects.to_numpy().tolist()


def assert_same(node, *cases):
    """Compare the probabilities of each case, of one run: a calibrator, rows and scores."""
    expected = [calibrator.predict_proba(X, scores) for calibrator, X, scores in cases]
    found = said_by_javascript(
        node,
        *(
            (calibrator.to_dict(), plain_rows(X), np.reshape(scores, (len(X), -1)).tolist())
            for calibrator, X, scores in cases
        ),
    )
    for said, wanted in zip(found, expected, strict=True):
        assert np.abs(said - wanted).max() <= 1e-12
        np.testing.assert_allclose(said.sum(axis=1), 1.0, rtol=0, atol=1e-12)


def extreme_scores(scores, rng):
    """Some scores replaced by the most extreme ones, and some by what is next to them."""
    scores = scores.copy()
    n_rows, n_classes = scores.shape
    for tiny in (0.0, 1e-320, 1e-17, 2.0**-53, 1e-9, 1e-5):
        rows = rng.choice(n_rows, n_rows // 20, replace=False)
        scores[rows] = tiny / max(1, n_classes - 1)
        scores[rows, rng.integers(0, n_classes, len(rows))] = 1.0 - tiny
    return scores


def new_rows(frame, seed):
    """Rows of every kind: unseen categories, missing values, numbers beyond those of training."""
    rng = np.random.default_rng(seed)
    frame = frame.sample(N_ROWS, replace=True, random_state=seed).reset_index(drop=True)
    frame = frame.assign(size=frame["size"].astype(object))
    for name, values in {
        "colour": ["mauve", ""],
        "size": ["huge"],
        "number": [1e300, -1e300, 0.3],
        "count": [-7, 2**40],
    }.items():
        rows = rng.random(N_ROWS) < 0.1
        frame.loc[rows, name] = rng.choice(values, rows.sum())
    for name in frame:
        if name != "known":
            frame.loc[rng.random(N_ROWS) < 0.1, name] = None
    return frame


KINDS = {
    "default": CalibrationTree,
    "leaves": lambda: CalibrationTree(path_averaging=False),
    "largest": lambda: CalibrationTree(kept_gain=None, do_no_harm=False),
    "published": lambda: PublishedCalibrationTree(max_boosting_iterations=20),
    "boosted": lambda: boosted_tree(boosting_iterations=5),
    "forest": lambda: CalibrationForest(8, random_state=0),
    "boosting": lambda: CalibrationBoosting(do_no_harm=False),
    "ensemble": lambda: CalibrationEnsemble(5, do_no_harm=False, random_state=0),
    "temperature": TemperatureScaling,
    "beta": BetaScaling,
}


@pytest.mark.parametrize("kind", KINDS)
def test_tables_of_every_kind(node, kind):
    frame, *_ = make_frame(600)
    cases = []
    for n_classes in (2, 10):
        _, y, scores = make_rows(600, n_classes=n_classes)
        with few_rounds(8):
            calibrator = KINDS[kind]().fit(frame, y, scores)
        rng = np.random.default_rng(1)
        given = extreme_scores(rng.dirichlet(np.ones(n_classes), N_ROWS), rng)
        cases.append((calibrator, new_rows(frame, 2), given))
    assert_same(node, *cases)


@pytest.mark.parametrize(
    "kind", ["default", "published", "forest", "boosting", "ensemble", "temperature", "beta"]
)
def test_scores_of_every_kind(node, kind):
    types, columns = ["probability", "logit", "margin"], [1, 2, 4, 3, 6]
    with few_rounds():
        assert_same(node, *(case_of_scores(kind, *each) for each in product(columns, types)))


def case_of_scores(kind, n_columns, score_type):
    """A calibrator of some columns of scores, and rows whose scores are moderate and extreme."""
    n_classes = 3 if n_columns % 3 == 0 else 2
    X, y, first = make_rows(300, n_classes=n_classes)
    rng = np.random.default_rng(0)
    odds = np.log(first)
    several = [odds + 0.3 * rng.standard_normal(odds.shape) for _ in range(n_columns // n_classes)]
    columns = np.hstack(several) if several else odds[:, 1:] - odds[:, :1]
    new = np.vstack([columns, 30 * columns, rng.choice([-1e200, 0.0, 1e99, 1.0], columns.shape)])
    table = np.round(rng.normal(size=(len(new), 3)), 1)
    table[rng.random(table.shape) < 0.2] = np.nan
    if score_type == "probability":
        columns, new = (_probabilities(each, n_classes) for each in (columns, new))
    calibrator = KINDS[kind]().set_params(score_type=score_type).fit(X, y, columns)
    return calibrator, table, new


def _probabilities(columns, n_classes):
    if columns.shape[1] == 1:
        return expit(columns)
    blocks = columns.reshape(len(columns), -1, n_classes)
    return softmax(blocks, axis=2).reshape(columns.shape)


def test_a_score_of_the_first_class(node):
    X, y, scores = make_rows(600)
    first = scores[:, :1]
    margins = np.log(first / (1.0 - first))
    assert_same(
        node,
        (CalibrationTree(pos_label=0).fit(X, y, first), X, first),
        (PublishedCalibrationTree(pos_label=0).fit(X, y, first), X, first),
        (BetaScaling(pos_label=0).fit(None, y, first), X, first),
        (CalibrationTree(pos_label=0).fit(X, y, margins), X, margins),
    )


def test_rounded_scores(node):
    cases = []
    for n_classes in (2, 3):
        X, y, scores = make_rows(600, n_classes=n_classes)
        votes = np.random.default_rng(0).multinomial(10, scores) / 10
        for calibrator in (CalibrationTree(), BetaScaling(), PublishedCalibrationTree()):
            calibrator.fit(X, y, votes)
            assert calibrator.score_limits_.lowest == 0.05
            given = extreme_scores(votes, np.random.default_rng(1))
            cases.append((calibrator, X, given))
    assert_same(node, *cases)


def test_probabilities_that_do_not_sum_to_one(node):
    X, y, scores = make_rows(500, n_classes=3)
    rng = np.random.default_rng(0)
    given = np.where(rng.random(scores.shape) < 0.2, 0.0, rng.random(scores.shape))
    given[:5] = 0.0
    tree = CalibrationTree(score_type="probability").fit(X, y, scores)
    assert tree.model_.uncalibrated_weight > 0 or tree.model_.offset
    assert_same(node, (tree, X, given))


def test_scores_that_stay_uncalibrated(node):
    rng = np.random.default_rng(0)
    X, scores = rng.standard_normal((400, 2)), rng.random(400)
    y = rng.random(400) < scores
    calibrators = [CalibrationTree(), CalibrationForest(8, random_state=0)]
    for calibrator in calibrators:
        assert calibrator.fit(X, y, scores).selection_.chosen == "uncalibrated"
    assert_same(node, *((calibrator, X, scores) for calibrator in calibrators))


def test_categories_of_every_type(node):
    rng = np.random.default_rng(3)
    X, y, scores = make_rows(400)
    side, level = X[:, 0] > 0.3, np.digitize(X[:, 1], [-0.5, 0.5])
    frame = pd.DataFrame(
        {
            "text": np.where(side, "1", "0"),
            "truth": side,
            "whole": np.where(side, 7, -(2**40)),
            "real": level / 4,
            "empty": np.full(400, np.nan),
        }
    )
    others = frame.assign(text="é", truth=~side, whole=3, real=0.1, empty=5.0)
    mixed = pd.concat([frame, others], ignore_index=True)
    mixed.loc[rng.random(len(mixed)) < 0.2, "text"] = None
    cases = []
    for name in frame:
        nominal = [column for column in ("whole", "real", "empty") if column == name]
        one, new = frame[[name]], mixed[[name]]
        for calibrator in (
            CalibrationTree(do_no_harm=False, categorical_features=nominal),
            CalibrationForest(4, random_state=0, categorical_features=nominal),
        ):
            cases.append((calibrator.fit(one, y, scores), new, np.vstack([scores, scores])))
    assert_same(node, *cases)


def test_a_number_counts_as_the_truth_value_it_equals(node):
    _, y, scores = make_rows(300)
    truth = np.where(y == 1, True, np.arange(300) % 3 == 0)
    tree = CalibrationTree(do_no_harm=False).fit(pd.DataFrame({"a": truth}), y, scores)
    stored, given = tree.to_dict(), scores.tolist()
    one, other = said_by_javascript(
        node,
        (stored, [[bool(value)] for value in truth], given),
        (stored, [[int(value)] for value in truth], given),
    )
    assert np.array_equal(one, other) and tree.get_n_leaves() > 1


def test_missing_is_null_undefined_nan_or_absent(node):
    X, y, scores = make_rows(300)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    tree = CalibrationTree(do_no_harm=False).fit(frame, y, scores)
    code = f"""
import {{ load }} from {json.dumps(EXAMPLE.as_uri())};
const calibrator = load({json.dumps(tree.to_dict())});
const rows = [null, undefined, NaN].flatMap((a) => [{{ a, b: a, c: 1 }}, [a, a, 1]]);
const found = [...rows, {{ c: 1 }}].map((row) => calibrator.predictProba(row, [0.3, 0.7]));
console.log(JSON.stringify([calibrator.classes, found]));
"""
    run = [node, "--input-type=module", "--eval", code]
    done = subprocess.run(run, capture_output=True, check=True, encoding="utf-8")
    classes, found = json.loads(done.stdout)
    missing = pd.DataFrame({"a": [np.nan], "b": [np.nan], "c": [1.0]})
    expected = tree.predict_proba(missing, [[0.3, 0.7]])
    np.testing.assert_allclose(found, np.repeat(expected, 7, axis=0), rtol=0, atol=1e-12)
    assert classes == [0, 1]


def test_infinity_is_a_number_like_others_where_only_missing_values_part(node):
    _, y, scores = make_rows(400)
    number = np.where((y == 1) | (np.arange(400) % 4 == 0), 1.0, np.nan)[:, np.newaxis]
    for kind in (CalibrationTree(do_no_harm=False), CalibrationForest(4)):
        fitted = kind.fit(number, y, scores)
        assert np.finfo(float).max in fitted.model_.threshold
        text = json.dumps([[fitted.to_dict(), [["far"], ["-far"], [1]], [[0.3, 0.7]] * 3]])
        text = text.replace('"far"', "1e999").replace('"-far"', "-1e999")
        [found] = said_by_javascript(node, text=text)
        expected = fitted.predict_proba([[np.inf], [-np.inf], [1.0]], [[0.3, 0.7]] * 3)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
        assert np.abs(expected - expected[0]).max() == 0.0


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda stored: {**stored, "version": 1}, "no tree, forest or curve of version 2"),
        (
            lambda stored: PlattScaling().fit(None, [0, 1], [0.1, 0.8]).to_dict(),
            "no tree, forest or",
        ),
        (lambda stored: stored, "give 2 scores, as in training"),
    ],
)
def test_what_cannot_be_read_is_refused(node, change, complaint):
    X, y, scores = make_rows(100)
    stored = CalibrationTree().fit(X, y, scores).to_dict()
    with pytest.raises(RuntimeError, match=complaint):
        said_by_javascript(node, (change(stored), [[0, 0, 0]], [[0.1, 0.2, 0.7]]))


def test_the_page_shows_what_it_prints(node, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    assert_prints_what_is_shown(text, PAGE.name)
    shutil.copy(EXAMPLE, tmp_path)
    [code] = [code for kind, code in blocks(text) if kind == "js"]
    [shown] = [code for kind, code in blocks(text) if kind == "console"]
    command, _, expected = shown.removeprefix("$ ").partition("\n")
    program, script = command.split()
    Path(script).write_text(code, encoding="utf-8")
    assert program == "node"
    done = subprocess.run([node, script], capture_output=True, check=True, encoding="utf-8")
    assert done.stdout == expected


def test_it_is_short():
    lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 125 and max(map(len, lines)) <= 100
    assert "import" not in "".join(lines)
