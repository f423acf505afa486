"""Fingerprintes of training rows: what they know again, and what they must not claim to know."""

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline

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
    RegularizedIsotonicScaling,
    RobustPlattScaling,
    SmoothIsotonicScaling,
    TemperatureScaling,
)
from caltree._fitted.fingerprint import Fingerprint, calibration_hashes, table_hashes
from caltree._inputs.hashing import SIZE
from caltree._inputs.scores import ScoreKind

from ..support.trees import fixed_tree, make_frame, make_rows

CALIBRATORS = {
    "tree": fixed_tree(max_depth=2),
    "published": PublishedCalibrationTree(boosting_iterations=1, ccp_alpha=None),
    "forest": CalibrationForest(2, random_state=0),
    "boosting": CalibrationBoosting(),
    "ensemble": CalibrationEnsemble(5, random_state=0),
    "platt": PlattScaling(),
    "temperature": TemperatureScaling(),
    "beta": BetaScaling(),
    "isotonic": IsotonicScaling(),
    "smooth isotonic": SmoothIsotonicScaling(),
    "regularized isotonic": RegularizedIsotonicScaling(),
    "robust platt": RobustPlattScaling(),
    "identity": IdentityCalibrator(),
}
every = pytest.mark.parametrize("name", CALIBRATORS)

PROBABILITIES, MARGINS = ScoreKind(2, "probability"), ScoreKind(2, "margin")


def hashes_of(n_rows, seed=0, columns=3):
    rng = np.random.default_rng(seed)
    X, scores = rng.normal(size=(n_rows, columns)), rng.random((n_rows, 1))
    return calibration_hashes(X, rng.integers(0, 2, n_rows), scores, PROBABILITIES)


