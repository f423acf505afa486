"""Global calibrators against the definitions, scikit-learn and numbers worked out by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit, softmax
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from caltree import (
    BetaScaling,
    IdentityCalibrator,
    IsotonicScaling,
    PlattScaling,
    TemperatureScaling,
)

from .support.trees import assert_probabilities, make_rows

NAN, INFINITY = float("nan"), float("inf")
EXTREMES = np.array([0.0, 1e-300, 1e-16, 1e-9, 0.5, 1 - 1e-9, 1 - 1e-16, 1.0])


def make_scores(n_rows=400, seed=0, shift=1.0):
    """Logits that are too steep and off by a constant, and labels."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(scale=2.0, size=n_rows)
    return rng.random(n_rows) < expit(0.5 * scores + shift), scores


def platt(y, scores, weights=None, **params):
    return PlattScaling(score_type="margin", **params).fit(None, y, scores, weights)


def platts_targets(y, weights):
    n_positive, n_negative = weights[y].sum(), weights[~y].sum()
    return np.where(y, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))


def assert_most_likely(model, y, scores, weights=None, tolerance=1e-12):
    """The gradient of Platt's likelihood is zero, in the unit of the scores' spread."""
    weights = np.ones(len(y)) if weights is None else weights
    linear = scores * model.slopes_[0] + model.intercepts_[0]
    residual = weights / weights.sum() * (expit(linear) - platts_targets(y, weights))
    centred = (scores - scores.mean()) / np.abs(scores - scores.mean()).mean()
    assert abs(residual.sum()) < tolerance
    assert abs(residual @ centred) < tolerance


# Platt scaling: what is fitted


def test_two_rows_of_each_kind_by_hand():
    # Two scores, so the sigmoid goes through the mean target of each. Three rows are positive,
    # two negative: the targets are 4/5 and 1/4.
    model = platt([0, 1, 1, 0, 1], [-1.0, -1.0, 1.0, -1.0, 1.0])
    low, high = (0.25 + 0.8 + 0.25) / 3, 0.8
    probabilities = model.predict_proba(None, [-1.0, 1.0])
    np.testing.assert_allclose(probabilities, [[1 - low, low], [1 - high, high]], rtol=1e-13)
    assert model.slopes_ == pytest.approx([(logit(high) - logit(low)) / 2], rel=1e-13)
    assert model.intercepts_ == pytest.approx([(logit(high) + logit(low)) / 2], rel=1e-13)


def test_a_first_step_that_goes_much_too_far_is_made_up_for():
    # Two scores again: the sigmoid goes through both targets.
    answers = platt([0, 1], [0.0, 1.0], [1e11, 1e6]).predict_proba(None, [0.0, 1.0])
    expected = [1 / (1e11 + 2), 1 / (1e6 + 2)]
    np.testing.assert_allclose([answers[0, 1], answers[1, 0]], expected, rtol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_sigmoid_is_that_of_a_logistic_regression_on_platts_targets(weighted):
    y, scores = make_scores()
    weights = np.random.default_rng(1).uniform(0.2, 5.0, len(y)) if weighted else np.ones(len(y))
    target = platts_targets(y, weights)
    # Every row twice: as positive with the weight of its target, as negative with the rest.
    reference = LogisticRegression(C=np.inf, tol=1e-12, solver="newton-cholesky").fit(
        np.tile(scores, 2)[:, np.newaxis],
        np.repeat([1, 0], len(y)),
        sample_weight=np.concatenate([weights * target, weights * (1 - target)]),
    )
    model = platt(y, scores, weights if weighted else None)
    np.testing.assert_allclose(model.slopes_, reference.coef_[0], rtol=1e-7)
    np.testing.assert_allclose(model.intercepts_, reference.intercept_, rtol=1e-7)
    assert_most_likely(model, y, scores, weights)


HARD = {
    "separable": lambda y, s: (s > 0.1, s),
    "separable the wrong way": lambda y, s: (s < 0.1, s),
    "one positive row": lambda y, s: (s == s.max(), s),
    "few scores": lambda y, s: (y, np.round(s / 4)),
    "large unit": lambda y, s: (y, 1e90 * s),
    "small unit": lambda y, s: (y, 1e-90 * s),
    "heavy tails": lambda y, s: (y, np.sinh(3 * s)),
    "outlier of its class": lambda y, s: (np.r_[y, True], np.r_[s, 1e4]),
    "outlier of the other class": lambda y, s: (np.r_[y, False], np.r_[s, 1e4]),
    "far outlier": lambda y, s: (np.r_[y, True], np.r_[s, 1e9]),
    # Ten rows far away, at a score where Newton's method overshoots again and again.
    "indicator": lambda y, s: (np.r_[y & (s > 3), [True] * 10], np.r_[0 * s, np.ones(10)]),
}


@pytest.mark.filterwarnings("ignore:the scores rank:UserWarning")
@pytest.mark.parametrize("case", HARD)
def test_the_most_likely_sigmoid_is_found_where_that_is_hard(case):
    y, scores = HARD[case](*make_scores())
    model = platt(y, scores)
    assert_most_likely(model, y, scores)
    assert_probabilities(model.predict_proba(None, scores))


def test_an_outlier_among_many_rows_does_not_stop_the_fit():
    y, scores = make_scores(30_000)
    without = platt(y, scores)
    y[0], scores[0] = True, 3e5
    model = platt(y, scores)
    assert_most_likely(model, y, scores, tolerance=1e-11)
    np.testing.assert_allclose(model.slopes_, without.slopes_, rtol=0.05)


@pytest.mark.filterwarnings("ignore:the scores rank:UserWarning")
@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.integers(-30, 30), st.floats(0.01, 50)), min_size=2),
    st.sampled_from([1e-30, 1.0, 1e30]),
)
def test_the_most_likely_sigmoid_is_found(rows, unit):
    y, scores, weights = (np.array(column) for column in zip(*rows, strict=True))
    y[:2], weights[:2], scores = [False, True], 5.0, scores * unit
    model = platt(y, scores, weights)
    if np.ptp(scores) > 0:
        assert_most_likely(model, y, scores, weights)
    assert_probabilities(model.predict_proba(None, scores))


