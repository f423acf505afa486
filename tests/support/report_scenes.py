"""Reports of every kind, each small enough to make in a moment."""

from functools import cache

import numpy as np
import pandas as pd
from scipy.special import expit, logit, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from caltree import (
    CalibratedClassifier,
    CalibrationBoosting,
    CalibrationEnsemble,
    CalibrationForest,
    CalibrationTree,
    IdentityCalibrator,
    PlattScaling,
)
from caltree.report import report

from .trees import fixed_tree

LEAVES = {"path_averaging": False}
HOSTILE = (
    "<script>window.hurt = 1</script>",
    '"><img src="https://example.invalid/x.png" onerror="window.hurt = 1">',
    "</script><script>window.hurt = 1</script>",
    "{{ 7 * 7 }} {% raw %} ${7} `",
    "a\u2028b\u2029c\x00\ud800\u202e",
    "<!--",
    "w" * 300,
)


def make_table(n_rows, seed=0):
    """A table in which students and the rich are judged wrongly."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "contract": rng.choice(["permanent", "self-employed", "student"], n_rows),
            "age": rng.integers(18, 70, n_rows).astype(float),
            "income": np.exp(rng.normal(8, 0.5, n_rows)).round(-1),
        }
    )
    frame.loc[rng.random(n_rows) < 0.1, "income"] = np.nan
    odds = rng.normal(0, 1.5, n_rows)
    student = (frame["contract"] == "student").to_numpy()
    old = (frame["age"] > 50).to_numpy()
    truth = np.where(student, odds - 2.5, np.where(old, -odds, odds))
    y = np.where(rng.random(n_rows) < expit(truth), "yes", "no")
    return frame, y, expit(odds)


@cache
def trained():
    """A tree, and rows it has not seen."""
    tree = CalibrationTree(**LEAVES).fit(*make_table(3000))
    return tree, *make_table(2000, seed=1)


def loans():
    tree, frame, y, scores = trained()
    frame = frame.assign(branch=np.where(np.arange(len(y)) % 4, "north", "south"))
    return report(tree, frame, y, scores, by=["contract", "branch"], title="Loans")


def worse():
    """A calibrator that has learned the contrary of some rows."""
    frame, y, scores = make_table(3000)
    wrong = (frame["contract"] == "permanent").to_numpy() & (y == "no")
    tree = CalibrationTree(**LEAVES).fit(frame, np.where(wrong, "yes", y), scores)
    return report(tree, *make_table(2000, seed=1), by="contract")


def seen():
    return report(trained()[0], *make_table(3000))


def alike():
    """Rows of which many are alike."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (2000, 2))
    scores = rng.choice([0.25, 0.75], 2000)
    y = (rng.random(2000) < scores).astype(int)
    tree = fixed_tree().fit(X[:1000], y[:1000], scores[:1000])
    return report(tree, X[1000:], y[1000:], scores[1000:])


def many_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3)).round(2)
    odds = rng.normal(size=(3000, 6)) * 2
    truth = odds + np.where(X[:, :1] > 0, np.linspace(-2, 2, 6), 0)
    y = np.argmax(truth + rng.gumbel(size=truth.shape), axis=1)
    labels = np.array([f"class {chr(97 + i)}" for i in range(6)])[y]
    scores = softmax(odds, axis=1)
    tree = fixed_tree(max_depth=2, max_bins=20, l2_regularization=20).fit(
        X[:1500], labels[:1500], scores[:1500]
    )
    return report(tree, X[1500:], labels[1500:], scores[1500:], by=[0], title="Letters")


def many_leaves():
    frame, y, scores = make_table(6000, seed=2)
    tree = fixed_tree().fit(frame, y, scores)
    assert tree.get_n_leaves() > 200
    return report(tree, *make_table(6000, seed=3), title="A large tree")


def one_leaf():
    rng = np.random.default_rng(0)
    X, scores = rng.normal(size=(1000, 2)), rng.random(1000)
    y = rng.random(1000) < scores
    tree = CalibrationTree().fit(X[:500], y[:500], scores[:500])
    assert tree.model_.uncalibrated_weight == 1.0
    return report(tree, X[500:], y[500:], scores[500:])


def hostile():
    rng = np.random.default_rng(0)
    n_rows = 1500
    frame = pd.DataFrame({name: rng.normal(size=n_rows) for name in HOSTILE[:3]})
    frame[HOSTILE[3]] = pd.Series(rng.choice(np.array(HOSTILE, dtype=object), n_rows), dtype=object)
    frame[HOSTILE[6]] = rng.normal(size=n_rows)
    odds = rng.normal(size=n_rows)
    inside = frame[HOSTILE[3]].isin(HOSTILE[:4]).to_numpy() ^ (frame[HOSTILE[6]] > 0).to_numpy()
    inside ^= (frame[HOSTILE[0]] > 0.5).to_numpy()
    y = rng.random(n_rows) < expit(np.where(inside, odds, -2 * odds - 1))
    labels = np.where(y, "<i>yes</i>" + "y" * 200, "</script>no")
    tree = fixed_tree(max_depth=4).fit(frame[:800], labels[:800], expit(odds[:800]))
    return report(tree, frame[800:], labels[800:], expit(odds[800:]), title=" ".join(HOSTILE))


def forest():
    made = CalibrationForest(8, random_state=0).fit(*make_table(1500))
    return report(made, *make_table(1000, seed=1))


def boosting():
    made = CalibrationBoosting().fit(*make_table(1500))
    return report(made, *make_table(1000, seed=1))


def ensemble():
    made = CalibrationEnsemble(8, random_state=0).fit(*make_table(1500))
    return report(made, *make_table(1000, seed=1))


def scaling():
    _, y, scores = make_table(1500)
    rows = make_table(1000, seed=1)
    return report(PlattScaling().fit(None, y, scores), None, *rows[1:])


def untouched():
    identity = IdentityCalibrator().fit(*make_table(500))
    return report(identity, *make_table(400, seed=1))


def model():
    def numbers(frame, y, scores):
        return frame.drop(columns="contract").fillna(0.0).assign(odds=logit(scores)), y

    classifier = make_pipeline(StandardScaler(), LogisticRegression())
    made = CalibratedClassifier(classifier, CalibrationTree(**LEAVES))
    made.fit(*numbers(*make_table(2000)))
    return report(made, *numbers(*make_table(1000, seed=1)))


def few_rows():
    tree, frame, y, scores = trained()
    chosen = [*np.flatnonzero(y == "yes")[:6], *np.flatnonzero(y == "no")[:6]]
    return report(tree, frame.iloc[chosen], y[chosen], scores[chosen])


def weighted():
    tree, frame, y, scores = trained()
    weights = np.random.default_rng(0).choice([0.0, 0.5, 2.0], len(y))
    return report(tree, frame, y, scores, sample_weight=weights)


SCENES = {
    each.__name__: each
    for each in (
        loans,
        worse,
        seen,
        alike,
        many_classes,
        many_leaves,
        one_leaf,
        hostile,
        forest,
        boosting,
        ensemble,
        scaling,
        untouched,
        model,
        few_rows,
        weighted,
    )
}
