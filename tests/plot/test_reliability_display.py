"""Reliability diagrams: the points, bands and bars are those of the rows."""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from caltree import CalibratedClassifier, CalibrationTree, IdentityCalibrator, PlattScaling
from caltree.plot import ReliabilityDisplay
from caltree.reliability import reliability_curve, wilson_interval
from tests.support.figures import assert_readable, no_figure_is_open

CLASSES = ["ant", "bee", "cat"]


def made_rows(n_rows=400, seed=0):
    """Probabilities that are too sure of themselves, and labels."""
    random = np.random.default_rng(seed)
    probability = np.round(random.random(n_rows), 3)
    happened = random.random(n_rows) < 0.25 + 0.5 * probability
    return np.where(happened, "yes", "no"), probability


def three_classes(n_rows=300, seed=0):
    random = np.random.default_rng(seed)
    y_prob = random.dirichlet(np.ones(3), n_rows)
    return np.array(CLASSES)[random.integers(0, 3, n_rows)], y_prob


def points(line):
    return np.asarray(line.get_xydata())


def points_of(curve):
    return np.column_stack([curve.predicted, curve.observed])


def bars(axes):
    return [np.asarray(patch.get_data().values) for patch in axes.patches]


def legend_names(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def texts_outside(figure):
    """The titles, labels and tick labels that are shown."""
    found = []
    for axes in figure.axes:
        for place, axis in enumerate((axes.xaxis, axes.yaxis)):
            low, high = axis.get_view_interval()
            labels = axis.get_majorticklabels()
            found += [each for each in labels if low <= each.get_position()[place] <= high]
        found += [axes.title, axes.xaxis.label, axes.yaxis.label]
    found += [figure._supxlabel, figure._supylabel]
    return [text for text in found if text is not None and text.get_text() and text.get_visible()]


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
def test_the_curve_is_that_of_the_bins(strategy):
    y, probability = made_rows()
    display = ReliabilityDisplay.from_predictions(y, probability, n_bins=12, strategy=strategy)
    expected = reliability_curve(y == "yes", probability, n_bins=12, strategy=strategy)
    np.testing.assert_array_equal(points(display.line_), points_of(expected))


def test_at_most_thirty_bins_of_equally_many_rows():
    y, probability = made_rows()
    display = ReliabilityDisplay.from_predictions(y, probability)
    expected = reliability_curve(y == "yes", probability, n_bins=30)
    np.testing.assert_array_equal(points(display.line_), points_of(expected))
    assert len(points(display.line_)) <= 30


def test_equal_probabilities_share_a_bin():
    y, probability = made_rows()
    display = ReliabilityDisplay.from_predictions(y, probability.round(1))
    assert points(display.line_)[:, 0] == pytest.approx(np.linspace(0, 1, 11))


def test_the_band_is_wilsons_interval_of_every_bin():
    y, probability = made_rows()
    display = ReliabilityDisplay.from_predictions(y, probability, n_bins=5, confidence=0.9)
    curve = reliability_curve(y == "yes", probability, n_bins=5)
    ends = wilson_interval(curve.observed, curve.weight, 0.9)
    corners = {tuple(corner) for corner in display.band_.get_paths()[0].vertices}
    for end in ends:
        assert set(zip(curve.predicted.tolist(), end.tolist(), strict=True)) <= corners


def test_a_band_of_a_single_bin_is_seen():
    display = ReliabilityDisplay.from_predictions([0, 1] * 20, [0.5] * 40, histogram=False)
    [path] = display.band_.get_paths()
    assert np.ptp(path.vertices[:, 1]) > 0.2
    assert display.band_.get_linewidth()[0] > 0
    assert display.band_.get_edgecolor()[0, 3] > 0


def test_bands_histogram_and_diagonal_can_be_left_out():
    y, probability = made_rows()
    display = ReliabilityDisplay.from_predictions(
        y, probability, confidence=None, histogram=False, ref_line=False
    )
    assert display.band_ is None and display.histogram_ax_ is None
    assert display.figure_.axes == [display.ax_]
    assert display.ax_.get_lines()[:] == [display.line_]
    assert not display.ax_.collections


def test_the_histogram_is_below_and_counts_rows():
    y, probability = made_rows()
    display = ReliabilityDisplay.from_predictions(y, probability)
    expected = np.histogram(probability, 20, (0, 1))[0]
    [heights] = bars(display.histogram_ax_)
    np.testing.assert_array_equal(heights, expected)
    display.figure_.canvas.draw()
    above, below = display.ax_.get_position(), display.histogram_ax_.get_position()
    assert below.y1 < above.y0
    assert (below.x0, below.x1) == pytest.approx((above.x0, above.x1))
    assert display.histogram_ax_.get_xlim() == display.ax_.get_xlim()
    assert display.histogram_ax_.get_ylim()[1] > expected.max()


def test_weights_are_numbers_of_rows():
    y, probability = made_rows(60)
    weights = np.random.default_rng(1).integers(0, 4, 60)
    weighted = ReliabilityDisplay.from_predictions(y, probability, n_bins=4, sample_weight=weights)
    repeated = ReliabilityDisplay.from_predictions(
        np.repeat(y, weights), np.repeat(probability, weights), n_bins=4
    )
    np.testing.assert_allclose(points(weighted.line_), points(repeated.line_), atol=1e-12)
    one, other = (each.band_.get_paths()[0].vertices for each in (weighted, repeated))
    np.testing.assert_allclose(one, other, atol=1e-12)
    np.testing.assert_allclose(bars(weighted.histogram_ax_), bars(repeated.histogram_ax_))


def test_several_models_share_a_figure_its_diagonal_and_its_histogram():
    y, probability = made_rows()
    first = ReliabilityDisplay.from_predictions(y, probability, name="one")
    second = ReliabilityDisplay.from_predictions(y, probability**2, name="two", ax=first.ax_)
    assert second.ax_ is first.ax_ and second.figure_ is first.figure_
    assert second.histogram_ax_ is first.histogram_ax_
    assert len(first.figure_.axes) == 2
    assert legend_names(first.ax_) == ["perfectly calibrated", "one", "two"]
    assert len(first.ax_.get_lines()) == 3
    heights = bars(first.histogram_ax_)
    assert len(heights) == 2
    styles = [patch.get_linestyle() for patch in first.histogram_ax_.patches]
    assert styles == [first.line_.get_linestyle(), second.line_.get_linestyle()] == ["-", "--"]
    assert first.histogram_ax_.get_ylim()[1] > np.max(heights)


def test_seven_models_differ_in_colour_and_in_marker():
    y, probability = made_rows()
    axes, lines = None, []
    for number in range(7):
        display = ReliabilityDisplay.from_predictions(
            y, probability ** (1 + number / 4), name=f"model {number}", ax=axes
        )
        axes = display.ax_
        lines.append(display.line_)
        assert display.band_.get_facecolor()[0, :3] == pytest.approx(
            plt.matplotlib.colors.to_rgb(display.line_.get_color())
        )
    assert len({line.get_color() for line in lines}) == 7
    assert len({line.get_marker() for line in lines}) == 7
    assert all(one.get_linestyle() != other.get_linestyle() for one, other in pairwise(lines))


def test_the_second_of_two_classes_is_looked_at_unless_told_otherwise():
    y, probability = made_rows()
    both = np.column_stack([1 - probability, probability])
    second = ReliabilityDisplay.from_predictions(y, both, n_bins=5)
    first = ReliabilityDisplay.from_predictions(y, both, n_bins=5, pos_label="no")
    np.testing.assert_allclose(points(first.line_)[::-1], 1 - points(second.line_), atol=1e-12)
    assert second.histogram_ax_.get_xlabel() == "predicted probability of yes"
    assert first.ax_.get_ylabel() == "observed frequency of no"


def test_one_column_is_that_of_the_class_it_is_said_to_be_of():
    y, y_prob = three_classes()
    whole = ReliabilityDisplay.from_predictions(y, y_prob, pos_label="bee")
    column = ReliabilityDisplay.from_predictions(y, y_prob[:, 1], pos_label="bee")
    upright = ReliabilityDisplay.from_predictions(y, y_prob[:, 1:2], pos_label="bee")
    expected = points_of(reliability_curve(y == "bee", y_prob[:, 1], n_bins=30))
    for display in (whole, column, upright):
        np.testing.assert_array_equal(points(display.line_), expected)


def test_every_one_of_many_classes_has_a_panel():
    y, y_prob = three_classes()
    display = ReliabilityDisplay.from_predictions(y, y_prob, n_bins=6)
    assert [axes.get_title() for axes in display.ax_] == CLASSES
    for column, (label, line) in enumerate(zip(CLASSES, display.line_, strict=True)):
        expected = reliability_curve(y == label, y_prob[:, column], n_bins=6)
        np.testing.assert_array_equal(points(line), points_of(expected))
        [heights] = bars(display.histogram_ax_[column])
        np.testing.assert_array_equal(heights, np.histogram(y_prob[:, column], 20, (0, 1))[0])
    assert len(display.band_) == 3
    assert set(display.figure_.axes) == {*display.ax_, *display.histogram_ax_}


def test_panels_take_several_models_and_stay_readable():
    random = np.random.default_rng(0)
    y_prob = random.dirichlet(np.ones(10), 500)
    y = random.integers(0, 10, 500)
    first = ReliabilityDisplay.from_predictions(y, y_prob, name="the first model")
    second = ReliabilityDisplay.from_predictions(
        y, y_prob[::-1], name="the second model", ax=first.ax_
    )
    assert list(second.ax_) == list(first.ax_)
    assert list(second.histogram_ax_) == list(first.histogram_ax_)
    [legend] = first.figure_.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["perfectly calibrated", "the first model", "the second model"]
    assert_readable(first.figure_, [*texts_outside(first.figure_), *legend.get_texts()])
    columns = {round(axes.get_position().x0, 6) for axes in first.figure_.axes}
    assert len(columns) == 4


def test_the_top_label_is_compared_with_whether_it_is_right():
    y, y_prob = three_classes()
    display = ReliabilityDisplay.from_predictions(y, y_prob, kind="top_label", n_bins=8)
    is_right = np.array(CLASSES)[y_prob.argmax(axis=1)] == y
    expected = reliability_curve(is_right, y_prob.max(axis=1), n_bins=8)
    np.testing.assert_array_equal(points(display.line_), points_of(expected))


def test_labels_name_the_columns_in_any_order():
    y, y_prob = three_classes()
    turned = ["cat", "ant", "bee"]
    display = ReliabilityDisplay.from_predictions(
        y, y_prob[:, [2, 0, 1]], labels=turned, pos_label="ant"
    )
    expected = reliability_curve(y == "ant", y_prob[:, 0], n_bins=30)
    np.testing.assert_array_equal(points(display.line_), points_of(expected))


def test_a_class_without_rows_has_a_panel_if_labels_name_it():
    y, y_prob = three_classes()
    rows = y != "cat"
    display = ReliabilityDisplay.from_predictions(y[rows], y_prob[rows], labels=CLASSES)
    assert points(display.line_[2])[:, 1].max() == 0.0


@pytest.fixture(scope="module")
def fitted():
    X, y = make_classification(600, random_state=0)
    y = np.array(["no", "yes"])[y]
    return X, y, GaussianNB().fit(X, y)


def test_a_classifier_is_drawn_by_its_probabilities(fitted):
    X, y, model = fitted
    drawn = ReliabilityDisplay.from_estimator(model, X, y, n_bins=7, strategy="uniform")
    stored = ReliabilityDisplay.from_predictions(
        y, model.predict_proba(X), n_bins=7, strategy="uniform"
    )
    np.testing.assert_array_equal(points(drawn.line_), points(stored.line_))
    assert legend_names(drawn.ax_)[1] == "GaussianNB"
    assert stored.ax_.get_legend() is None


@pytest.mark.parametrize(
    ("calibrator", "frozen", "name"),
    [
        (CalibrationTree(max_depth=1), False, "GaussianNB + CalibrationTree"),
        (PlattScaling(), True, "GaussianNB + PlattScaling"),
    ],
    ids=["tree", "frozen"],
)
def test_a_calibrated_classifier_is_called_what_it_is_made_of(fitted, calibrator, frozen, name):
    X, y, model = fitted
    estimator = FrozenEstimator(model) if frozen else GaussianNB()
    calibrated = CalibratedClassifier(estimator, calibrator).fit(X, y)
    display = ReliabilityDisplay.from_estimator(calibrated, X, y)
    assert legend_names(display.ax_)[1] == name
    named = ReliabilityDisplay.from_estimator(calibrated, X, y, name="ours")
    assert legend_names(named.ax_)[1] == "ours"


def test_a_list_of_classifiers_is_called_by_all_of_them(fitted):
    X, y, _ = fitted
    model = CalibratedClassifier([GaussianNB(), LogisticRegression()], IdentityCalibrator())
    display = ReliabilityDisplay.from_estimator(model.fit(X, y), X, y)
    assert display.name == "GaussianNB + LogisticRegression + IdentityCalibrator"
    assert legend_names(display.ax_)[1] == "GaussianNB + LogisticRegre…ityCalibrator"


def test_a_display_can_be_drawn_again_under_another_name():
    y, probability = made_rows()
    display = ReliabilityDisplay.from_predictions(y, probability, name="one")
    first = display.ax_
    assert display.plot(name="two") is display
    assert display.ax_ is not first
    assert legend_names(display.ax_)[1] == "two"


def test_wishes_for_the_line_hold_for_its_band_and_its_bars():
    y, probability = made_rows()
    display = ReliabilityDisplay.from_predictions(y, probability, c="red", ls=":", marker="x")
    red = (1.0, 0.0, 0.0)
    assert display.line_.get_color() == "red" and display.line_.get_marker() == "x"
    assert display.band_.get_facecolor()[0, :3] == pytest.approx(red)
    [patch] = display.histogram_ax_.patches
    assert patch.get_edgecolor()[:3] == pytest.approx(red)


@pytest.mark.parametrize("layout", [None, "constrained"])
def test_given_axes_make_room_for_the_histogram(layout):
    y, probability = made_rows()
    figure, (left, right) = plt.subplots(1, 2, layout=layout)
    figure.canvas.draw()
    before = right.get_position()
    display = ReliabilityDisplay.from_predictions(y, probability, ax=right)
    figure.canvas.draw()
    above, below = right.get_position(), display.histogram_ax_.get_position()
    assert before.y0 - 0.05 <= below.y0 < below.y1 < above.y0 < above.y1 <= before.y1 + 0.05
    assert len(figure.axes) == 3 and not left.get_lines()


def test_axes_without_a_grid_keep_their_place():
    y, probability = made_rows()
    axes = plt.figure().add_axes((0.2, 0.3, 0.5, 0.6))
    first = ReliabilityDisplay.from_predictions(y, probability, ax=axes)
    second = ReliabilityDisplay.from_predictions(y, probability, ax=axes)
    assert first.histogram_ax_ is second.histogram_ax_
    place, below = axes.get_position(), first.histogram_ax_.get_position()
    assert (place.x0, below.y0, place.x1, place.y1) == pytest.approx((0.2, 0.3, 0.7, 0.9))


def test_subfigures_can_be_drawn_on():
    y, y_prob = three_classes()
    parts = plt.figure(layout="constrained").subfigures(1, 2)
    axes = parts[1].subplots(1, 3)
    ReliabilityDisplay.from_predictions(y, y_prob, ax=axes, name="one")
    parts[1].get_figure().canvas.draw()
    assert len(parts[1].axes) == 6 and len(parts[1].legends) == 1


def test_curves_of_several_classes_on_one_axes_are_named_for_none():
    y, y_prob = three_classes()
    display = ReliabilityDisplay.from_predictions(y, y_prob, pos_label="ant", name="ant")
    for label in ("ant", "bee"):
        assert display.histogram_ax_.get_xlabel() == "predicted probability of ant"
        ReliabilityDisplay.from_predictions(y, y_prob, pos_label=label, name=label, ax=display.ax_)
    assert display.histogram_ax_.get_xlabel() == "predicted probability"
    assert display.ax_.get_ylabel() == "observed frequency"


def test_a_histogram_that_comes_later_takes_the_label_over():
    y, probability = made_rows()
    first = ReliabilityDisplay.from_predictions(y, probability, histogram=False)
    second = ReliabilityDisplay.from_predictions(y, probability, ax=first.ax_)
    assert first.ax_.get_xlabel() == ""
    assert second.histogram_ax_.get_xlabel() == "predicted probability of yes"


def test_a_display_needs_curves():
    with pytest.raises(ValueError, match="curves and histograms must have the same classes"):
        ReliabilityDisplay({}, {}).plot()


def test_names_are_drawn_as_they_are():
    y, probability = made_rows()
    for name in ["costs $5 or $6", "$\\frac{", "_hidden", "two\nlines", "long " * 30]:
        display = ReliabilityDisplay.from_predictions(
            np.where(y == "yes", "$", "$$"), probability, pos_label="$", name=name
        )
        assert len(legend_names(display.ax_)) == 2
        display.figure_.canvas.draw()
        texts = [*texts_outside(display.figure_), *display.ax_.get_legend().get_texts()]
        assert_readable(display.figure_, texts)


GOOD = {"y_true": ["a", "b", "a"], "y_prob": [0.1, 0.6, 0.3]}


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"y_true": []}, ValueError, "y_true must have one label per row, got shape \\(0,\\)"),
        ({"y_true": ["a"] * 3}, ValueError, "y_true contains one class only, 'a'"),
        ({"y_true": [0.0, 1.0, np.nan]}, ValueError, "y_true contains NaN"),
        ({"y_true": ["a", "b"]}, ValueError, "y_prob has 3 rows, but y_true has 2"),
        ({"y_prob": [0.1, 1.5, 0.2]}, ValueError, "y_prob contains 1.5 in row 1"),
        ({"y_prob": [0.1, np.nan, 0.2]}, ValueError, "y_prob contains nan in row 1"),
        ({"y_prob": [[0.1, 0.2, 0.7]] * 3}, ValueError, "y_prob has shape \\(3, 3\\), but"),
        ({"y_prob": [[0.1, 0.2]] * 3}, ValueError, "y_prob sums to 0.3 in row 0"),
        ({"y_prob": [[0.1], [0.2, 0.3], [0.1]]}, TypeError, "y_prob must be numbers"),
        ({"y_prob": [[0.1], [0.2, 0.3], [0.1]], "pos_label": "a"}, TypeError, "y_prob must be"),
        ({"sample_weight": [1, -2, 1]}, ValueError, "sample_weight contains the negative weight"),
        ({"sample_weight": [1, 2]}, ValueError, "sample_weight must have one weight for each"),
        ({"labels": ["a", "c"]}, ValueError, "y_true contains 'b' in row 1, which is not among"),
        ({"labels": ["a", "c"], "pos_label": "a"}, ValueError, "y_true contains 'b' in row 1"),
        ({"pos_label": "c"}, ValueError, "pos_label is 'c', which is not among the classes"),
        ({"kind": "all"}, ValueError, "kind must be one of 'classwise', 'top_label', got 'all'"),
        ({"kind": "top_label", "pos_label": "a"}, ValueError, "but pos_label is 'a'; leave one"),
        ({"n_bins": 0}, ValueError, "n_bins must be a whole number from 1"),
        ({"strategy": "log"}, ValueError, "strategy must be one of 'quantile', 'uniform'"),
        ({"confidence": 95}, ValueError, "confidence must be None or a number between 0 and 1"),
        ({"confidence": True}, ValueError, "confidence must be None or a number"),
        ({"histogram": "yes"}, ValueError, "histogram must be True or False, got 'yes'"),
        ({"ref_line": 1}, ValueError, "ref_line must be True or False, got 1"),
        ({"name": 3}, TypeError, "name must be a string or None, got 3"),
        ({"ax": "here"}, TypeError, "ax must be matplotlib axes or None, got 'here'"),
        ({"ax": []}, TypeError, "ax must be matplotlib axes or None"),
        ({"colour": "red"}, AttributeError, "colour"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
def test_bad_input_is_refused_before_anything_is_drawn(change, kind, message):
    with pytest.raises(kind, match=message):
        ReliabilityDisplay.from_predictions(**{**GOOD, **change})
    assert no_figure_is_open()


def test_the_wrong_number_of_axes_is_refused():
    y, y_prob = three_classes()
    _, axes = plt.subplots(1, 2)
    with pytest.raises(ValueError, match="ax has 2 axes, but 3 are needed; leave ax out"):
        ReliabilityDisplay.from_predictions(y, y_prob, ax=axes)
    with pytest.raises(ValueError, match="ax has 2 axes, but 1 are needed"):
        ReliabilityDisplay.from_predictions(y, y_prob, ax=axes, pos_label="ant")
    assert not axes[0].get_lines()


def test_a_panel_for_each_of_very_many_classes_is_refused():
    y = np.arange(61)
    with pytest.raises(ValueError, match="61 classes, at most 60; choose a class with pos_label"):
        ReliabilityDisplay.from_predictions(y, np.eye(61))
    ReliabilityDisplay.from_predictions(y, np.eye(61), kind="top_label")
    ReliabilityDisplay.from_predictions(y, np.eye(61), pos_label=7)


def test_what_is_no_classifier_is_refused(fitted):
    X, y, _ = fitted
    tree = CalibrationTree(max_depth=1).fit(X, y, scores=np.full(600, 0.5))
    for estimator, kind, message in [
        (GaussianNB(), NotFittedError, "GaussianNB instance is not fitted"),
        (CalibratedClassifier(GaussianNB()), NotFittedError, "is not fitted"),
        (LinearSVC().fit(X, y), TypeError, "estimator must be a fitted classifier with"),
        (GaussianNB, TypeError, "estimator must be a fitted classifier with predict_proba"),
        (tree, TypeError, "estimator is a CalibrationTree, which needs scores; use from_pred"),
    ]:
        with pytest.raises(kind, match=message):
            ReliabilityDisplay.from_estimator(estimator, X, y)
    assert no_figure_is_open()


def test_an_unknown_class_is_refused_before_the_classifier_is_asked(fitted):
    _, y, model = fitted
    with pytest.raises(ValueError, match="pos_label is 'maybe', which is not among the classes"):
        ReliabilityDisplay.from_estimator(model, None, y, pos_label="maybe")


def test_a_classifier_that_does_not_say_its_classes_is_refused():
    class Silent:
        def predict_proba(self, X):
            return np.full((len(X), 2), 0.5)

    with pytest.raises(TypeError, match="Silent does not say its classes"):
        ReliabilityDisplay.from_estimator(Silent(), [[1], [2]], [0, 1])
