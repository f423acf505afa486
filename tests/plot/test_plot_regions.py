"""Planes of probabilities: what is drawn is what is predicted there."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC

from caltree import CalibratedClassifier, CalibrationForest, IsotonicScaling, PlattScaling
from caltree._inputs.scores import ScoreKind
from caltree.plot import plot_regions
from tests.support.figures import assert_readable, no_figure_is_open
from tests.support.trees import fixed_boosted_tree, fixed_tree, make_rows


def made_frame(n_rows=500, seed=0):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": random.integers(18, 80, n_rows),
            "channel": random.choice(["web", "shop", "app"], n_rows, p=[0.5, 0.3, 0.2]),
            "income": random.normal(3000, 500, n_rows).round(),
            "flag": random.random(n_rows) < 0.7,
        }
    )
    wrong = np.where(frame["channel"] == "web", 0.8, 0.2)
    y = np.where(random.random(n_rows) < np.where(frame["age"] > 40, wrong, 0.5), "yes", "no")
    return frame, y


def frame_model(calibrator=None):
    encoder = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["channel"]), ("passthrough", ["age", "income"])
    )
    calibrator = fixed_tree(max_depth=3) if calibrator is None else calibrator
    return CalibratedClassifier(make_pipeline(encoder, GaussianNB()), calibrator)


@pytest.fixture(scope="module")
def fitted():
    frame, y = made_frame()
    return frame_model().fit(frame, y), frame, y


def steps(values, n_points):
    """The middles of the cells: the range of the values and a little more."""
    low, high = values.min(), values.max()
    margin = 0.02 * (high - low)
    edges = np.linspace(low - margin, high + margin, n_points + 1)
    return (edges[:-1] + edges[1:]) / 2


def shown(axes):
    return np.asarray(axes.get_images()[0].get_array())


def points(axes):
    return [np.asarray(part.get_offsets()) for part in axes.collections]


@pytest.mark.parametrize(
    "calibrator",
    [fixed_tree(max_depth=3), CalibrationForest(5, random_state=0), IsotonicScaling()],
    ids=["tree", "forest", "global"],
)
def test_planes_are_what_is_predicted_there(calibrator):
    X, y, _ = make_rows(500)
    model = CalibratedClassifier(GaussianNB(), calibrator).fit(X, y)
    display = plot_regions(model, X, attributes=[2, 0], n_points=7)
    across, up = steps(X[:, 2], 7), steps(X[:, 0], 7)
    middle = np.sort(X[:, 1])[(500 - 1) // 2]
    for row, column in [(0, 0), (0, 6), (6, 0), (3, 5)]:
        cell = [[up[row], middle, across[column]]]
        assert display.after[row, column] == pytest.approx(model.predict_proba(cell)[0, 1])
        before = model.estimator_.predict_proba(cell)[0, 1]
        assert display.before[row, column] == pytest.approx(before)
    assert display.held == {"x1": middle}
    for axes, plane in zip(display.ax_, (display.before, display.after), strict=True):
        np.testing.assert_array_equal(shown(axes), plane)
        assert axes.get_xlabel() == "x2"
    assert display.ax_[0].get_ylabel() == "x0"


def test_a_nominal_attribute_has_a_cell_for_every_category(fitted):
    model, frame, _ = fitted
    display = plot_regions(model, frame, attributes=["age", "channel"], n_points=4)
    assert display.after.shape == (3, 4)
    assert [tick.get_text() for tick in display.ax_[0].get_yticklabels()] == ["app", "shop", "web"]
    income = frame["income"].sort_values().iloc[249]
    ages = steps(frame["age"], 4)
    for row, channel in enumerate(["app", "shop", "web"]):
        cells = pd.DataFrame({"age": ages, "channel": channel, "income": income, "flag": True})
        expected = model.predict_proba(cells)[:, 1]
        np.testing.assert_allclose(display.after[row], expected, atol=1e-12)
    turned = plot_regions(model, frame, attributes=["channel", "age"], n_points=4)
    np.testing.assert_allclose(turned.after, display.after.T, atol=1e-12)
    assert [tick.get_text() for tick in turned.ax_[0].get_xticklabels()] == ["app", "shop", "web"]


def test_other_attributes_are_held_at_typical_or_given_values(fitted):
    model, frame, _ = fitted
    display = plot_regions(model, frame, attributes=["age", "income"], n_points=3)
    assert display.held == {"channel": "web", "flag": True}
    fixed = plot_regions(
        model, frame, attributes=[0, 2], fixed={"channel": "shop", 3: False}, n_points=3
    )
    assert fixed.held == {"channel": "shop", "flag": False}
    assert fixed.figure_._suptitle.get_text() == "held: channel = shop, flag = False"
    cells = pd.DataFrame(
        {
            "age": np.tile(steps(frame["age"], 3), 3),
            "channel": "shop",
            "income": np.repeat(steps(frame["income"], 3), 3),
            "flag": False,
        }
    )
    expected = model.predict_proba(cells)[:, 1].reshape(3, 3)
    np.testing.assert_allclose(fixed.after, expected, atol=1e-12)
    numbers = plot_regions(model, frame, attributes=["age", "channel"], fixed={"income": 123})
    assert numbers.held == {"income": 123.0, "flag": True}


@pytest.mark.parametrize(
    "convert",
    [pl.from_pandas, pa.Table.from_pandas, lambda frame: frame.set_index(np.zeros(len(frame)))],
    ids=["polars", "pyarrow", "pandas-index"],
)
def test_tables_of_all_kinds_give_the_same_plane(fitted, convert):
    _, frame, y = fitted
    scores = np.full(len(frame), 0.3)
    tree = fixed_tree(max_depth=3).fit(frame, y, scores=scores)
    how = {"attributes": ["age", "channel"], "fixed": {"income": 2900.0}, "n_points": 5}
    expected = plot_regions(tree, frame, scores=scores, **how)
    display = plot_regions(tree, convert(frame), scores=scores, **how)
    np.testing.assert_array_equal(display.after, expected.after)
    assert display.held == expected.held


def test_sparse_matrices_and_lists_give_the_same_plane():
    X, y, scores = make_rows()
    tree = fixed_tree(max_depth=2).fit(X, y, scores=scores)
    expected = plot_regions(tree, X, scores=scores, attributes=[0, 1], n_points=4)
    for same in (csr_array(X), X.tolist(), X.astype(object)):
        display = plot_regions(tree, same, scores=scores, attributes=[0, 1], n_points=4)
        np.testing.assert_array_equal(display.after, expected.after)


def test_whole_numbers_may_be_categories():
    random = np.random.default_rng(0)
    X = random.integers(0, 4, (400, 2))
    y = random.random(400) < np.where(X[:, 0] % 2, 0.9, 0.1)
    tree = fixed_tree(categorical_features=[0]).fit(X, y, scores=np.full(400, 0.5))
    display = plot_regions(tree, X, scores=[0.5], n_points=6, attributes=[0, 1])
    assert display.after.shape == (6, 4)
    means = display.after.mean(axis=0)
    assert max(means[0], means[2]) < 0.3 and min(means[1], means[3]) > 0.7


def test_a_calibrator_alone_has_the_same_scores_everywhere():
    X, y, scores = make_rows()
    tree = fixed_tree(max_depth=2).fit(X, y, scores=scores)
    mean = plot_regions(tree, X, scores=scores, attributes=[0, 1], n_points=4)
    typical = scores.mean(axis=0)
    np.testing.assert_allclose(mean.before, typical[1])
    assert mean.held["scores"] == pytest.approx(typical.tolist())
    one = plot_regions(tree, X, scores=[[0.8, 0.2]], attributes=[0, 1], n_points=4)
    np.testing.assert_allclose(one.before, 0.2)
    middle = np.sort(X[:, 2])[(len(X) - 1) // 2]
    cell = [[steps(X[:, 0], 4)[3], steps(X[:, 1], 4)[0], middle]]
    expected = tree.predict_proba(cell, scores=[[0.8, 0.2]])[0, 1]
    assert one.after[0, 3] == pytest.approx(expected)


def test_margins_and_several_classifiers():
    X, y, _ = make_rows(300)
    svm = CalibratedClassifier(LinearSVC(), fixed_tree(max_depth=1)).fit(X, y)
    display = plot_regions(svm, X, attributes=[0, 1], n_points=3)
    margin = svm.estimator_.decision_function(
        [[steps(X[:, 0], 3)[0], steps(X[:, 1], 3)[0], display.held["x2"]]]
    )
    expected = ScoreKind(2, "margin").uncalibrated(margin.reshape(-1, 1))[0, 1]
    assert display.before[0, 0] == pytest.approx(expected)
    both = [GaussianNB(), LogisticRegression()]
    model = CalibratedClassifier(both, fixed_tree(max_depth=1)).fit(X, y)
    display = plot_regions(model, X, attributes=[0, 1], n_points=3)
    cell = [[steps(X[:, 0], 3)[0], steps(X[:, 1], 3)[0], display.held["x2"]]]
    mean = np.mean([each.predict_proba(cell)[0, 1] for each in model.estimator_])
    assert display.before[0, 0] == pytest.approx(mean)


def test_one_of_many_classes_is_chosen():
    X, y, scores = make_rows(400, n_classes=3)
    tree = fixed_tree(max_depth=2).fit(X, y, scores=scores)
    planes = [
        plot_regions(tree, X, y, scores=scores, attributes=[0, 1], n_points=3, pos_label=label)
        for label in (0, 1, 2)
    ]
    np.testing.assert_allclose(sum(display.after for display in planes), 1.0)
    names = [text.get_text() for text in planes[1].figure_.legends[0].get_texts()]
    assert names == ["other classes", "1"]
    n_drawn = [len(part) for part in points(planes[1].ax_[0])]
    rows = np.linspace(0, 399, 300).round().astype(int)
    assert n_drawn == [(y[rows] != 1).sum(), (y[rows] == 1).sum()]


def test_the_attributes_that_matter_are_the_default(fitted):
    model, frame, _ = fitted
    display = plot_regions(model, frame, n_points=3)
    first, second = sorted(np.argsort(-model.calibrator_.feature_importances_)[:2])
    assert display.ax_[0].get_xlabel() == frame.columns[first]
    assert display.ax_[0].get_ylabel() == frame.columns[second]
    X, y, scores = make_rows(500)
    swapped = np.column_stack([np.zeros(500), X[:, 2], X[:, 1], X[:, 0]])
    # The gain of the splits of a published tree without folds is not measured.
    for make in (fixed_tree, fixed_boosted_tree):
        tree = make(max_depth=2).fit(swapped, y, scores=scores)
        assert plot_regions(tree, swapped, scores=scores, n_points=3).ax_[0].get_ylabel() == "x3"


def test_columns_that_the_calibrator_does_not_see():
    frame, y = made_frame()
    model = frame_model().set_params(attributes=["income", "age"]).fit(frame, y)
    display = plot_regions(model, frame, n_points=3)
    assert [display.ax_[0].get_xlabel(), display.ax_[0].get_ylabel()] == ["age", "income"]
    plot_regions(model, frame, attributes=["channel", "flag"])


def test_rows_are_drawn_where_they_are(fitted):
    model, frame, y = fitted
    display = plot_regions(model, frame, y, attributes=["age", "income"], max_rows=500)
    for axes in display.ax_:
        no, yes = points(axes)
        for part, label in ((no, "no"), (yes, "yes")):
            expected = frame.loc[y == label, ["age", "income"]].to_numpy(dtype=float)
            np.testing.assert_array_equal(part, expected)
    looks = [part.get_facecolor()[0, :3].tolist() for part in display.ax_[0].collections]
    assert looks == [[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]
    some = plot_regions(model, frame, y, attributes=["age", "channel"], max_rows=50)
    assert sum(map(len, points(some.ax_[0]))) == 50
    codes = np.vstack(points(some.ax_[0]))[:, 1]
    assert np.abs(codes - codes.round()).max() <= 0.3
    without = plot_regions(model, frame, attributes=["age", "income"])
    assert not points(without.ax_[0]) and not without.figure_.legends


def test_missing_values_are_neither_typical_nor_drawn():
    frame, y = made_frame()
    frame.loc[:299, "income"] = np.nan
    frame.loc[:399, "channel"] = None
    tree = fixed_tree(max_depth=2).fit(frame, y, scores=np.full(500, 0.5))
    display = plot_regions(tree, frame, scores=[0.5], attributes=["age", "flag"])
    assert display.held["income"] == frame["income"].dropna().sort_values().iloc[99]
    assert display.held["channel"] == "web"
    how = {"scores": [0.5], "attributes": ["income", "channel"], "max_rows": 500}
    display = plot_regions(tree, frame, y, **how)
    assert sum(map(len, points(display.ax_[0]))) == 100


def test_colours_rise_from_dark_to_light(fitted):
    model, frame, _ = fitted
    image = plot_regions(model, frame).ax_[0].get_images()[0]
    assert image.get_clim() == (0.0, 1.0)
    grey = image.get_cmap()(np.linspace(0, 1, 50))[:, :3] @ [0.299, 0.587, 0.114]
    assert (np.diff(grey) > 0).all()


def test_titles_ticks_and_labels_can_be_read():
    frame, y = made_frame()
    frame = frame.rename(columns={"channel": "the $channel$ through which it was bought"})
    frame["channel"] = "a very long category $" + frame.iloc[:, 1].astype(str)
    for number in range(12):
        frame[f"another attribute {number}"] = 1.0
    tree = fixed_tree(max_depth=2).fit(frame, y, scores=np.full(500, 0.5))
    display = plot_regions(tree, frame, y, scores=[0.5], attributes=["channel", "age"])
    figure, axes = display.figure_, display.ax_
    held = figure._suptitle
    assert held.get_text().endswith("…") and len(held.get_text().splitlines()) == 2
    ticks = [tick for panel in axes for tick in panel.get_xticklabels()]
    # Slanted labels overlap as boxes, not as letters.
    assert {tick.get_rotation() for tick in ticks} == {30.0}
    texts = [held, *(panel.title for panel in axes), *(panel.xaxis.label for panel in axes)]
    assert_readable(figure, [*texts, axes[0].yaxis.label, *figure.legends[0].get_texts()])


def test_given_axes_are_drawn_on(fitted):
    model, frame, y = fitted
    figure, panels = plt.subplots(1, 2)
    display = plot_regions(model, frame, y, attributes=["age", "income"], ax=panels)
    assert list(display.ax_) == list(panels) and display.figure_ is figure
    assert [axes.get_title() for axes in panels] == ["before calibration", "after calibration"]
    assert len(panels[0].get_legend().get_texts()) == 2
    assert len(figure.axes) == 3
    figure.canvas.draw()


def test_an_attribute_of_one_value_can_be_drawn():
    X, y, scores = make_rows()
    X[:, 1] = 5.0
    tree = fixed_tree(max_depth=1).fit(X, y, scores=scores)
    display = plot_regions(tree, X, scores=scores, attributes=[0, 1], n_points=3)
    assert display.ax_[0].get_ylim() == (4.5, 5.5)


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"attributes": ["age", "agee"]}, ValueError, "attributes names 'agee', which is not a"),
        ({"attributes": [0, 9]}, ValueError, "attributes has the index 9, but X has 4 columns"),
        ({"attributes": "age"}, TypeError, "attributes must be a list"),
        ({"attributes": ["age"]}, ValueError, "attributes must name two different columns"),
        ({"attributes": [0, 0]}, ValueError, "attributes must name two different columns"),
        ({"fixed": {"agee": 3}}, ValueError, "fixed names 'agee', which is not a column of X"),
        ({"fixed": {"age": 3}}, ValueError, "fixed holds 'age', which is one of the attributes"),
        ({"fixed": {"channel": "fax"}}, ValueError, "fixed holds 'channel' at 'fax', which no row"),
        ({"fixed": ["channel"]}, TypeError, "fixed must be a dict"),
        (
            {"fixed": {"income": "high"}, "attributes": [0, 1]},
            ValueError,
            "fixed holds 'income' at 'high'; it is numeric, use a finite number",
        ),
        (
            {"fixed": {"income": np.nan}, "attributes": [0, 1]},
            ValueError,
            "fixed holds 'income' at nan",
        ),
        ({"pos_label": "maybe"}, ValueError, "pos_label is 'maybe', which is not among the"),
        ({"y": ["yes", "no"]}, ValueError, "y has 2 labels, but X has 500 rows"),
        ({"y": ["maybe"] * 500}, ValueError, "y contains .*maybe.* in row 0, which the"),
        ({"scores": [0.5]}, ValueError, "scores is given, but a CalibratedClassifier asks its"),
        ({"n_points": 1}, ValueError, "n_points must be a whole number from 2"),
        ({"max_rows": 0}, ValueError, "max_rows must be a whole number from 1"),
        ({"ax": "here"}, TypeError, "ax must be 2 matplotlib axes or None"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
def test_bad_input_is_refused_before_anything_is_drawn(fitted, change, kind, message):
    model, frame, y = fitted
    how = {"y": y, "attributes": ["age", "income"], **change}
    with pytest.raises(kind, match=message):
        plot_regions(model, frame, **how)
    assert no_figure_is_open()


def test_what_cannot_be_drawn_is_refused(fitted):
    model, frame, _ = fitted
    X, labels, scores = make_rows(400, n_classes=3)
    tree = fixed_tree(max_depth=1).fit(X, labels, scores=scores)
    platt = PlattScaling().fit(None, labels, scores=scores)
    bad_scores = [(None, "scores is missing, and a CalibrationTree alone has no classifier")]
    bad_scores += [(scores[:7], "scores has 7 rows, but X has 400")]
    bad_scores += [(scores[:, :2], "scores has 2 columns, but y has 3 classes")]
    bad_scores += [(scores - 3, "which is not a probability")]
    bad_scores += [(np.full((1, 3), np.nan), "scores contains NaN in row 0")]
    for given, message in bad_scores:
        with pytest.raises(ValueError, match=message):
            plot_regions(tree, X, scores=given, pos_label=1)
    for args, kind, message in [
        ((fixed_tree(), X), NotFittedError, "is not fitted"),
        ((frame_model(), frame), NotFittedError, "is not fitted"),
        ((GaussianNB(), X), TypeError, "calibrator must be a fitted CalibratedClassifier or"),
        ((tree, X, None, scores), ValueError, "pos_label must say which of the 3 classes"),
        ((model, frame[:0]), ValueError, "X has no rows"),
        ((model, frame[["age"]]), ValueError, "X has one attribute, but a plane needs two"),
    ]:
        with pytest.raises(kind, match=message):
            plot_regions(*args)
    with pytest.raises(ValueError, match="X has 2 attributes, but the calibrator was fitted"):
        plot_regions(tree, X[:, :2], scores=scores, pos_label=1)
    with pytest.raises(ValueError, match="'x1', which has no known value in X"):
        gone = X.copy()
        gone[:, 1] = np.nan
        plot_regions(platt, gone, scores=scores, pos_label=1)
    many = frame.assign(channel=[f"c{number % 31}" for number in range(500)])
    with pytest.raises(ValueError, match="'channel', which has 31 categories in X; choose an"):
        plot_regions(model, many, attributes=["channel", "age"])
    assert no_figure_is_open()


def test_columns_go_by_name_and_identifiers_are_not_held():
    frame, y = made_frame()
    scores = np.linspace(0, 1, len(frame))
    strange = frame.assign(customer=[f"c{j}" for j in range(len(frame))])
    with pytest.warns(UserWarning, match="'customer' looks like an identifier"):
        tree = fixed_tree().fit(strange, y, scores)
    other = frame[frame.columns[::-1]].assign(when=pd.Timestamp("2020-01-01"))
    display = plot_regions(tree, other, scores=[0.4], n_points=5, attributes=["age", "channel"])
    assert set(display.held) == {"income", "flag", "scores"}
    expected = plot_regions(tree, strange, scores=[0.4], n_points=5, attributes=["age", "channel"])
    assert np.array_equal(display.after, expected.after)
    by_place = plot_regions(tree, other, scores=[0.4], n_points=5, attributes=[3, 2], fixed={1: 1})
    assert by_place.held["income"] == 1
    plt.close("all")
