"""Metrics by hand, against plain loops and scikit-learn, and what they refuse."""

import math
import subprocess
import sys

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss

from caltree.metrics import brier_score, brier_split, expected_calibration_error, log_loss, rmse

quick = settings(max_examples=100, deadline=None, derandomize=True)
every = [rmse, brier_score, brier_split, log_loss, expected_calibration_error]
each_metric = pytest.mark.parametrize("metric", every, ids=lambda metric: metric.__name__)


def some_rows(n, n_classes, seed):
    random = np.random.default_rng(seed)
    y, p = random.integers(0, n_classes, n), random.dirichlet(np.ones(n_classes), n)
    y[:n_classes] = np.arange(n_classes)
    return random, y, p


def test_two_classes_by_hand():
    # The errors are 0.1, 0.1, 0.3 and 0.3: sqrt((0.01 + 0.01 + 0.09 + 0.09) / 4).
    assert rmse([0, 1], [[0.9, 0.1], [0.3, 0.7]]) == pytest.approx(math.sqrt(0.05), rel=1e-15)


def test_three_classes_by_hand():
    # (0.25 + 0.25 + 0) + (0.04 + 0.16 + 0.36), over 2 rows and 3 classes.
    y_prob = [[0.5, 0.5, 0.0], [0.2, 0.4, 0.4]]
    assert rmse(["a", "c"], y_prob, labels=["a", "b", "c"]) == pytest.approx(math.sqrt(1.06 / 6))


@pytest.mark.parametrize(("y_prob", "expected"), [([0, 1], 0.0), ([1, 0], 1.0), ([0.5, 0.5], 0.5)])
def test_the_ends_of_the_scale(y_prob, expected):
    assert rmse(["no", "yes"], y_prob) == expected


@pytest.mark.parametrize("shape", [(50,), (50, 1)])
def test_one_column_is_that_of_the_second_class(shape):
    random = np.random.default_rng(0)
    y, p = random.integers(0, 2, 50), random.random(50)
    assert rmse(y, p.reshape(shape)) == pytest.approx(rmse(y, np.column_stack([1 - p, p])))
    assert rmse(y, p) == pytest.approx(math.sqrt(brier_score_loss(y, p)))


@each_metric
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_weight_is_a_number_of_rows(metric, n_classes):
    random, y, p = some_rows(40, n_classes, 1)
    weights = random.integers(0, 4, 40)
    weights[:n_classes] = 1
    repeated = metric(np.repeat(y, weights), np.repeat(p, weights, axis=0))
    assert metric(y, p, sample_weight=weights) == pytest.approx(repeated, rel=1e-12)
    assert metric(y, p, sample_weight=weights / 7) == pytest.approx(repeated, rel=1e-12)
    assert metric(y, p) != pytest.approx(repeated, rel=1e-6)


@each_metric
def test_the_order_of_the_rows_is_nothing(metric):
    random, y, p = some_rows(60, 3, 2)
    p, order = p.round(1), random.permutation(60)
    p[:, 2] = 1 - p[:, 0] - p[:, 1]
    p = np.clip(p, 0, 1)
    assert metric(y[order], p[order]) == pytest.approx(metric(y, p), rel=1e-12)


@each_metric
def test_labels_say_what_the_columns_are(metric):
    y, p = ["b", "a", "b", "c"], np.random.default_rng(0).dirichlet(np.ones(3), 4)
    turned = metric(y, p[:, [1, 2, 0]], labels=["b", "c", "a"])
    assert turned == pytest.approx(metric(y, p), rel=1e-12)
    assert turned != pytest.approx(metric(y, p[:, [1, 2, 0]]), rel=1e-3)


@each_metric
def test_a_class_may_be_absent_from_the_rows(metric):
    with_it = metric([1, 1], [[0.0, 1.0], [0.5, 0.5]], labels=[0, 1])
    assert with_it == metric(["1", "1"], [1.0, 0.5], labels=["0", "1"])


def test_an_absent_class_by_hand():
    assert rmse([1, 1], [[0.0, 1.0], [0.5, 0.5]], labels=[0, 1]) == pytest.approx(math.sqrt(0.125))


