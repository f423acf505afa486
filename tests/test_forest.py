"""CalibrationForest: what it promises, whatever the data."""

from dataclasses import replace

import joblib
import numpy as np
import pytest
from scipy.special import expit, softmax

from caltree import CalibrationForest, CalibrationTree
from caltree._fitted.selection import Selection
from caltree._training.do_no_harm import HEDGE
from caltree.forest import count_columns

from .spec.shrunken import with_bends
from .support.default_trees import assert_uncalibrated
from .support.forests import (
    calibrated_rows,
    few,
    fitted,
    log_loss,
    same_forest,
)
from .support.marks import new_values
from .support.trees import assert_probabilities, make_frame, make_rows, squared_error

# Does it help, does it ever hurt


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("scoring", ["rmse", "log_loss"])
def test_scores_that_are_right_stay_uncalibrated(n_classes, scoring):
    stay = 0
    for seed in range(6):
        X, y, scores = calibrated_rows(800, n_classes, seed)
        forest = few(scoring=scoring).fit(X, y, scores)
        if forest.selection_.uncalibrated_weight not in (1.0, pytest.approx(1.0 - HEDGE)):
            continue
        stay += 1
        assert_uncalibrated(forest, X, scores, scores)
        weights = [candidate.weight for candidate in forest.selection_.candidates]
        assert weights[2:] == [0.0] * 11
        assert not forest.feature_importances_.any()
    # Now and then something is found in noise.
    assert stay >= 5


def test_one_column_that_is_right_stays_uncalibrated():
    X, y, scores = calibrated_rows(800, 2, 0)
    forest = few().fit(X, y, scores[:, 1])
    p = np.array([0.0, 1e-300, 0.1, 0.5, 1.0])
    assert np.array_equal(forest.predict_proba(X[:5], p), np.column_stack([1 - p, p]))


def test_logits_that_are_right_stay_uncalibrated():
    X, y, scores = calibrated_rows(800, 2, 0)
    odds = np.log(scores[:, 1] / scores[:, 0])
    forest = few(score_type="logit").fit(X, y, odds)
    assert forest.selection_.uncalibrated_weight == 1.0
    expected = np.column_stack([expit(-odds), expit(odds)])
    assert np.array_equal(forest.predict_proba(X, odds), expected)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("scoring", ["rmse", "log_loss"])
def test_what_is_wrong_in_a_region_is_put_right_there(n_classes, scoring):
    X, y, scores = make_rows(800, n_classes, seed=1)
    X_new, y_new, scores_new = make_rows(2000, n_classes, seed=2)
    forest = few(scoring=scoring).fit(X, y, scores)
    calibrated = forest.predict_proba(X_new, scores_new)
    assert_probabilities(calibrated)
    root = CalibrationTree(max_depth=0).fit(X, y, scores).predict_proba(X_new, scores_new)
    for loss in (squared_error, log_loss):
        assert loss(calibrated, y_new) < 0.75 * loss(root, y_new)
        assert loss(root, y_new) < 0.9 * loss(scores_new, y_new)
    assert forest.selection_.uncalibrated_weight < 0.2
    # The first attribute decides on the region, the third on nothing.
    importances = forest.feature_importances_
    assert importances.sum() == pytest.approx(1.0) and importances.min() >= 0
    assert importances[0] > 0.4 and importances[2] < 0.1


@pytest.mark.parametrize("carrier", [0, 2, 4])
def test_importances_point_to_the_attribute_that_carries_the_miscalibration(carrier):
    rng = np.random.default_rng(carrier)
    X = rng.standard_normal((1000, 5))
    odds = rng.standard_normal(1000)
    y = (rng.random(1000) < expit(odds + 2 * np.sign(X[:, carrier]))).astype(int)
    importances = few().fit(X, y, expit(odds)).feature_importances_
    assert importances.argmax() == carrier and importances[carrier] > 0.7


