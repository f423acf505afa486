"""The figures: what they show is what was computed."""

import io
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from caltree.paper import figures
from caltree.paper.figures import artificial_figure, reliability_figure, tree_figure
from caltree.paper.generators import led24, rdg1
from caltree.paper.learners import NaiveBayes
from caltree.paper.protocol import outer_folds
from caltree.reliability import reliability_curve


def pixels(figure):
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3]


def nursery():
    """Rows of three classes, of which the diagrams use two."""
    data = rdg1(120, seed=2)
    names = np.array(["spec_prior", "priority"])[(data.y == "c0").astype(int)]
    y = np.where(np.arange(120) % 6 == 0, "not_recom", names)
    return replace(data, name="nursery", y=y, classes=("not_recom", "priority", "spec_prior"))


@pytest.fixture(scope="module")
def small():
    return {"vote": replace(rdg1(90, seed=1), name="vote"), "nursery": nursery()}


@pytest.fixture(scope="module")
def diagrams(small):
    return reliability_figure(small, n_folds=3, seed=4)


def curve_of(axes):
    """The points of the second line; the first one is the diagonal."""
    diagonal, curve = axes.get_lines()
    assert diagonal.get_xydata().tolist() == [[0, 0], [1, 1]]
    return curve.get_xydata()


def test_a_row_of_diagrams_for_each_data_set(diagrams):
    axes = np.array(diagrams.axes).reshape(2, 4)
    titles = ["naive Bayes", "Platt scaling", "isotonic regression", "calibration tree"]
    assert [panel.get_title() for panel in axes[0]] == titles
    assert [panel.get_title() for panel in axes[1]] == [""] * 4
    assert [row[0].get_ylabel() for row in axes] == ["vote\nc1", "nursery\nspec_prior"]
    curves = [curve_of(panel) for panel in axes.ravel()]
    assert len({curve.tobytes() for curve in curves}) == 8
    for curve in curves:
        assert len(curve) and (curve >= 0).all() and (curve <= 1).all()


def test_the_first_diagram_is_the_learner_itself_on_all_test_rows(diagrams, small):
    data = small["vote"]
    probability = np.empty(90)
    for train, test in outer_folds(data.y, 0, 3, 4):
        learner = NaiveBayes().fit(data.X.iloc[train], data.y[train])
        probability[test] = learner.predict_proba(data.X.iloc[test])[:, 1]
    expected = reliability_curve(data.y == "c1", probability, n_bins=30)
    points = np.column_stack([expected.predicted, expected.observed])
    np.testing.assert_allclose(curve_of(diagrams.axes[0]), points, rtol=0, atol=1e-12)


def test_only_two_classes_of_nursery_are_used(diagrams, small):
    data = small["nursery"]
    rows = np.isin(data.y, ["priority", "spec_prior"])
    X, y = data.X[rows].reset_index(drop=True), data.y[rows]
    probability = np.empty(len(y))
    for train, test in outer_folds(y, 0, 3, 4):
        learner = NaiveBayes().fit(X.iloc[train], y[train])
        probability[test] = learner.predict_proba(X.iloc[test])[:, 1]
    expected = reliability_curve(y == "spec_prior", probability, n_bins=30)
    points = np.column_stack([expected.predicted, expected.observed])
    np.testing.assert_allclose(curve_of(diagrams.axes[4]), points, rtol=0, atol=1e-12)


def test_more_classes_are_refused_before_any_work(small, monkeypatch):
    monkeypatch.setattr(figures, "_pool_folds", None)
    with pytest.raises(ValueError, match="needs two classes, led24 has 10"):
        reliability_figure({**small, "led24": led24(100)})


def test_diagrams_are_drawn(diagrams):
    shown = pixels(diagrams)
    blue = np.array([0x00, 0x72, 0xB2])
    is_line = (np.abs(shown.astype(int) - blue).max(axis=-1) < 10).ravel()
    assert is_line.sum() > 1000
    assert (shown == 255).all(axis=-1).mean() > 0.5


@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_figures_can_be_saved(diagrams, ending, start):
    file = io.BytesIO()
    diagrams.savefig(file, format=ending)
    assert file.getvalue().startswith(start)


def test_the_artificial_example_before_and_after():
    figure = artificial_figure()
    before, after, _colours = figure.axes
    flat, plane = (np.asarray(panel.get_images()[0].get_array()) for panel in (before, after))
    assert flat.shape == plane.shape == (200, 200)
    assert np.ptp(flat) < 1e-12
    # Row by row from below: x_2 is the first index.
    corners = {"low": plane[50, 50], "high": plane[170, 170]}
    others = {"left": plane[170, 50], "right": plane[50, 170]}
    # The truth is 0.9 and 0.1; an average over the way to a leaf stays short of it.
    assert min(corners.values()) > 0.7 and max(others.values()) < 0.3
    for panel in (before, after):
        points = np.vstack([part.get_offsets() for part in panel.collections])
        assert points.shape == (600, 2)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["first", "second"]
    assert len(np.unique(pixels(figure).reshape(-1, 3), axis=0)) > 100


def shown_texts(axes):
    return [text.get_text() for text in axes.texts]


def test_the_tree_of_rdg1():
    figure = tree_figure()
    [axes] = figure.axes
    texts = shown_texts(axes)
    assert texts[0] == "p: probability of c1, m: its margin"
    formulas = [text for text in texts if text.startswith("logit p = ")]
    assert len(formulas) >= 2 and all(text.endswith(" m") for text in formulas)
    assert (pixels(figure) < 100).all(axis=-1).sum() > 500
