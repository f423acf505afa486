"""Bins and reliability curves by hand, against plain loops, and whatever the rows look like."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.calibration import calibration_curve

from caltree.reliability import bins, calibration_error, reliability_curve, wilson_interval

quick = settings(max_examples=150, deadline=None, derandomize=True)
strategies = st.sampled_from(["quantile", "uniform"])
# Few different values, so that ties are the rule; tenths, so that some lie between two bins.
rows = st.lists(
    st.tuples(st.integers(0, 20).map(lambda i: i / 20), st.booleans(), st.integers(0, 4)),
    min_size=1,
    max_size=40,
).filter(lambda table: any(weight for _, _, weight in table))


def columns(table):
    values, truth, weights = map(np.array, zip(*table, strict=True))
    return values, truth, weights


def squares(index, weights=None):
    """How unequal bins are."""
    return np.square(np.bincount(index, weights)).sum()


def least_squares(weights, n_bins):
    """The same for the best bins there are, by trying all."""
    until = np.concatenate([[0.0], np.cumsum(weights)])
    best = np.square(until)
    for _ in range(n_bins - 1):
        best = np.array(
            [min(best[: j + 1] + np.square(until[j] - until[: j + 1])) for j in range(len(until))]
        )
    return best[-1]


class TestEqualFrequency:
    @pytest.mark.parametrize(
        ("counts", "n_bins", "expected"),
        [
            ([1, 1, 1, 1, 1, 1], 3, [0, 0, 1, 1, 2, 2]),
            ([1, 1, 1, 1, 1, 1, 1], 1, [0, 0, 0, 0, 0, 0, 0]),
            ([5, 1, 9], 3, [0, 1, 2]),
            ([5, 1, 9], 10, [0, 1, 2]),
            # The first value fills a bin; the six others share the remaining three.
            ([94, 1, 1, 1, 1, 1, 1], 4, [0, 1, 1, 2, 2, 3, 3]),
            ([1, 1, 1, 1, 1, 1, 94], 4, [0, 0, 1, 1, 2, 2, 3]),
            ([1, 1, 1, 1, 94, 1, 1], 4, [0, 0, 1, 1, 2, 3, 3]),
            # Once 100 has its bin, 40 is more than an equal share of the rest.
            ([100, 40, 1, 1, 1, 1], 4, [0, 1, 2, 2, 3, 3]),
            # The rest is three bins for five values: 1.8 before the heavy one and 1.2 after it.
            ([2, 2, 2, 90, 2, 2], 4, [0, 1, 1, 2, 3, 3]),
            # One bin for two halves on either side: the first has it, the last joins the heavy.
            ([30, 1, 30, 1], 3, [0, 1, 2, 2]),
            ([50, 1, 50, 1], 2, [0, 0, 1, 1]),
        ],
    )
    def test_by_hand(self, counts, n_bins, expected):
        values = np.linspace(0, 1, len(counts))
        assert bins(values, n_bins, sample_weight=counts).tolist() == expected
        assert (
            bins(np.repeat(values, counts), n_bins).tolist() == np.repeat(expected, counts).tolist()
        )

    @pytest.mark.parametrize(("n", "n_bins"), [(10, 3), (100, 7), (1000, 15), (16, 15)])
    def test_different_values_fill_bins_that_differ_by_one_row(self, n, n_bins):
        index = bins(np.random.default_rng(0).random(n), n_bins)
        sizes = np.bincount(index)
        assert len(sizes) == n_bins
        assert sizes.max() - sizes.min() <= 1

    def test_one_value_is_one_bin(self):
        assert bins(np.full(100, 0.3), 10).tolist() == [0] * 100

    @pytest.mark.parametrize("seed", range(40))
    def test_nearly_as_equal_as_possible(self, seed):
        random = np.random.default_rng(seed)
        n_bins = int(random.integers(1, 10))
        weights = random.pareto(0.7, 40) + 0.1 if seed % 2 else random.integers(1, 6, 40)
        index = bins(np.linspace(0, 1, 40), n_bins, sample_weight=weights)
        assert squares(index, weights) <= 1.1 * least_squares(weights, n_bins)

    def test_what_lies_on_the_border_does_not_depend_on_rounding(self):
        # Three values of the same weight, the second on the border of two bins, but the sum of
        # its tenths is 0.6 in one order and 0.6000000000000001 in the other.
        values, up, down = np.repeat([0.1, 0.5, 0.9], 3), [0.1, 0.2, 0.3], [0.3, 0.2, 0.1]
        for weights in ([*up, *down, *down], [*down, *down, *up], [*down, *up, *down]):
            assert np.unique(bins(values, 2, sample_weight=weights)[3:6]).tolist() == [1]

    @pytest.mark.parametrize(
        ("counts", "n_bins", "scale"),
        [
            # Beside the 6, the 5 is exactly an equal share: does it fill a bin of its own?
            ([3, 5, 2, 6], 3, 3),
            # The heavy value begins exactly in the middle of a bin: which one is its own?
            ([2, 1, 2, 3, 1], 4, 10),
        ],
    )
    def test_the_scale_of_the_weights_is_nothing(self, counts, n_bins, scale):
        values, weights = np.linspace(0, 1, len(counts)), np.array(counts)
        expected = bins(values, n_bins, sample_weight=weights)
        assert bins(values, n_bins, sample_weight=weights / scale).tolist() == expected.tolist()

    def test_values_may_weigh_next_to_nothing(self):
        weights = [1e300, 1e-300, 1e300, 1e-300, 1e-300]
        assert bins([0.1, 0.2, 0.3, 0.4, 0.5], 2, sample_weight=weights)[[0, 2]].tolist() == [0, 1]


class TestEqualWidth:
    def test_by_hand(self):
        values = [0.0, 0.1, 0.11, 0.25, 0.3, 0.31, 0.7, 1.0]
        # The upper ends are in: 0 and 0.1 in the first of ten bins, 0.25 and 0.3 in the third.
        assert bins(values, 10, "uniform").tolist() == [0, 0, 1, 2, 2, 3, 4, 5]

    @pytest.mark.parametrize("n_bins", [10, 49, 98, 1000])
    def test_a_fraction_is_the_upper_end_of_its_bin(self, n_bins):
        values = [i / n_bins for i in range(1, n_bins + 1)]
        assert bins(values, n_bins, "uniform").tolist() == list(range(n_bins))

    def test_one_bin_holds_everything(self):
        assert bins([0.0, 0.5, 1.0], 1, "uniform").tolist() == [0, 0, 0]


@quick
@given(table=rows, n_bins=st.integers(1, 12), strategy=strategies)
def test_bins_are_whole_ascending_and_never_empty(table, n_bins, strategy):
    values, _, weights = columns(table)
    index = bins(values, n_bins, strategy, weights)
    present = weights > 0
    assert (index[~present] == -1).all()
    assert np.unique(index[present]).tolist() == list(range(index.max() + 1))
    assert index.max() < n_bins
    of_value = {}
    for value, bin_ in sorted(zip(values[present], index[present], strict=True)):
        assert of_value.setdefault(value, bin_) == bin_
    assert list(of_value.values()) == sorted(of_value.values())


@quick
@given(table=rows, n_bins=st.integers(1, 12), strategy=strategies, random=st.randoms())
def test_bins_do_not_know_the_order_of_the_rows(table, n_bins, strategy, random):
    values, _, weights = columns(table)
    weights = weights / 10  # sums of tenths depend on their order
    order = list(range(len(values)))
    random.shuffle(order)
    index = bins(values, n_bins, strategy, weights)
    assert bins(values[order], n_bins, strategy, weights[order]).tolist() == index[order].tolist()


@quick
@given(table=rows, n_bins=st.integers(1, 12), strategy=strategies)
def test_a_weight_is_a_number_of_rows(table, n_bins, strategy):
    values, truth, weights = columns(table)
    repeated, events = np.repeat(values, weights), np.repeat(truth, weights)
    index = bins(values, n_bins, strategy, weights)
    assert np.repeat(index, weights).tolist() == bins(repeated, n_bins, strategy).tolist()
    assert index.tolist() == bins(values, n_bins, strategy, weights / 7).tolist()

    options = {"n_bins": n_bins, "strategy": strategy}
    curve = reliability_curve(truth, values, sample_weight=weights, **options)
    expected = reliability_curve(events, repeated, **options)
    for field in dataclasses.fields(curve):
        np.testing.assert_allclose(
            getattr(curve, field.name),
            getattr(expected, field.name),
            rtol=1e-12,
            err_msg=field.name,
        )


@quick
@given(table=rows, n_bins=st.integers(1, 12), strategy=strategies)
def test_the_curve_is_what_a_plain_loop_finds(table, n_bins, strategy):
    values, truth, weights = columns(table)
    index = bins(values, n_bins, strategy, weights)
    curve = reliability_curve(
        truth, values, n_bins=n_bins, strategy=strategy, sample_weight=weights
    )
    assert len(curve.weight) == index.max() + 1
    for bin_ in range(index.max() + 1):
        inside = index == bin_
        weight = weights[inside]
        assert curve.weight[bin_] == weight.sum()
        assert curve.predicted[bin_] == pytest.approx(
            (weight * values[inside]).sum() / weight.sum()
        )
        assert curve.observed[bin_] == pytest.approx((weight * truth[inside]).sum() / weight.sum())
        assert curve.lowest[bin_] == values[inside].min()
        assert curve.highest[bin_] == values[inside].max()


@quick
@given(table=rows, n_bins=st.integers(1, 12), strategy=strategies)
def test_the_mean_of_a_bin_lies_within_it(table, n_bins, strategy):
    values, truth, weights = columns(table)
    curve = reliability_curve(
        truth, values, n_bins=n_bins, strategy=strategy, sample_weight=weights / 10
    )
    assert (curve.lowest <= curve.predicted).all()
    assert (curve.predicted <= curve.highest).all()
    assert (curve.highest[:-1] < curve.lowest[1:]).all()
    assert curve.observed.min() >= 0
    assert curve.observed.max() <= 1


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
def test_the_curve_of_scikit_learn(strategy):
    random = np.random.default_rng(0)
    probability = random.random(900)
    truth = random.random(900) < probability**2
    observed, predicted = calibration_curve(truth, probability, n_bins=9, strategy=strategy)
    curve = reliability_curve(truth, probability, n_bins=9, strategy=strategy)
    np.testing.assert_allclose(curve.observed, observed, rtol=1e-12)
    np.testing.assert_allclose(curve.predicted, predicted, rtol=1e-12)


def test_by_default_fifteen_bins_of_equal_weight():
    values = np.random.default_rng(0).random(150) ** 3
    curve = reliability_curve(values > 0.5, values)
    assert curve.weight.tolist() == [10.0] * 15
    assert np.bincount(bins(values)).tolist() == [10] * 15


def test_a_curve_cannot_be_changed():
    curve = reliability_curve([0, 1], [0.2, 0.8])
    with pytest.raises(dataclasses.FrozenInstanceError):
        curve.weight = np.zeros(2)


@pytest.mark.parametrize(
    "truth",
    [[0, 1, 1], [False, True, True], np.array([False, True, True], dtype=object), [0.0, 1.0, 1.0]],
)
def test_truth_may_be_numbers_or_booleans(truth):
    assert reliability_curve(truth, [0.1, 0.5, 0.9]).observed.tolist() == [0.0, 1.0, 1.0]


def test_series_are_welcome():
    pandas = pytest.importorskip("pandas")
    curve = reliability_curve(
        pandas.Series([True, False], dtype="boolean"), pandas.Series([0.5, 0.25], dtype="float32")
    )
    assert curve.observed.tolist() == [0.0, 1.0]
    assert curve.predicted.tolist() == [0.25, 0.5]


class TestCalibrationError:
    # Two bins: 2 rows at 0.25, of which 1 happened, and 6 rows at 0.75, of which 3 happened.
    curve = reliability_curve([0, 1, 0, 0, 0, 1, 1, 1], [0.25] * 2 + [0.75] * 6)

    @pytest.mark.parametrize(("norm", "expected"), [("l1", 0.25), ("l2", 0.25)])
    def test_by_hand(self, norm, expected):
        assert calibration_error(self.curve, norm) == pytest.approx(expected, rel=1e-15)

    def test_debiased_squares_by_hand(self):
        # (2 (1/16 - 1/4) + 6 (1/16 - 1/20)) / 8 is negative, and the second bin alone is not.
        assert calibration_error(self.curve, "l2", debiased=True) == 0.0
        second = reliability_curve([0, 0, 0, 1, 1, 1], [0.75] * 6)
        assert calibration_error(second, "l2", debiased=True) == pytest.approx(math.sqrt(1 / 80))

    def test_debiased_differences_against_many_draws(self):
        second = reliability_curve([0, 0, 0, 1, 1, 1], [0.75] * 6)
        draws = np.random.default_rng(0).normal(0.25, math.sqrt(0.25 / 5), 2_000_000)
        expected = 2 * 0.25 - np.abs(draws).mean()
        assert calibration_error(second, debiased=True) == pytest.approx(expected, abs=1e-3)

    def test_nothing_is_taken_off_where_all_rows_agree(self):
        curve = reliability_curve([1, 1, 1, 1], [0.75] * 4)
        assert calibration_error(curve, debiased=True) == 0.25
        assert calibration_error(curve, "l2", debiased=True) == 0.25

    def test_a_bin_of_fewer_than_two_rows_adds_nothing_when_debiased(self):
        # All of 3 rows at 0.5 happened, and 1.5 rows at 0.25 did not.
        curve = reliability_curve([1, 0], [0.5, 0.25], sample_weight=[3, 1.5])
        assert calibration_error(curve) == pytest.approx((3 * 0.5 + 1.5 * 0.25) / 4.5)
        assert calibration_error(curve, debiased=True) == pytest.approx(3 * 0.5 / 4.5)

    @pytest.mark.parametrize("norm", ["l1", "l2"])
    def test_bins_of_single_rows_cannot_be_debiased(self, norm):
        curve = reliability_curve([1, 0], [0.5, 0.25])
        with pytest.raises(
            ValueError, match=r"bins of at least two rows, but the largest holds 1;"
        ):
            calibration_error(curve, norm, debiased=True)

    def test_other_norms_are_refused(self):
        with pytest.raises(ValueError, match="norm must be one of 'l1', 'l2', got 'max'"):
            calibration_error(self.curve, "max")


REFUSED = [
    ([], {}, ValueError, r"{name} must have one probability per row, got shape \(0,\)"),
    ([[0.1, 0.9]], {}, ValueError, r"{name} must have one probability per row, got shape \(1, 2\)"),
    ([0.5, math.nan], {}, ValueError, "{name} contains nan in row 1"),
    ([0.5, 1.5], {}, ValueError, "{name} contains 1.5 in row 1, which is not a probability; give"),
    ([-0.5, 1], {}, ValueError, "{name} contains -0.5 in row 0"),
    (["low", "high"], {}, TypeError, "{name} must be numbers, one per row"),
    ([0.1, 0.9], {"n_bins": 0}, ValueError, "n_bins must be a whole number from 1 to .*, got 0"),
    ([0.1, 0.9], {"n_bins": 2.5}, ValueError, "n_bins must be a whole number .* got 2.5"),
    ([0.1, 0.9], {"n_bins": True}, ValueError, "n_bins must be a whole number .* got True"),
    (
        [0.1, 0.9],
        {"strategy": "width"},
        ValueError,
        "strategy must be one of 'quantile', 'uniform', got 'width'",
    ),
    ([0.1, 0.9], {"sample_weight": [1]}, ValueError, "for each of the 2 rows of {name}, got shape"),
    ([0.1, 0.9], {"sample_weight": [1, -1]}, ValueError, "negative weight -1 in row 1"),
    ([0.1, 0.9], {"sample_weight": [1, math.nan]}, ValueError, "sample_weight contains nan"),
    ([0.1, 0.9], {"sample_weight": [0, 0]}, ValueError, "in every row; give some row"),
    ([0.1, 0.9], {"sample_weight": ["a", "b"]}, TypeError, "sample_weight must be numbers"),
]


@pytest.mark.parametrize(("values", "options", "error", "message"), REFUSED)
def test_what_cannot_be_is_refused(values, options, error, message):
    with pytest.raises(error, match=message.format(name="values")):
        bins(values, **options)
    with pytest.raises(error, match=message.format(name="probability")):
        reliability_curve([0, 1], values, **options)


@pytest.mark.parametrize(
    ("truth", "error", "message"),
    [
        ([0, 1, 1], ValueError, r"for each of the 2 rows of probability, got shape \(3,\)"),
        ([[0, 1]], ValueError, r"got shape \(1, 2\)"),
        ([0, 2], ValueError, "truth contains 2 in row 1; give 1 where the event happened"),
        ([math.nan, 1], ValueError, "truth contains nan in row 0"),
        (["no", "yes"], TypeError, "truth must be 0 or 1 in each row; compare the labels with"),
        (np.array([None, 1]), ValueError, "truth contains nan in row 0"),
        ([[0], [0, 1]], TypeError, "truth must be 0 or 1"),
    ],
)
def test_truth_is_one_or_zero(truth, error, message):
    with pytest.raises(error, match=message):
        reliability_curve(truth, [0.1, 0.9])


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize(
    ("happened", "n_rows"), [(0, 7), (7, 7), (3, 10), (1, 1), (0, 1), (250, 1000), (12, 840)]
)
def test_wilson_intervals_are_those_of_scipy(happened, n_rows, confidence):
    expected = binomtest(happened, n_rows).proportion_ci(confidence, "wilson")
    lower, upper = wilson_interval(
        np.array([happened / n_rows]), np.array([float(n_rows)]), confidence
    )
    assert (lower[0], upper[0]) == pytest.approx((expected.low, expected.high), abs=1e-12)