def test_scoring_is_the_loss_that_the_choice_goes_by():
    X, y, scores = make_rows(500, 3)
    by_rmse, by_log_loss = (few(scoring=name).fit(X, y, scores) for name in ("rmse", "log_loss"))
    selections = by_rmse.selection_, by_log_loss.selection_
    assert [selection.scoring for selection in selections] == ["rmse", "log_loss"]
    uncalibrated = [selection.candidates[0].loss for selection in selections]
    seen = {"rmse": np.sqrt(squared_error(scores, y)), "log_loss": log_loss(scores, y)}
    # Nearly every row is left out by some tree of each kind.
    assert uncalibrated[0] == pytest.approx(seen["rmse"], rel=0.05)
    assert uncalibrated[1] == pytest.approx(seen["log_loss"], rel=0.05)
    weights = [[each.weight for each in selection.candidates] for selection in selections]
    assert weights[0] != weights[1]
    assert same_forest_but_weights(by_rmse, by_log_loss)


def same_forest_but_weights(one, other):
    """The first trees, as far as both go, are the same."""
    ours, theirs = one.model_, other.model_
    return (
        ours.attribute[0] == theirs.attribute[0]
        and ours.threshold[0] == theirs.threshold[0]
        and np.array_equal(ours.parameters[ours.roots], theirs.parameters[theirs.roots])
    )


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("scoring", ["rmse", "log_loss"])
def test_without_do_no_harm_uncalibrated_probabilities_have_no_weight(n_classes, scoring):
    for rows in (calibrated_rows(400, n_classes, 0), make_rows(400, n_classes)):
        X, y, scores = rows
        forest = few(do_no_harm=False, scoring=scoring).fit(X, y, scores)
        assert forest.model_.uncalibrated_weight == 0.0
        assert forest.selection_.uncalibrated_weight == 0.0
        assert forest.selection_.loss == forest.selection_.calibrated_loss
        assert forest.selection_.chosen in ("global", "local")
        names = [candidate.name for candidate in forest.selection_.candidates]
        assert len(names) == 12 and "uncalibrated" not in names
        calibrated = forest.predict_proba(X, scores)
        assert_probabilities(calibrated)
        assert not np.array_equal(calibrated, scores)


@pytest.mark.parametrize("do_no_harm", [False, True])
def test_two_rows_that_all_trees_have_seen_leave_nothing_to_choose(do_no_harm):
    X, y, scores = [[0.0], [1.0]], [0, 1], [0.2, 0.7]
    forests = [
        CalibrationForest(2, do_no_harm=do_no_harm, random_state=seed).fit(X, y, scores)
        for seed in range(20)
    ]
    without = [forest for forest in forests if forest.selection_ is None]
    assert without
    for forest in without:
        assert forest.model_.uncalibrated_weight == float(do_no_harm)
        assert_probabilities(forest.predict_proba(X, scores))


def test_a_tree_and_a_forest_describe_their_choice_in_the_same_form():
    X, y, scores = make_rows(400)
    for scoring in ("rmse", "log_loss"):
        tree, forest = (
            make(scoring=scoring).fit(X, y, scores).selection_ for make in (CalibrationTree, few)
        )
        for selection in (tree, forest):
            assert isinstance(selection, Selection) and selection.scoring == scoring
            assert Selection.from_dict(selection.to_dict()) == selection
            assert selection.chosen == "local"
            names = [candidate.name for candidate in selection.candidates]
            assert names[:2] == ["uncalibrated", "global"]
            weights = [candidate.weight for candidate in selection.candidates]
            assert sum(weights) == pytest.approx(1.0, abs=1e-12)
            assert weights[0] == selection.uncalibrated_weight
            title, first, *_, last = selection.to_text().splitlines()
            measure = {"rmse": "RMSE", "log_loss": "log loss"}[scoring]
            assert (
                title == f"Held-out {measure}, and weight (chosen: local, a model for each region):"
            )
            assert first.startswith("    uncalibrated ") and last.startswith("    average ")
        # What is known before anything is fitted costs the same, but for rows never out of bag.
        assert tree.candidates[0].loss == pytest.approx(forest.candidates[0].loss, rel=0.05)