@pytest.mark.parametrize("value", [0.0, -3.5, 1e300, 1e-300])
def test_scores_that_never_vary_answer_the_mean_target(value):
    y = np.array([True] * 6 + [False] * 3)
    model = platt(y, np.full(9, value))
    expected = (6 * 7 / 8 + 3 * 1 / 5) / 9
    np.testing.assert_allclose(model.predict_proba(None, [value, 0.0])[:, 1], expected, rtol=1e-14)
    assert model.slopes_.tolist() == [0.0]


@pytest.mark.filterwarnings("ignore:the scores rank:UserWarning")
@pytest.mark.parametrize("scores", [(3e5 * (1 + 2**-52), 3e5), (0.0, 1e-250), (0.0, 5e-324)])
def test_scores_that_vary_by_next_to_nothing_never_vary(scores):
    assert platt([False] * 10 + [True] * 10, np.repeat(scores, 10)).slopes_.tolist() == [0.0]


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e9])
def test_an_offset_of_the_scores_changes_nothing(offset):
    y, scores = make_scores()
    scores = np.round(scores * 64) / 64
    shifted = platt(y, scores + offset).predict_proba(None, scores + offset)
    expected = platt(y, scores).predict_proba(None, scores)
    # The intercept has to make up for the offset, and has as many digits as any number.
    np.testing.assert_allclose(shifted, expected, rtol=0, atol=1e-15 * offset)


@pytest.mark.parametrize(
    "weights", [(1, 1e14), (1e14, 1), (1e-300, 1e14), (1e14, 1e14), (1e-9, 1)], ids=str
)
def test_weights_of_every_size_give_probabilities(weights):
    scores = np.repeat([-1.0, 1.0, 0.0], [10, 10, 20])
    y = np.tile([False, True], 20)
    model = platt(y, scores, np.where(y, *weights[::-1]))
    assert_probabilities(model.predict_proba(None, [-1e300, -1.0, 0.0, 1.0, 1e300]))
    only_one_varies = platt([0, 1, 0, 1], [1e5, 0, 0, 0], [1e-300, 1e14, 1e14, 1e14])
    assert_probabilities(only_one_varies.predict_proba(None, [0.0, 1e5]))


# Platt scaling: what comes out


def test_log_odds_of_probabilities_are_what_enters():
    y, scores = make_scores()
    model = PlattScaling().fit(None, y, expit(scores))
    assert model.score_type_ == "probability"
    np.testing.assert_allclose(model.slopes_, platt(y, scores).slopes_, rtol=1e-9)


