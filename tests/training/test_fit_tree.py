"""Folds and what is chosen with them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold

from caltree import CalibrationTree
from caltree._inputs.folds import make_folds
from caltree._training.fit_tree import _choose_alpha

from ..support.trees import boosted_tree, fixed_tree, make_frame, make_rows, same_tree

quick = settings(max_examples=50, deadline=None, derandomize=True)


def as_lists(folds):
    return [(train.tolist(), test.tolist()) for train, test in folds]


# Folds


@quick
@given(
    labels=st.lists(st.integers(0, 2), min_size=10, max_size=60),
    n_folds=st.integers(2, 10),
    seed=st.none() | st.integers(0, 99),
)
def test_a_number_of_folds_deals_the_rows_out_by_class(labels, n_folds, seed):
    labels = np.array(labels, dtype=np.uint16)
    folds = make_folds(n_folds, labels, None, seed)
    assert len(folds) == n_folds
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(len(labels)))
    for train, test in folds:
        assert sorted([*train, *test]) == list(range(len(labels)))
    for label in range(3):
        dealt = [np.count_nonzero(labels[test] == label) for _, test in folds]
        assert max(dealt) - min(dealt) <= 2
    sizes = [len(test) for _, test in folds]
    assert max(sizes) - min(sizes) <= 1


def test_published_folds():
    labels = np.array([0, 0, 1, 1, 0, 1, 0], dtype=np.uint16)
    folds = make_folds(2, labels, None, None)
    # By class 0 1 4 6 2 5 3, where a row that makes room takes the place of the one that came;
    # dealt to two players 0 4 2 3 and 1 6 5.
    assert as_lists(folds) == [([1, 6, 5], [0, 4, 2, 3]), ([0, 4, 2, 3], [1, 6, 5])]


def test_chance_shuffles_the_rows_first():
    labels = np.zeros(20, dtype=np.uint16)
    published = as_lists(make_folds(4, labels, None, None))
    assert published == as_lists(make_folds(4, labels, None, None))
    shuffled = as_lists(make_folds(4, labels, None, 0))
    assert shuffled == as_lists(make_folds(4, labels, None, np.random.RandomState(0)))
    assert shuffled != published and shuffled != as_lists(make_folds(4, labels, None, 1))


def test_a_splitter_sees_all_rows_and_the_folds_only_the_kept():
    labels = np.array([0, 1, 0, 1], dtype=np.uint16)
    keep = np.array([True, False, True, True, False, True])
    # Of rows 0 to 5 the rows 0 2 3 5 are kept, as 0 1 2 3.
    assert as_lists(make_folds(KFold(2), labels, keep, None)) == [
        ([2, 3], [0, 1]),
        ([0, 1], [2, 3]),
    ]
    given = [([0, 1, 2], np.array([3, 4])), ((5, 4, 3), np.array([2, 1], dtype=np.uint8))]
    assert as_lists(make_folds(given, labels, keep, None)) == [([0, 1], [2]), ([3, 2], [1])]
    assert as_lists(make_folds(iter(given), labels, keep, None)) == [([0, 1], [2]), ([3, 2], [1])]


def test_a_splitter_sees_the_labels():
    labels = np.repeat(np.array([0, 1, 2], dtype=np.uint16), [30, 20, 10])
    for _, test in make_folds(StratifiedKFold(5), labels, None, None):
        assert np.bincount(labels[test]).tolist() == [6, 4, 2]


def test_a_fold_that_keeps_no_row_is_refused():
    labels = np.array([0, 1, 0], dtype=np.uint16)
    keep = np.array([True, True, True, False])
    with pytest.raises(ValueError, match="fold 1 of cv has no row of positive weight"):
        make_folds([([0, 1], [2]), ([0, 1], [3])], labels, keep, None)


# Fitting with folds

both_engines = pytest.mark.parametrize(
    "make", [CalibrationTree, boosted_tree], ids=["shrunken", "boosted"]
)


def curves(tree):
    """Every loss that the folds gave."""
    boosting = [] if tree.boosting_rmse_ is None else tree.boosting_rmse_.tolist()
    return boosting, [part.tolist() for part in tree.pruning_path_], tree.selection_


@both_engines
def test_folds_can_be_given_in_any_way(make):
    frame, y, scores = make_frame()
    expected = make(cv=4).fit(frame, y, scores)
    folds = make_folds(4, y.astype(np.uint16), None, None)
    tree = make(cv=folds).fit(frame, y, scores)
    assert same_tree(tree, expected)
    assert curves(tree) == curves(expected)
    other = make(cv=StratifiedKFold(4)).fit(frame, y, scores)
    split = list(StratifiedKFold(4).split(frame, y))
    assert same_tree(other, make(cv=split).fit(frame, y, scores))
    assert curves(other) != curves(expected)


def test_folds_need_not_cover_the_rows():
    X, y, scores = make_rows()
    cv = ShuffleSplit(3, test_size=0.2, random_state=0)
    tree = boosted_tree(cv=cv).fit(X, y, scores)
    assert tree.boosting_iterations_ == np.argmin(tree.boosting_rmse_)
    tree = CalibrationTree(cv=cv).fit(X, y, scores)
    strengths, rmse = tree.pruning_path_
    assert tree.pruning_alpha_ == strengths[rmse == rmse.min()].max()
    # Rows that are held out twice are judged twice.
    held_out = np.concatenate([test for _, test in cv.split(X)])
    assert len(np.unique(held_out)) < len(held_out)
    uncalibrated = np.sqrt(np.mean((scores - np.eye(2)[y])[held_out] ** 2))
    assert tree.selection_[0]["loss"] == pytest.approx(uncalibrated, abs=1e-12)


@both_engines
@pytest.mark.parametrize("n_classes", [2, 3])
def test_given_folds_and_rows_without_weight(n_classes, make):
    X, y, scores = make_rows(n_classes=n_classes)
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    kept = np.flatnonzero(weight)
    place = np.full(len(y), -1)
    place[kept] = np.arange(len(kept))
    folds = list(StratifiedKFold(3).split(X, y))
    inner = [tuple(place[part][place[part] >= 0] for part in fold) for fold in folds]
    tree = make(cv=folds).fit(X, y, scores, sample_weight=weight)
    expected = make(cv=inner).fit(X[kept], y[kept], scores[kept], weight[kept])
    assert same_tree(tree, expected)
    assert curves(tree) == curves(expected)


def held_out_rmse(tree, X, y, scores, n_folds):
    """The RMSE in each of the published folds of a tree that is fitted to the others."""
    rmse = []
    for train, test in make_folds(n_folds, y.astype(np.uint16), None, None):
        tree.fit(X[train], y[train], scores[train])
        difference = tree.predict_proba(X[test], scores[test]) - np.eye(len(tree.classes_))[y[test]]
        rmse.append(np.sqrt(np.mean(difference**2)))
    return rmse


def test_boosting_rmse_is_the_mean_over_folds():
    X, y, scores = make_rows(n_classes=3)
    tree = boosted_tree(cv=3, max_depth=0).fit(X, y, scores)
    assert tree.boosting_rmse_[0] == pytest.approx(np.sqrt(2) / 3)
    iterations = tree.boosting_iterations_
    part = boosted_tree(boosting_iterations=iterations, pruning=None, max_depth=0)
    rmse = held_out_rmse(part, X, y, scores, 3)
    assert tree.boosting_rmse_[iterations] == pytest.approx(np.mean(rmse), abs=1e-12)


def test_held_out_rmse_of_the_unpruned_tree():
    X, y, scores = make_rows(500, n_classes=3, seed=1, round_to=1)
    tree = boosted_tree(cv=3, boosting_iterations=2).fit(X, y, scores)
    rmse = held_out_rmse(boosted_tree(boosting_iterations=2, pruning=0.0), X, y, scores, 3)
    strengths, found = tree.pruning_path_
    assert strengths[0] == 0.0
    assert found[0] == pytest.approx(np.mean(rmse), abs=1e-12)


@pytest.mark.parametrize("splits", ["residual", "gain_ratio"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_held_out_losses_of_trees_of_shrunken_node_models(n_classes, splits):
    # Values that every fold has, and scores of mean 0 and deviation 1 in each: the bins and scales
    # of all rows are those of any two folds.
    X, y, _ = make_rows(480, n_classes=n_classes, seed=1, round_to=0)
    X = np.clip(X, -1, 1)
    margins = np.random.default_rng(0).choice([-1.0, 1.0], (480, n_classes - (n_classes == 2)))
    folds = []
    for test in np.arange(480).reshape(3, 160):
        margins[test[80:]] = -margins[test[:80]]
        folds.append((np.setdiff1d(np.arange(480), test), test))
    params = {"splits": splits, "score_type": "margin"}
    tree = CalibrationTree(cv=folds, path_averaging=False, **params).fit(X, y, margins)

    def held_out(**changes):
        """Predictions minus truth, fold by fold, of trees that are fitted to the others."""
        part = fixed_tree(**params, **changes)
        return [
            part.fit(X[train], y[train], margins[train]).predict_proba(X[test], margins[test])
            - np.eye(n_classes)[y[test]]
            for train, test in folds
        ]

    strengths, found = tree.pruning_path_
    assert len(strengths) > 3
    for strength, loss in zip(strengths, found, strict=True):
        expected = np.mean([np.sqrt(np.mean(part**2)) for part in held_out(pruning=strength)])
        assert loss == pytest.approx(expected, abs=1e-12)
    expected = {"global": held_out(max_depth=0), "local": held_out(pruning=tree.pruning_alpha_)}
    assert [row["candidate"] for row in tree.selection_] == list(expected)
    for row in tree.selection_:
        together = np.concatenate(expected[row["candidate"]])
        assert row["loss"] == pytest.approx(np.sqrt(np.mean(together**2)), abs=1e-12)


EXTREME = {
    "probability": [0.0, 1e-300, 1e-9, 0.3, 0.5, 0.9, 1.0],
    "logit": [-200.0, -40.0, -1.0, 0.0, 2.0, 40.0, 200.0],
    "margin": [-200.0, -40.0, -1.0, 0.0, 2.0, 40.0, 200.0],
}


@pytest.mark.parametrize("score_type", EXTREME)
@pytest.mark.parametrize("shape", [(2, 1), (2, 2), (2, 4), (3, 3), (3, 6), (16, 32)])
@pytest.mark.parametrize("extremes", ["clip", "published"])
def test_a_tree_predicts_as_it_was_judged(score_type, shape, extremes):
    n_classes, width = shape
    rng = np.random.default_rng(0)
    X, y, _ = make_rows(300, n_classes=n_classes)
    scores = rng.choice(EXTREME[score_type], (300, width))
    fold = np.arange(300) % 3 == 0
    cv = [(np.flatnonzero(~fold), np.flatnonzero(fold))]
    params = {"score_type": score_type, "extremes": extremes, "cv": cv, "splits": "residual"}
    tree = CalibrationTree(**params).fit(X, y, scores)
    strengths, path = tree.pruning_path_
    levels = {row["level"]: row["loss"] for row in tree.levels_}
    alone = {row["candidate"]: row["loss"] for row in tree.selection_}
    assert alone["global"] == levels["global"] == pytest.approx(path[-1], rel=1e-9)
    pruned = pytest.approx(path[strengths == tree.pruning_alpha_][-1], rel=1e-9)
    assert levels["pruned tree"] == pruned
    assert alone["local"] <= min(levels.values()) * (1 + 1e-9)
    tree = CalibrationTree(**params, path_averaging=False).fit(X, y, scores)
    assert [row["loss"] for row in tree.selection_][-1] == pruned


# The choice of the pruning strength

STEPS = np.array([0.0, 0.01, 0.04])
SEQUENCES = [
    (np.array([0.0, 0.015, 0.3]), np.array([0.5, 0.4, 0.6])),
    (np.array([0.0, 0.3, 0.02]), np.array([0.5, 0.3, 0.2])),  # a dip: 0.02 comes with 0.3
]


def choose_alpha(alphas, sequences, tree):
    """What is chosen if these are the RMSE or, of a tree of that objective, the log losses."""
    if tree.objective == "rmse":
        sequences = [(fold_alphas, rmse**2) for fold_alphas, rmse in sequences]
    return _choose_alpha(alphas, sequences, tree._recipe())


def test_strengths_lie_between_the_steps_and_every_fold_answers_with_its_own():
    alpha, (strengths, rmse) = choose_alpha(STEPS, SEQUENCES, boosted_tree())
    np.testing.assert_allclose(strengths, [0.0, 0.02, 0.2])
    np.testing.assert_allclose(rmse, [0.5, 0.45, 0.45])
    assert alpha == strengths[2]


@pytest.mark.parametrize("objective", ["rmse", "log_loss"])
def test_the_last_strength_leaves_the_root_alone_in_every_fold(objective):
    tree = CalibrationTree(objective=objective)
    alpha, (strengths, losses) = choose_alpha(STEPS, SEQUENCES, tree)
    # Between 0.04 and 4, which no step in deviance comes near.
    np.testing.assert_allclose(strengths, [0.0, 0.02, 0.4])
    np.testing.assert_allclose(losses, [0.5, 0.45, 0.4])
    assert alpha == strengths[2]


def test_of_equal_strengths_the_stronger_is_chosen():
    fold = (np.array([0.0]), np.array([0.5]))
    alpha, _ = choose_alpha(STEPS, [fold], boosted_tree())
    assert alpha == pytest.approx(0.2)
    better = (np.array([0.0, 0.03]), np.array([0.4, 0.5]))
    alpha, _ = choose_alpha(STEPS, [better], boosted_tree())
    assert alpha == pytest.approx(0.02)