def test_weights_of_nodes_are_those_of_the_candidates():
    for n_classes, kind in ((2, "probability"), (3, "probability"), (2, "margin"), (3, "margin")):
        X, y, scores = make_rows(300, n_classes)
        forest = few(score_type=kind).fit(X, y, scores)
        weights = np.array([candidate.weight for candidate in forest.selection_.candidates])
        assert weights.min() >= 0 and weights.sum() == pytest.approx(1.0, abs=1e-12)
        names = [candidate.name for candidate in forest.selection_.candidates]
        assert len(set(names)) == len(names)
        assert ("uncalibrated" in names) == (kind != "margin")
        model = forest.model_
        of_kinds = (weights[1:] if kind != "margin" else weights).reshape(2, -1)
        ends = [*model.roots[1:], len(model.attribute)]
        n_trees = np.bincount(np.arange(model.n_trees) % 2)
        for tree, (root, end) in enumerate(zip(model.roots, ends, strict=True)):
            of_tree = of_kinds[tree % 2] / n_trees[tree % 2]
            # All sizes end somewhere on every way; that of all rows ends at the root.
            leaves = root + np.flatnonzero(model.attribute[root:end] < 0)
            down_to = [weight_down_to(model, leaf) for leaf in leaves]
            np.testing.assert_allclose(down_to, down_to[0], rtol=0, atol=1e-12)
            # Weights are whole millionths, those of each size and tree.
            assert down_to[0] == pytest.approx(of_tree.sum(), abs=6e-6)
            assert model.weight[root] >= of_tree[0] - 1e-6
        assert model.uncalibrated_weight == pytest.approx(1.0 - of_kinds.sum(), abs=1e-9)


def weight_down_to(model, node):
    """The weights of a node and of all nodes above it, added up."""
    total = 0.0
    while node >= 0:
        total += model.weight[node]
        node = model.parent[node]
    return total


# What its arrays mean


def slow_probabilities(forest, encoded, odds, offset):
    """Every node on the way asked, by walking through the arrays."""
    model = forest.model_
    sizes = model.attributes.n_categories
    result = np.zeros((len(encoded), model.n_states))
    for row, values in enumerate(np.hstack([encoded, odds])):
        for node in model.roots:
            while True:
                own = odds[row].reshape(-1, model.n_states).T
                parameters = model.parameters[node]
                F = parameters[:, 0] + (parameters[:, 1:] * own).sum(axis=1)
                F = F + (0 if offset is None else offset[row])
                said = expit(F) if model.n_states == 1 else softmax(F)
                result[row] += model.weight[node] * said
                if model.attribute[node] < 0:
                    break
                a = model.attribute[node]
                if np.isnan(values[a]):
                    branch = model.missing[node]
                elif a < len(sizes) and sizes[a] > 0:
                    branch = model.branches[model.table[node] + int(values[a])]
                else:
                    branch = int(values[a] > model.threshold[node])
                node = model.first_child[node] + branch
    return result