def alike(n_rows, levels, seed=0):
    """Hashes of rows of which many have the same contents."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, levels, (n_rows, 3)).astype(float)
    scores = np.full((n_rows, 1), 0.5)
    return calibration_hashes(X, rng.integers(0, 2, n_rows), scores, PROBABILITIES)


# Hashes


def test_hashes_are_the_same_everywhere_and_always():
    X = np.array([[1.0, np.nan], [0.1, -2.0]])
    scores = np.array([[0.25], [0.75]])
    found = calibration_hashes(X, np.array([0, 1]), scores, PROBABILITIES)
    assert [f"{value:016x}" for value in found.tolist()] == KNOWN
    texts = pd.DataFrame({"a": ["x", None], "b": [True, False]})
    assert [f"{value:016x}" for value in table_hashes(texts, np.array([0, 1]))] == KNOWN_TEXTS


KNOWN = ["e5e9bb8e55e14533", "0b3e8c4f67584764"]
KNOWN_TEXTS = ["ac300d43f7a46b1d", "da95851df0d8285b"]


def test_fingerprintes_do_not_depend_on_the_process():
    code = (
        "import json, numpy as np; from caltree import CalibratedClassifier, PlattScaling;"
        "from sklearn.dummy import DummyClassifier;"
        "X = np.array([['a', 'b', 'c'][i % 3] for i in range(60)], dtype=object)[:, None];"
        "m = CalibratedClassifier(DummyClassifier(), PlattScaling()).fit(X, [0, 1] * 30);"
        "print(json.dumps([m.fingerprint_.to_dict(), m.calibrator_.fingerprint_.to_dict()]))"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1


def test_different_rows_have_different_hashes():
    grid = np.stack(np.meshgrid(*[np.arange(12.0)] * 4), axis=-1).reshape(-1, 4)
    scores = np.zeros((len(grid), 1))
    hashes = calibration_hashes(grid, np.zeros(len(grid), dtype=int), scores, MARGINS)
    assert len(np.unique(hashes)) == len(grid)
    # As good as drawn at random: each bit is set in half of them.
    bits = hashes[:, np.newaxis] >> np.arange(64, dtype=np.uint64) & np.uint64(1)
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 0.02


def test_every_part_of_a_row_counts():
    X, y, scores = make_rows(6)
    base = calibration_hashes(X, y, scores, PROBABILITIES)
    for changed in (
        (X + 1, y, scores),
        (X, 1 - y, scores),
        (X, y, scores[::-1]),
        (None, y, scores),
    ):
        assert not (calibration_hashes(*changed, PROBABILITIES) == base).any()
    assert not (calibration_hashes(X[:, ::-1], y, scores, PROBABILITIES) == base).any()


def test_what_is_equal_has_equal_hashes():
    y = np.zeros(2, dtype=int)
    scores = np.full((2, 1), 0.5)
    X = np.array([[0.0, np.nan], [-0.0, -np.nan]])
    first, second = calibration_hashes(X, y, scores, PROBABILITIES)
    assert first == second
    last_digit = np.nextafter(scores, 1.0)
    again = calibration_hashes(X, y, last_digit, PROBABILITIES)
    assert again[0] == first
    both = np.hstack([1 - scores, scores])
    assert calibration_hashes(X, y, both, PROBABILITIES)[0] == first
    assert calibration_hashes(X, y, both, MARGINS)[0] != first


def test_tables_of_every_kind_have_the_same_hashes():
    frame = pd.DataFrame({"n": [1.0, None, 3.0], "c": ["x", "y", None], "b": [True, False, True]})
    y = np.array([0, 1, 0])
    tables = [
        frame,
        pl.from_pandas(frame),
        pl.from_pandas(frame).to_arrow(),
        frame.astype({"c": "category"}),
        np.array([[1.0, "x", True], [None, "y", False], [3.0, None, True]], dtype=object),
    ]
    expected = table_hashes(frame, y)
    assert all(np.array_equal(table_hashes(table, y), expected) for table in tables)


def test_texts_and_sparse_matrices_have_hashes_too():
    y = np.zeros(4, dtype=int)
    texts = ["one", "two", "three", "two"]
    for X in (texts, tuple(texts), np.array(texts), pd.Series(texts), pl.Series(texts)):
        found = table_hashes(X, y)
        assert len(np.unique(found)) == 3 and found[1] == found[3]
        assert np.array_equal(found, table_hashes(texts, y))
    matrix = sparse.csr_matrix([[0, 1, 0], [0, 0, 0], [2, 0, 1], [0, 1, 0]])
    found = table_hashes(matrix, y)
    assert len(np.unique(found)) == 3 and found[0] == found[3]
    with_zero = sparse.csr_matrix(([1, 0], ([0, 0], [1, 2])), shape=(4, 3))
    assert table_hashes(with_zero, y)[0] == found[0]
    assert np.array_equal(table_hashes(matrix[2:], y[2:]), found[2:])
    huge = sparse.csr_matrix((np.ones(50), (np.arange(50), np.arange(50))), shape=(50, 10**9))
    assert len(table_hashes(huge, np.zeros(50, dtype=int))) == 50


@pytest.mark.parametrize(
    "X",
    [
        [{"a": 1}, {"a": 2}],
        np.zeros((2, 2, 2)),
        np.array([["a"], [b"b"]], dtype=object),
        [[], []],
        3,
    ],
    ids=["dicts", "cube", "bytes", "empty", "number"],
)
def test_what_is_no_table_has_no_hashes(X):
    assert table_hashes(X, np.zeros(2, dtype=int)) is None


# Fingerprintes


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    values=st.lists(st.integers(0, 40) | st.integers(0, 2**64 - 1), min_size=1, max_size=600),
    seed=st.integers(0, 99),
)
def test_a_fingerprint_holds_the_smallest_hashes(values, seed):
    hashes = np.array(values, dtype=np.uint64)
    fingerprint = Fingerprint.of(np.random.default_rng(seed).permutation(hashes))
    assert fingerprint.hashes.tolist() == sorted(set(values))[:SIZE]
    kept = [value for value in values if value in set(fingerprint.hashes.tolist())]
    assert fingerprint.rows == len(kept)
    assert fingerprint.single == sum(kept.count(value) == 1 for value in set(kept))
    again = Fingerprint.from_dict(json.loads(json.dumps(fingerprint.to_dict())))
    assert again.to_dict() == fingerprint.to_dict()
    found = fingerprint.overlap(hashes)
    assert found.found == found.checked == len(kept)


def test_many_equal_rows_among_many_are_counted():
    hashes = np.concatenate([np.repeat(np.arange(10, dtype=np.uint64), 500), hashes_of(3000)])
    fingerprint = Fingerprint.of(hashes)
    assert len(fingerprint.hashes) == SIZE
    assert (fingerprint.rows, fingerprint.single) == (5000 + SIZE - 10, SIZE - 10)


def test_a_fingerprint_is_small():
    assert len(json.dumps(Fingerprint.of(hashes_of(30_000)).to_dict())) < 5000


# What is known again


@pytest.mark.parametrize("n_training", [60, 500, 20_000])
@pytest.mark.parametrize("seed", range(3))
def test_training_rows_are_seen_and_fresh_rows_are_not(n_training, seed):
    hashes = hashes_of(2 * n_training, seed)
    fingerprint = Fingerprint.of(hashes[:n_training])
    same, fresh = fingerprint.overlap(hashes[:n_training]), fingerprint.overlap(hashes[n_training:])
    assert (same.status, same.share) == ("seen", 1.0)
    assert (fresh.status, fresh.share) == ("not seen", 0.0)


def test_few_rows_of_many_are_seen():
    hashes = hashes_of(50_000)
    fingerprint = Fingerprint.of(hashes)
    assert fingerprint.overlap(hashes[:1500]).status == "seen"


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_the_share_of_training_rows_is_estimated(share):
    hashes = hashes_of(20_000)
    n_seen = int(share * 10_000)
    found = Fingerprint.of(hashes[:10_000]).overlap(hashes[10_000 - n_seen : 20_000 - n_seen])
    assert found.status == "seen" and found.share == pytest.approx(share, abs=0.12)


def test_a_handful_of_rows_cannot_be_judged():
    hashes = hashes_of(20_000)
    found = Fingerprint.of(hashes[:10_000]).overlap(hashes[10_000:10_050])
    assert found.status == "cannot tell"
    assert Fingerprint.of(hashes[:10_000]).overlap(hashes[:0]).status == "cannot tell"


@pytest.mark.parametrize("seed", range(5))
def test_contents_that_many_rows_share_say_nothing(seed):
    hashes = alike(4000, levels=3, seed=seed)
    fingerprint = Fingerprint.of(hashes[:2000])
    for rows in (hashes[2000:], hashes[:2000]):
        found = fingerprint.overlap(rows)
        assert found.status == "cannot tell" and found.by_chance > 0.9


@pytest.mark.parametrize("levels", [10, 14, 20, 30, 60])
@pytest.mark.parametrize("seed", range(20))
def test_rows_that_are_alike_by_chance_raise_no_alarm(levels, seed):
    hashes = alike(8000, levels, seed)
    assert Fingerprint.of(hashes[:4000]).overlap(hashes[4000:]).status != "seen"


@pytest.mark.parametrize("levels", [14, 20, 30, 60])
def test_training_rows_are_seen_although_some_are_alike(levels):
    hashes = alike(4000, levels)
    assert Fingerprint.of(hashes).overlap(hashes).status == "seen"


# Calibrators and classifiers


def fitted(name, *rows):
    return type(CALIBRATORS[name])(**CALIBRATORS[name].get_params()).fit(*rows)


@every
def test_every_calibrator_keeps_a_fingerprint_and_stores_it(name, tmp_path):
    frame, y, scores = make_frame()
    model = fitted(name, frame, y, scores)
    assert len(model.fingerprint_.hashes) == SIZE
    model.save(tmp_path / "calibrator.json")
    again = type(model).load(tmp_path / "calibrator.json")
    assert again.fingerprint_.to_dict() == model.fingerprint_.to_dict()


def test_hashes_may_be_left_out_of_a_file(tmp_path):
    frame, y, scores = make_frame()
    model = fitted("tree", frame, y, scores)
    model.save(tmp_path / "calibrator.json", fingerprint=False)
    again = CalibrationTree.load(tmp_path / "calibrator.json")
    assert again.fingerprint_.to_dict() is None
    assert len(model.fingerprint_.hashes) == SIZE
    assert np.array_equal(again.predict_proba(frame, scores), model.predict_proba(frame, scores))
    found = again.fingerprint_.overlap(hashes_of(500))
    assert found.to_dict() == {
        "status": "cannot tell", "checked": 0, "found": 0, "by_chance": None, "share": None
    }  # fmt: skip


@every
def test_a_stored_calibrator_without_a_fingerprint_is_refused(name):
    stored = fitted(name, *make_rows(50)).to_dict()
    del stored["fingerprint"]
    with pytest.raises(ValueError, match=r"must have the keys .*'fingerprint'"):
        type(CALIBRATORS[name]).from_dict(stored)


@every
def test_rows_without_weight_and_the_order_of_rows_do_not_matter(name):
    X, y, scores = make_rows(300)
    order = np.random.default_rng(0).permutation(300)
    model = fitted(name, X[:200], y[:200], scores[:200])
    weights = np.repeat([1.0, 0.0], [200, 100])[order]
    other = fitted(name, X[order], y[order], scores[order], weights)
    assert other.fingerprint_.to_dict() == model.fingerprint_.to_dict()


def test_only_calibrators_that_use_attributes_fingerprint_them():
    X, y, scores = make_rows(100)
    for name in CALIBRATORS:
        one, other = fitted(name, X, y, scores), fitted(name, X + 1, y, scores)
        uses_them = name in ("tree", "published", "forest", "boosting", "ensemble")
        assert (one.fingerprint_.to_dict() != other.fingerprint_.to_dict()) == uses_them


def test_threads_do_not_matter():
    X, y, scores = make_rows(200)
    one, two = (CalibrationTree(n_jobs=n).fit(X, y, scores).fingerprint_.to_dict() for n in (1, 2))
    assert one == two


def test_a_classifier_fingerprintes_attributes_and_labels():
    X, y, _ = make_rows(400)
    model = CalibratedClassifier(GaussianNB(), PlattScaling()).fit(X, y)
    hashes = table_hashes(X, y)
    assert model.fingerprint_.to_dict() == Fingerprint.of(hashes).to_dict()
    weights = (np.arange(400) < 300).astype(float)
    some = CalibratedClassifier(GaussianNB(), PlattScaling()).fit(X, y, weights)
    assert some.fingerprint_.to_dict() == Fingerprint.of(hashes[:300]).to_dict()


def test_a_classifier_of_texts_and_one_of_what_cannot_be_read():
    texts = [f"{'good' if i % 2 else 'bad'} number {i}" for i in range(80)]
    bayes = make_pipeline(CountVectorizer(), MultinomialNB())
    model = CalibratedClassifier(bayes, PlattScaling()).fit(texts, [0, 1] * 40)
    assert len(model.fingerprint_.hashes) == 80
    split = make_pipeline(CountVectorizer(analyzer=lambda words: words), MultinomialNB())
    lists = np.empty(80, dtype=object)
    lists[:] = [text.split() for text in texts]
    assert CalibratedClassifier(split, PlattScaling()).fit(lists, [0, 1] * 40).fingerprint_ is None


GOOD = Fingerprint.of(np.array([3, 3, 5, 9], dtype=np.uint64)).to_dict()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, 0),
        (None, []),
        (None, {**GOOD, "more": 1}),
        ("hashes", ""),
        ("hashes", None),
        ("hashes", ["0" * 16]),
        ("hashes", "0" * 15),
        ("hashes", "0" * 15 + "X"),
        ("hashes", "0" * 15 + "A"),
        ("hashes", "0" * 32),
        ("hashes", GOOD["hashes"][16:] + GOOD["hashes"][:16]),
        ("hashes", "".join(f"{i:016x}" for i in range(257))),
        ("rows", 2),
        ("rows", 3),
        ("rows", 4.0),
        ("rows", True),
        ("rows", 10**400),
        ("single", -1),
        ("single", 1),
        ("single", 3),
        ("single", 4),
        ("single", "2"),
    ],
)
def test_a_malformed_fingerprint_is_refused(key, value):
    assert Fingerprint.from_dict(GOOD).to_dict() == GOOD
    with pytest.raises(ValueError, match="stored"):
        Fingerprint.from_dict(value if key is None else {**GOOD, key: value})