@each_metric
def test_float32_and_tables_are_welcome(metric):
    pandas = pytest.importorskip("pandas")
    p = np.random.default_rng(0).dirichlet(np.ones(3), 30)
    y = np.array(["a", "b", "c"] * 10)
    table = pandas.DataFrame(p, columns=["a", "b", "c"])
    assert metric(pandas.Series(y), table) == metric(y, p)
    # In float32 the rows sum to one to 7 digits only.
    assert metric(y, p.astype(np.float32)) == pytest.approx(metric(y, p), rel=1e-5)


@each_metric
def test_the_probabilities_are_left_alone(metric):
    p = np.array([[0.1, 0.9], [0.7, 0.3]])
    metric([1, 0], p)
    assert p.tolist() == [[0.1, 0.9], [0.7, 0.3]]


class TestBrierScore:
    @pytest.mark.parametrize("n_classes", [2, 3, 5])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_of_scikit_learn_and_the_square_of_rmse(self, n_classes, weighted):
        random, y, p = some_rows(50, n_classes, 3)
        weights = random.random(50) if weighted else None
        score = brier_score(y, p, sample_weight=weights)
        assert score == pytest.approx(brier_score_loss(y, p, sample_weight=weights), rel=1e-12)
        factor = 1 if n_classes == 2 else n_classes
        assert score == pytest.approx(factor * rmse(y, p, sample_weight=weights) ** 2, rel=1e-12)

    def test_the_ends_of_the_scale(self):
        assert brier_score([0, 1], [0.0, 1.0]) == 0.0
        assert brier_score([0, 1], [1.0, 0.0]) == 1.0
        assert brier_score([0, 1, 2], np.eye(3)) == 0.0
        assert brier_score([0, 1, 2], np.eye(3)[[1, 2, 0]]) == 2.0


def isotonic(truth, probability, weights):
    """The best increasing fit, as the largest of the smallest means: no pooling, no merging."""
    values = np.unique(probability)
    weight = np.array([weights[probability == v].sum() for v in values])
    events = np.array([(weights * truth)[probability == v].sum() for v in values])
    n = len(values)

    def mean(a, b):
        return events[a : b + 1].sum() / weight[a : b + 1].sum()

    fit = [max(min(mean(a, b) for b in range(i, n)) for a in range(i + 1)) for i in range(n)]
    return np.array(fit)[np.searchsorted(values, probability)]


class TestBrierSplit:
    def test_by_hand(self):
        # 0.2, 0.4, 0.6 and 0.8 with truth 0, 1, 0, 1 become 0, 0.5, 0.5 and 1.
        split = brier_split([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8])
        assert split.score == pytest.approx((0.04 + 0.36 + 0.36 + 0.04) / 4, rel=1e-12)
        assert split.refinement == pytest.approx((0.25 + 0.25) / 4, rel=1e-12)
        assert split.calibration == pytest.approx(0.2 - 0.125, rel=1e-12)

    def test_calibrated_probabilities_have_refinement_only(self):
        split = brier_split([0, 0, 0, 1, 0, 1, 1, 1], [0.25] * 4 + [0.75] * 4)
        assert split == pytest.approx((0.1875, 0.0, 0.1875), abs=1e-15)

    def test_perfectly_ranked_probabilities_have_calibration_only(self):
        split = brier_split([0, 0, 1, 1], [0.1, 0.2, 0.3, 0.4])
        assert split == pytest.approx((0.225, 0.225, 0.0), abs=1e-15)

    @quick
    @given(
        table=st.lists(
            st.tuples(st.integers(0, 2), st.integers(0, 5), st.integers(0, 5), st.integers(0, 3)),
            min_size=2,
            max_size=25,
        ).filter(lambda table: any(row[3] for row in table)),
        n_classes=st.sampled_from([2, 3]),
    )
    def test_of_a_plain_isotonic_fit_of_each_class(self, table, n_classes):
        y, first, second, weights = np.array(table).T
        y = np.minimum(y, n_classes - 1)
        p = np.column_stack([first, second, 10 - first - second]) / 10
        p = p if n_classes == 3 else np.column_stack([p[:, 0], 1 - p[:, 0]])
        split = brier_split(y, p, sample_weight=weights, labels=range(n_classes))
        present = weights > 0
        y, p, weights = y[present], p[present], weights[present]
        expected = sum(
            np.average((isotonic(y == k, p[:, k], weights) - (y == k)) ** 2, weights=weights)
            for k in range(n_classes)
        ) / (2 if n_classes == 2 else 1)
        score = brier_score(y, p, sample_weight=weights, labels=range(n_classes))
        assert split.score == pytest.approx(score, rel=1e-12)
        assert split.refinement == pytest.approx(expected, abs=1e-12)
        assert split.calibration + split.refinement == pytest.approx(split.score, rel=1e-15)
        assert min(split) >= 0.0

    def test_probabilities_next_to_zero_are_still_different(self):
        # scikit-learn alone takes the first three for one value.
        split = brier_split([0, 0, 1, 1], np.array([1e-20, 2e-16, 8e-16, 1.0]))
        assert split.refinement == pytest.approx(0.0, abs=1e-15)

    def test_rounding_makes_no_part_negative(self):
        # The mean of 1, 0 and 0 is not 1/3 in all digits, and no better.
        assert brier_split([1, 0, 0], [1 / 3, 1 / 3, 1 / 3]).calibration == 0.0