@pytest.mark.parametrize("kind", ["probability", "margin", "three classes", "two classifiers"])
@new_values
def test_a_forest_says_what_its_arrays_mean(kind):
    frame, y, scores = make_frame(200)
    if kind == "three classes":
        _, y, scores = make_rows(200, 3)
    if kind == "two classifiers":
        scores = np.hstack([scores, make_rows(200, seed=5)[2]])
    forest = few(score_type="margin" if kind == "margin" else "auto").fit(frame, y, scores)
    new = frame.iloc[:40].assign(colour=["mauve", None, "red", "blue"] * 10)
    encoded = forest.model_.attributes.encode(new)
    given = scores[:40]
    offset, odds, weight = None, given, forest.selection_.uncalibrated_weight
    mean = given.reshape(40, -1, len(forest.classes_)).mean(axis=1)
    if kind != "margin":
        odds = np.log(given) if kind == "three classes" else np.log(given / (1 - given))
        offset = np.log(mean[:, 1:] / mean[:, :1]) if kind != "three classes" else np.log(mean)
    if kind == "probability":
        # The first score is the log-odds that is corrected, and its slope has it already.
        odds, offset = odds[:, 1:], None
    if kind != "three classes":
        odds = with_bends(odds)
    assert forest.model_.offset == (offset is not None)
    found = slow_probabilities(forest, encoded, odds, offset)
    if found.shape[1] == 1:
        found = np.hstack([1 - weight - found, found])
    found += weight * mean if weight else 0.0
    assert (forest.model_.attribute >= 0).any()
    np.testing.assert_allclose(forest.predict_proba(new, given), found, rtol=0, atol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_importances_by_hand(n_classes):
    X, y, scores = make_rows(300, n_classes)
    fitted_model = few(max_features=1).fit(X, y, scores).model_
    rng = np.random.default_rng(0)
    gain = rng.normal(0.2, 1.0, len(fitted_model.gain))
    model = replace(fitted_model, gain=gain)
    sums = np.zeros(3)
    for node in np.flatnonzero((model.attribute >= 0) & (model.attribute < 3)):
        # What the nodes on any way below count for.
        below, counts_for = int(node), 0.0
        while model.attribute[below] >= 0:
            below = int(model.first_child[below])
            counts_for += model.weight[below]
        sums[model.attribute[node]] += counts_for * model.gain[node]
    expected = np.maximum(sums, 0) / np.maximum(sums, 0).sum()
    np.testing.assert_allclose(model.importances, expected, rtol=0, atol=1e-12)
    assert (expected > 0).sum() > 1


def test_trees_are_of_two_kinds_and_as_many_as_asked_for():
    X, y, scores = make_rows(200)
    for number in (2, 3, 8):
        model = few(n_estimators=number).fit(X, y, scores).model_
        assert model.n_trees == number
    kinds = np.repeat(np.arange(8) % 2, np.diff([*model.roots, len(model.attribute)]))
    assert model.attribute[kinds == 0].max() < 3
    assert 3 <= model.attribute[kinds == 1].max() < 3 + model.n_scores


def test_parameters_are_obeyed():
    X, y, scores = make_rows(400, round_to=1)

    def model(**params):
        return few(**params).fit(X, y, scores).model_

    assert (model(max_depth=0).attribute == -1).all()
    stumps = model(max_depth=1)
    assert len(stumps.attribute) == 3 * stumps.n_trees
    for least in (1, 25, 61):
        forest = model(min_samples_leaf=least)
        children = np.setdiff1d(np.arange(len(forest.attribute)), forest.roots)
        assert forest.n_rows[children].min() >= least
    coarse, fine = model(max_bins=2), model(max_bins=255)
    thresholds = [
        {(a, t) for a, t in zip(forest.attribute, forest.threshold, strict=True) if a >= 0}
        for forest in (coarse, fine)
    ]
    # One per column, of attributes or scores.
    assert len(thresholds[0]) <= 3 + coarse.n_scores < len(thresholds[1])
    held = [
        # At the temperature there is neither an intercept nor a bend.
        np.abs(model(l2_regularization=penalty, max_depth=0).parameters[:, :, [0, 2]]).max()
        for penalty in (0.01, 10.0, 1e4, 1e8)
    ]
    assert held == sorted(held, reverse=True) and held[-1] < 1e-4 * held[0]


def test_max_features():
    X, y, scores = make_rows(300)

    def forest(max_features):
        return few(max_features=max_features).fit(X, y, scores)

    # Three attributes and two scores are five columns at most.
    assert same_forest(forest(1.0), forest(5)) and same_forest(forest(1.0), forest(1000))
    assert not same_forest(forest(1.0), forest(1))
    assert same_forest(forest(0.2), forest(1))
    # With one attribute to choose from, the third cannot be avoided.
    at_the_root = [f.model_.attribute[f.model_.roots] for f in (forest(1.0), forest(1))]
    assert 2 not in at_the_root[0] and 2 in at_the_root[1]


@pytest.mark.parametrize(
    ("max_features", "n_columns", "expected"),
    [
        (1.0, 7, 7),
        (0.5, 7, 4),
        (0.01, 7, 1),
        (1, 7, 1),
        (9, 7, 7),
        (np.int64(3), 7, 3),
        (np.float32(1), 7, 7),
    ],
)
def test_numbers_of_attributes_to_choose_from(max_features, n_columns, expected):
    assert count_columns(max_features, n_columns) == expected


# Chance and threads


def test_threads_change_nothing():
    frame, y, scores = make_frame()
    expected = few().fit(frame, y, scores)
    probabilities = expected.predict_proba(frame, scores)
    for n_jobs in (1, 2, 4, -1):
        forest = few(n_jobs=n_jobs).fit(frame, y, scores)
        assert same_forest(forest, expected)
        assert np.array_equal(forest.predict_proba(frame, scores), probabilities)


@pytest.mark.parametrize("backend", ["threading", "loky", "sequential"])
def test_any_joblib_backend_will_do(backend):
    X, y, scores = make_rows(150)
    expected = few().fit(X, y, scores)
    with joblib.parallel_config(backend, n_jobs=2):
        forest = few().fit(X, y, scores)
        assert same_forest(forest, expected)
        assert np.array_equal(forest.predict_proba(X, scores), expected.predict_proba(X, scores))


def test_forests_can_be_fitted_and_asked_in_threads():
    X, y, scores = make_rows(150)
    expected = few().fit(X, y, scores)

    def work(_):
        return fitted(few().fit(X, y, scores)), expected.predict_proba(X, scores).tolist()

    answers = joblib.Parallel(n_jobs=4, prefer="threads")(map(joblib.delayed(work), range(6)))
    assert all(answer == (fitted(expected), answers[0][1]) for answer in answers)


def test_rows_in_several_jobs_are_predicted_alike(monkeypatch):
    X, y, scores = make_rows(300)
    forest = few(n_jobs=2).fit(X, y, scores)
    expected = forest.predict_proba(X, scores)
    monkeypatch.setattr("caltree._model_base._VISITS_A_JOB", 7 * forest.model_.n_trees)
    assert np.array_equal(forest.predict_proba(X, scores), expected)


@pytest.mark.parametrize(("n_columns", "n_rows"), [(1, 40_000), (1_000, 700)])
def test_many_rows_are_predicted_as_few_are(n_columns, n_rows):
    """Rows go down the trees in chunks; narrow tables have long ones, wide tables short ones."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n_rows, n_columns))
    X[::7, 0] = np.nan
    scores = random.uniform(0.05, 0.95, n_rows)
    y = random.random(n_rows) < np.where(X[:, 0] > 0, scores / 2, scores)
    forest = CalibrationForest(3, random_state=0, do_no_harm=False)
    forest.fit(X[:600], y[:600], scores[:600])
    whole = forest.predict_proba(X, scores)
    parts = [slice(begin, begin + 100) for begin in range(0, n_rows, 100)]
    pieces = [forest.predict_proba(X[part], scores[part]) for part in parts]
    np.testing.assert_array_equal(whole, np.concatenate(pieces))


def test_random_state_decides():
    X, y, scores = make_rows(200)

    def forest(random_state):
        return few(random_state=random_state).fit(X, y, scores)

    assert same_forest(forest(3), forest(3))
    assert same_forest(forest(3), forest(np.random.RandomState(3)))
    assert same_forest(forest(np.int64(3)), forest(3))
    assert not same_forest(forest(3), forest(4))
    generator = np.random.RandomState(0)
    assert not same_forest(forest(generator), forest(generator))
    np.random.seed(7)  # noqa: NPY002  # None means this generator
    first = forest(None)
    np.random.seed(7)  # noqa: NPY002  # None means this generator
    assert same_forest(forest(None), first)
    assert not same_forest(forest(None), first)


# Weights


def test_rows_of_weight_0_have_no_influence():
    frame, y, scores = make_frame(250)
    rng = np.random.default_rng(0)
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], len(y))
    absent = weight == 0
    expected = few().fit(frame, y, scores, sample_weight=weight)
    order = np.arange(len(y))
    order[absent] = rng.permutation(order[absent])
    other = frame.iloc[order].reset_index(drop=True)
    assert not other.equals(frame)
    labels = np.where(absent, 1 - y, y)
    moved = scores.copy()
    moved[absent] = [0.9, 0.1]
    assert same_forest(few().fit(other, labels, moved, sample_weight=weight), expected)
    without = few().fit(frame[~absent], y[~absent], scores[~absent], sample_weight=weight[~absent])
    assert same_forest(without, expected)


def test_weights_of_1_are_no_weights():
    X, y, scores = make_rows(200)
    assert same_forest(few().fit(X, y, scores, np.ones(len(y))), few().fit(X, y, scores))


@pytest.mark.filterwarnings("ignore:the scores rank:UserWarning")
def test_heavy_rows_count_for_more():
    X, y, scores = make_rows(600)
    # Where the weight is, the scores say the opposite of the truth.
    weight = np.where(X[:, 0] > 0.3, 0.01, 10.0)
    heavy = few(max_depth=0).fit(X, y, scores, weight).predict_proba(X, scores)
    light = few(max_depth=0).fit(X, y, scores, 1 / weight).predict_proba(X, scores)
    region = X[:, 0] <= 0.3
    assert squared_error(heavy[region], y[region]) < 0.8 * squared_error(light[region], y[region])
    assert squared_error(light[~region], y[~region]) < squared_error(heavy[~region], y[~region])