def test_clipped_probabilities_stay_in_order():
    y, scores = make_scores()
    clip = PlattScaling().fit(None, y, expit(scores))
    answers = clip.predict_proba(None, EXTREMES)[:, 1]
    # 1e-16 is below 2 ** -53, and the next to 1 is as far away from it.
    assert answers[0] == answers[1] == answers[2] < answers[3] < answers[4]
    assert answers[4] < answers[5] < answers[6] == answers[7]


@pytest.mark.parametrize("n_classes", [3, 10])
def test_more_classes_have_a_sigmoid_each_divided_by_their_sum(n_classes):
    _, y, scores = make_rows(600, n_classes)
    model = PlattScaling().fit(None, y, scores)
    columns = [
        PlattScaling().fit(None, y == k, scores[:, k]).predict_proba(None, scores[:, k])[:, 1]
        for k in range(n_classes)
    ]
    expected = np.column_stack(columns) / np.sum(columns, axis=0)[:, np.newaxis]
    np.testing.assert_allclose(model.predict_proba(None, scores), expected, rtol=1e-12)


def test_far_from_all_rows_the_least_unlikely_class_is_still_told():
    _, y, scores = make_rows(300, 3)
    model = PlattScaling(score_type="logit").fit(None, y, np.log(scores))
    model.slopes_ = np.ones(3)
    far = model.predict_proba(None, [[-1e6, -1e5, -1e6], [-1e90, -1e90, -1e89]])
    assert far.tolist() == [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


# Isotonic regression


def isotonic(y, scores, weights=None):
    return IsotonicScaling(score_type="margin").fit(None, y, scores, weights)


def test_pair_adjacent_violators_by_hand():
    # Sorted, ties together: 1 -> 0, 2 -> (1 + 0) / 2, 3 -> 0, 4 -> 1, 5 -> 1; 2 and 3 violate
    # and become (1 + 0 + 0) / 3.
    model = isotonic([1, 0, 0, 1, 1, 0], [4.0, 1.0, 3.0, 2.0, 5.0, 2.0])
    asked = [-9.0, 1.0, 1.5, 2.0, 2.7, 3.0, 3.25, 4.0, 5.0, 99.0]
    third = 1 / 3
    expected = [0, 0, third / 2, third, third, third, third + 0.25 * (1 - third), 1, 1, 1]
    probabilities = model.predict_proba(None, asked)
    np.testing.assert_allclose(probabilities[:, 1], expected, rtol=1e-14)
    np.testing.assert_allclose(probabilities[:, 0], 1 - np.array(expected), atol=1e-15)


def test_weighted_violators_by_hand():
    model = isotonic([0, 1, 0, 1], [1.0, 2.0, 3.0, 4.0], [2.0, 1.0, 3.0, 5.0])
    assert model.predict_proba(None, [2.5]).tolist() == [[0.75, 0.25]]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("decimals", [1, 12], ids=["ties", "no ties"])
def test_isotonic_regression_is_that_of_scikit_learn(weighted, decimals):
    y, scores = make_scores(1000)
    scores = np.round(scores, decimals)
    weights = np.random.default_rng(1).uniform(0.2, 5.0, len(y)) if weighted else None
    reference = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(scores, y, weights)
    asked = np.r_[scores, np.linspace(-20, 20, 5001)]
    answers = isotonic(y, scores, weights).predict_proba(None, asked)
    np.testing.assert_allclose(answers[:, 1], reference.predict(asked), rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_classes", [3, 10])
def test_isotonic_regression_of_more_classes_is_one_against_the_rest(n_classes):
    _, y, scores = make_rows(600, n_classes)
    columns = [
        IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
        .fit(scores[:, k], y == k)
        .predict(scores[:, k])
        for k in range(n_classes)
    ]
    expected = np.column_stack(columns) / np.sum(columns, axis=0)[:, np.newaxis]
    answers = isotonic(y, scores).predict_proba(None, scores)
    np.testing.assert_allclose(answers, expected, rtol=0, atol=1e-12)


def test_a_row_whose_values_are_all_zero_gets_equal_probabilities():
    # Every function goes from 0 at 0 to 1 at 2.
    model = isotonic([0, 1, 2], 2.0 * np.eye(3))
    answers = model.predict_proba(None, [[0.0, 0.0, 0.0], [2.0, 0.0, 0.0], [2.0, 2.0, 0.0]])
    third = 1 / 3
    assert answers.tolist() == [[third, third, third], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]


@pytest.mark.parametrize("scale", [1e-200, 1e-20, 1e90])
def test_only_the_order_of_the_scores_matters_to_isotonic_regression(scale):
    y, scores = make_scores()
    answers = isotonic(y, scores * scale).predict_proba(None, scores * scale)
    expected = isotonic(y, scores).predict_proba(None, scores)
    np.testing.assert_allclose(answers, expected, rtol=0, atol=1e-12)


def test_isotonic_regression_tells_tiny_probabilities_apart():
    scores = np.repeat([0.0, 1e-250, 1e-18, 1e-17, 0.5], 4)
    y = np.array([0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1])
    answers = isotonic(y, scores).predict_proba(None, scores[::4])[:, 1]
    np.testing.assert_allclose(answers, [0, 0.25, 0.5, 0.75, 1], rtol=1e-14)


def test_scores_too_close_for_a_slope_between_them_are_one():
    model = isotonic([0, 1, 0, 1], [-1e-310, 1e-310, 1e-320, 1.0])
    assert model.thresholds_[0].tolist() == [0.0, 1.0]
    assert_probabilities(model.predict_proba(None, [-1.0, 0.0, 5e-311, 1e-290, 0.5]))


# No calibration


def test_probabilities_of_one_classifier_are_given_back_to_the_bit():
    _, y, scores = make_rows(200, 3)
    identity = IdentityCalibrator().fit(None, y, scores)
    answers = identity.predict_proba(None, scores)
    assert np.array_equal(answers, scores) and not np.shares_memory(answers, scores)


def test_one_column_is_the_second_class_to_the_bit():
    scores = np.array([0.0, 1e-300, 0.1, 0.7, 1.0])
    answers = IdentityCalibrator().fit(None, [0, 1, 0, 1, 1], scores).predict_proba(None, scores)
    assert answers[:, 1].tolist() == scores.tolist()
    assert answers[:, 0].tolist() == [1.0, 1.0, 0.9, 1 - 0.7, 0.0]


def test_probabilities_that_do_not_sum_to_one_are_divided_by_their_sum():
    scores = [[0.2, 0.2, 0.4], [0.2, 0.3, 0.5], [0.0, 0.0, 0.0]]
    identity = IdentityCalibrator(score_type="probability").fit(None, [0, 1, 2], scores)
    expected = [[0.25, 0.25, 0.5], [0.2, 0.3, 0.5], [1 / 3, 1 / 3, 1 / 3]]
    np.testing.assert_allclose(identity.predict_proba(None, scores), expected, rtol=1e-15)
    assert identity.predict_proba(None, scores)[1].tolist() == scores[1]


def test_logits_go_through_the_softmax():
    logits = np.array([[1.0, -2.0, 0.5], [30.0, 0.0, -30.0], [1e300, -1e300, 0.0]])
    identity = IdentityCalibrator(score_type="logit").fit(None, [0, 1, 2], logits)
    np.testing.assert_allclose(
        identity.predict_proba(None, logits)[:2], softmax(logits[:2], axis=1), rtol=1e-14
    )
    assert identity.predict_proba(None, logits)[2].tolist() == [1.0, 0.0, 0.0]


def test_one_column_of_logits_goes_through_the_logistic_function():
    logits = np.array([-800.0, -1.5, 0.0, 2.0, 800.0])
    identity = IdentityCalibrator().fit(None, [0, 0, 1, 1, 1], logits)
    expected = np.column_stack([expit(-logits), expit(logits)])
    assert np.array_equal(identity.predict_proba(None, logits), expected)


@pytest.mark.parametrize("score_type", ["probability", "logit"])
def test_several_classifiers_are_averaged(score_type):
    _, y, first = make_rows(100, 3, seed=1)
    second = make_rows(100, 3, seed=2)[2]
    if score_type == "logit":
        first, second = 5 * first - 2, 3 * second
    both, mean = np.hstack([first, second]), (first + second) / 2
    scalings = PlattScaling(), TemperatureScaling(), BetaScaling(), IsotonicScaling()
    for model in (IdentityCalibrator(), *scalings):
        expected = model.fit(None, y, mean).predict_proba(None, mean)
        answers = model.fit(None, y, both).predict_proba(None, both)
        np.testing.assert_allclose(answers, expected, rtol=0, atol=1e-12)


# Stored calibrators that are not what they should be

STORED = {
    cls: cls().fit(None, [0, 0, 1, 1], [0.1, 0.2, 0.3, 0.9]).to_dict()
    for cls in (
        PlattScaling,
        TemperatureScaling,
        BetaScaling,
        IsotonicScaling,
        IdentityCalibrator,
    )
}
assert STORED[IsotonicScaling]["thresholds"] == [[0.1, 0.2, 0.3, 0.9]]  # four others replace them
GONE = object()
BAD_STATES = [
    *[(cls, key, GONE) for cls, stored in STORED.items() for key in stored],
    *[
        (cls, key, None)
        for cls, stored in STORED.items()
        for key in stored
        if key not in ("fingerprint", "score_limits", "score_names", "spread")
    ],
    *[(cls, "spread", bad) for cls in STORED for bad in (1, [], {}, {"deviations": [1.0]})],
    *[(cls, "pos_label", bad) for cls in STORED for bad in (2, "1", [1], {})],
    *[(cls, "score_names", bad) for cls in STORED for bad in ("p", [], ["p", "q"], [1], {})],
    *[
        (cls, "score_limits", bad)
        for cls in STORED
        for bad in (0.5, [], [0.1], [0.1, 0.5, 0.9], [0.0, 0.5], [0.5, 1.0], [0.6, 0.4], ["0", 1])
    ],
    *[(cls, "extra", 1) for cls in STORED],
    *[(cls, "n_scores", bad) for cls in STORED for bad in (0, -2, 3, 1.0, True, "1", [1], NAN)],
    *[(cls, "score_type", bad) for cls in STORED for bad in ("auto", "", 1, ["logit"])],
    *[(cls, "classes", bad) for cls in STORED for bad in ([1, 0], [0], [0, "1"], {"0": 1})],
    *[(cls, "params", bad) for cls in STORED for bad in ({"C": 1}, [], {"score_type": {}})],
    *[
        (PlattScaling, key, bad)
        for key in ("slopes", "intercepts")
        for bad in (1.0, [], [NAN], [INFINITY], [-1e201], ["1"], [True], [1.0, 2.0], [[1.0]], {})
    ],
    *[
        (TemperatureScaling, "slope", bad)
        for bad in ("1", [1.0], {}, True, NAN, INFINITY, 1e201, -1e201, 10**400)
    ],
    *[
        (BetaScaling, "intercepts", bad)
        for bad in (1.0, [], [NAN], [1e201], ["1"], [True], [1.0, 2.0], [[1.0]], {})
    ],
    *[
        (BetaScaling, "slopes", [bad])
        for bad in (1.0, [], [1.0], [1.0] * 3, [NAN, 1.0], [1.0, -1e201], ["1", 1.0], [[1.0, 1.0]])
    ],
    *[(BetaScaling, "slopes", bad) for bad in (1.0, [], [[1.0, 1.0]] * 2, {})],
    *[
        (IsotonicScaling, key, bad)
        for key in ("thresholds", "values")
        for bad in (0.5, {}, [], [None], [0.1, 0.9], [[]], [[0.5]], [[[0.1, 0.9]]], [["1"] * 4])
    ],
    *[
        (IsotonicScaling, key, [[*three, 0.9]])
        for key in ("thresholds", "values")
        for three in ([0.1, 0.2, NAN], [-INFINITY, 0.1, 0.2], [0.3, 0.2, 0.1], [0.1, 0.2, 1e201])
    ],
    (IsotonicScaling, "thresholds", [[0.1, 0.2, 0.2, 0.9]]),
    (IsotonicScaling, "thresholds", [[0.0, 1e-310, 0.2, 0.9]]),
    (IsotonicScaling, "thresholds", [[0.0, 0.1, 0.2, 1e308]]),
    (IsotonicScaling, "values", [[-0.1, 0.2, 0.2, 0.9]]),
    (IsotonicScaling, "values", [[0.1, 0.2, 0.2, 1.1]]),
]


@pytest.mark.parametrize(
    ("cls", "key", "value"),
    BAD_STATES,
    ids=lambda part: "gone" if part is GONE else getattr(part, "__name__", str(part)),
)
def test_malformed_calibrators_are_refused(cls, key, value):
    stored = {**STORED[cls], key: value}
    if value is GONE:
        del stored[key]
    with pytest.raises(ValueError, match="stored") as caught:
        cls.from_dict(stored)
    assert len(str(caught.value)) < 400