class TestLogLoss:
    def test_by_hand(self):
        loss = log_loss(["c", "a"], [[0.5, 0.25, 0.25], [0.5, 0.5, 0.0]], labels=["a", "b", "c"])
        assert loss == pytest.approx(1.5 * math.log(2), rel=1e-12)

    @pytest.mark.parametrize("n_classes", [2, 4])
    def test_of_scikit_learn(self, n_classes):
        random, y, p = some_rows(50, n_classes, 4)
        weights = random.random(50)
        expected = sklearn.metrics.log_loss(y, p, sample_weight=weights)
        assert log_loss(y, p, sample_weight=weights) == pytest.approx(expected, rel=1e-12)

    def test_zero_counts_as_the_precision_of_a_float(self):
        assert log_loss([0, 1], [1.0, 0.0]) == pytest.approx(-math.log(np.finfo(float).eps))
        assert log_loss([0, 1], [1.0, 1e-30]) == pytest.approx(36.04, abs=0.005)

    def test_rows_are_divided_by_their_sums(self):
        assert log_loss([0, 1], [[0.4996, 0.4996]] * 2) == pytest.approx(math.log(2), rel=1e-12)


def plain_error(truth, probability, n_bins):
    """The expected calibration error over bins of equal width, as everyone writes it."""
    error = 0.0
    for i in range(n_bins):
        inside = [
            row
            for row, p in enumerate(probability)
            if i / n_bins < p <= (i + 1) / n_bins or (i == 0 and p == 0)
        ]
        if inside:
            accuracy = sum(truth[row] for row in inside) / len(inside)
            confidence = sum(probability[row] for row in inside) / len(inside)
            error += len(inside) / len(probability) * abs(accuracy - confidence)
    return error


class TestExpectedCalibrationError:
    # Two rows at 0.25, of which one is a 1, and eight at 0.5, of which six are.
    y = (0, 1, 0, 0, 1, 1, 1, 1, 1, 1)
    p = (0.25, 0.25, *[0.5] * 8)

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({}, 0.25),
            ({"n_bins": 1}, 0.7 - 0.45),
            ({"sample_weight": [2, 0] + [1] * 8}, (2 * 0.25 + 8 * 0.25) / 10),
            ({"sample_weight": [2, 0] + [0] * 2 + [1] * 6}, (2 * 0.25 + 6 * 0.5) / 8),
            ({"sample_weight": [2, 0] + [0] * 2 + [1] * 6, "norm": "l2"}, math.sqrt(1.625 / 8)),
            ({"norm": "l2"}, 0.25),
            # 2 (1/16 - 1/4) + 8 (1/16 - 3/112), over 10.
            ({"norm": "l2", "debiased": True}, 0.0),
            (
                {"norm": "l2", "debiased": True, "n_bins": 1},
                math.sqrt(0.0625 - 0.7 * 0.3 / 9),
            ),
            # The first class at 0.75 twice, once right; at 0.5, where it is named first, 2 of 8.
            ({"kind": "top_label"}, 0.25),
            ({"kind": "top_label", "n_bins": 1}, 0.55 - 0.3),
        ],
    )
    def test_by_hand(self, options, expected):
        error = expected_calibration_error(self.y, self.p, **options)
        assert error == pytest.approx(expected, rel=1e-12, abs=1e-15)

    @pytest.mark.parametrize("n_bins", [1, 10, 15])
    @pytest.mark.parametrize("digits", [1, 17])
    def test_equal_widths_as_a_plain_loop(self, n_bins, digits):
        random = np.random.default_rng(5)
        p = random.random(300).round(digits)
        y = random.random(300) < p**2
        error = expected_calibration_error(y, p, n_bins=n_bins, strategy="uniform")
        assert error == pytest.approx(plain_error(y, p, n_bins), rel=1e-12)

    def test_classwise_is_the_mean_over_the_classes(self):
        _, y, p = some_rows(300, 4, 6)
        error = expected_calibration_error(y, p, n_bins=10, strategy="uniform")
        expected = np.mean([plain_error(y == k, p[:, k], 10) for k in range(4)])
        assert error == pytest.approx(expected, rel=1e-12)

    @pytest.mark.parametrize("n_classes", [2, 4])
    def test_top_label_compares_confidence_with_accuracy(self, n_classes):
        _, y, p = some_rows(300, n_classes, 7)
        error = expected_calibration_error(y, p, n_bins=10, strategy="uniform", kind="top_label")
        expected = plain_error(y == p.argmax(axis=1), p.max(axis=1), 10)
        assert error == pytest.approx(expected, rel=1e-12)

    def test_two_classes_are_judged_by_the_second(self):
        y, p = ["a", "b", "b"], np.array([0.5, 0.25, 0.75])  # 0.5 is in the lower bin
        options = {"n_bins": 2, "strategy": "uniform"}
        assert expected_calibration_error(y, p, **options) == pytest.approx(
            plain_error([0, 1, 1], p, 2)
        )
        turned = expected_calibration_error(y, 1 - p, labels=["b", "a"], **options)
        assert turned == pytest.approx(plain_error([1, 0, 0], 1 - p, 2))
        assert turned == pytest.approx(2 * expected_calibration_error(y, p, **options))

    @pytest.mark.parametrize(("norm", "kept"), [("l1", 0.62), ("l2", 0.35)])
    def test_less_of_the_error_of_perfect_probabilities_is_left_when_debiased(self, norm, kept):
        random = np.random.default_rng(8)
        plain, debiased = [], []
        for _ in range(200):
            p = random.random(600)
            y = random.random(600) < p
            plain.append(expected_calibration_error(y, p, norm=norm))
            debiased.append(expected_calibration_error(y, p, norm=norm, debiased=True))
        assert np.mean(debiased) < kept * np.mean(plain)
        assert (np.array(debiased) < plain).all()
        assert min(debiased) >= 0.0

    @pytest.mark.parametrize("norm", ["l1", "l2"])
    def test_debiased_is_near_the_truth_where_there_is_an_error(self, norm):
        random = np.random.default_rng(9)
        p = random.random((200, 600))
        y = random.random((200, 600)) < p**1.2
        options = {"norm": norm, "n_bins": 15}
        truth = expected_calibration_error(y.ravel(), p.ravel(), **options)
        plain, debiased = (
            np.mean(
                [expected_calibration_error(y[i], p[i], debiased=b, **options) for i in range(200)]
            )
            for b in (False, True)
        )
        assert plain - truth > 0.005
        assert abs(debiased - truth) < 0.4 * (plain - truth)

    def test_weights_that_sum_to_one_cannot_be_debiased(self):
        with pytest.raises(
            ValueError, match=r"the largest holds 0\.8; use fewer bins, and weights"
        ):
            expected_calibration_error(self.y, self.p, sample_weight=[0.1] * 10, debiased=True)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"n_bins": 0}, "n_bins must be a whole number from 1 to 1000000, got 0"),
            ({"n_bins": "ten"}, "n_bins must be a whole number .* got 'ten'"),
            ({"strategy": "width"}, "strategy must be one of 'quantile', 'uniform', got 'width'"),
            ({"norm": "max"}, "norm must be one of 'l1', 'l2', got 'max'"),
            ({"norm": 1}, "norm must be one of 'l1', 'l2', got 1"),
            ({"kind": "top"}, "kind must be one of 'classwise', 'top_label', got 'top'"),
            ({"debiased": "no"}, "debiased must be True or False, got 'no'"),
        ],
    )
    def test_options_are_checked_before_the_rows(self, options, message):
        with pytest.raises(ValueError, match=message):
            expected_calibration_error(None, None, **options)


def test_importing_the_metrics_leaves_those_of_scikit_learn_alone():
    code = "import caltree, sys; print(*sys.modules); import caltree.metrics; print(*sys.modules)"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    before, after = map(str.split, answer.stdout.splitlines())
    assert not {"sklearn.metrics", "sklearn.isotonic"} & ({*after} - {*before})
    assert "caltree.metrics" in after


@each_metric
@pytest.mark.parametrize(
    ("y_true", "y_prob", "options", "message"),
    [
        ([], [], {}, r"y_true must have one label per row, got shape \(0,\)"),
        ([[0, 1]], [0.5, 0.5], {}, r"y_true must have one label per row, got shape \(1, 2\)"),
        ([0.0, math.nan], [0.5, 0.5], {}, "y_true contains NaN"),
        ([1, 1], [0.5, 0.5], {}, "y_true contains one class only, 1; give all classes as labels"),
        ([1, 1], [0.5, 0.5], {"labels": [1]}, r"labels must name at least two classes, got \[1\]"),
        ([1, 0], [0.5, 0.5], {"labels": [1, 1]}, r"labels must name each class once, got \[1, 1\]"),
        (["a", "c"], [0.5, 0.5], {"labels": ["a", "b"]}, "y_true contains 'c' in row 1"),
        (["a", "A"], [0.5, 0.5], {"labels": ["a", "b"]}, "y_true contains 'A' in row 1"),
        ([0, 1], [0.5, 0.5, 0.5], {}, "y_prob has 3 rows, but y_true has 2"),
        ([0, 1], [[0.2, 0.3, 0.5]] * 2, {}, r"y_prob has shape \(2, 3\), but there are 2 classes"),
        ([0, 1, 2], [0.5, 0.5, 0.5], {}, r"y_prob has shape \(3,\), but there are 3 classes"),
        ([0, 1], [0.5, 1.5], {}, "not a probability"),
        ([0, 1], [0.5, math.nan], {}, "y_prob contains nan in row 1"),
        ([0, 1], [[0.5, 0.5], [0.5, 0.6]], {}, r"y_prob sums to 1\.1 in row 1"),
        ([0, 1], [0.5, 0.5], {"sample_weight": [1]}, r"for each of the 2 rows of y_true"),
        ([0, 1], [0.5, 0.5], {"sample_weight": [1, -1]}, "negative weight -1 in row 1"),
        ([0, 1], [0.5, 0.5], {"sample_weight": [1, math.inf]}, "inf in row 1; use finite"),
        ([0, 1], [0.5, 0.5], {"sample_weight": [0, 0]}, "in every row; give some row"),
    ],
)
def test_what_cannot_be_is_refused(metric, y_true, y_prob, options, message):
    with pytest.raises(ValueError, match=message):
        metric(y_true, y_prob, **options)


@each_metric
@pytest.mark.parametrize(
    ("y_true", "y_prob", "options", "message"),
    [
        (np.array([0, None], dtype=object), [0.5, 0.5], {}, "y_true mixes labels"),
        (np.array(["a", "b"], dtype=object), [0.5, 0.5], {"labels": [0, 1]}, "differ in type"),
        ([0, 1], [[0.5, 0.5], [1.0]], {}, "y_prob must be numbers"),
        ([0, 1], ["x", "y"], {}, "y_prob must be numbers"),
        ([0, 1], [0.5, 0.5], {"sample_weight": ["x", "y"]}, "sample_weight must be numbers"),
    ],
)
def test_what_is_no_number_is_refused(metric, y_true, y_prob, options, message):
    with pytest.raises(TypeError, match=message):
        metric(y_true, y_prob, **options)
