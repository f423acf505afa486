"""The figures of the paper: reliability diagrams, an artificial example, and a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.dummy import DummyClassifier

from .._inputs.arrays import Floats
from ..classifier import CalibratedClassifier
from ..plot import ReliabilityDisplay, plot_regions, plot_tree
from ..published import PublishedCalibrationTree
from ..tree import CalibrationTree
from .data import DataSet
from .generators import rdg1
from .learners import NaiveBayes
from .protocol import CALIBRATORS, calibrate, outer_folds, score, seed_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


DIAGRAMS = ("credit-rating", "kr-vs-kp", "nursery", "sick", "vote")
"""The data sets of the reliability diagrams."""

_COLUMNS = {
    "none": "naive Bayes",
    "platt": "Platt scaling",
    "isotonic": "isotonic regression",
    "pct": "calibration tree",
}
_ONLY = {"nursery": ("priority", "spec_prior")}
_N_BINS = 30


def reliability_figure(data: dict[str, DataSet], *, n_folds: int = 10, seed: int = 1) -> Figure:
    """Reliability diagrams of naive Bayes before and after calibration, one row per data set.

    The probabilities of all test folds of one run are pooled. Of nursery only the classes
    priority and spec_prior are used, as in the paper.
    """
    from matplotlib.figure import Figure

    two_classes = {name: _two_classes(whole) for name, whole in data.items()}
    figure = Figure(figsize=(11, 2.6 * len(data)), dpi=120, layout="constrained")
    grid = figure.subplots(len(data), len(_COLUMNS), sharex=True, sharey=True, squeeze=False)
    for row, (name, binary) in zip(grid, two_classes.items(), strict=True):
        probabilities, truth = _pool_folds(binary, n_folds, seed)
        for axes, (calibrator, title) in zip(row, _COLUMNS.items(), strict=True):
            _draw_diagram(axes, truth, probabilities[calibrator])
            if axes.get_subplotspec().is_first_row():
                axes.set_title(title)
        row[0].set_ylabel(f"{name}\n{binary.classes[1]}")
    figure.supxlabel("predicted probability")
    figure.supylabel("observed share")
    return figure


def _two_classes(data: DataSet) -> DataSet:
    chosen = _ONLY.get(data.name, data.classes)
    if len(chosen) != 2:
        raise ValueError(f"a reliability diagram needs two classes, {data.name} has {len(chosen)}")
    rows = np.isin(data.y, chosen)
    return DataSet(data.name, data.X[rows], data.y[rows], tuple(chosen), data.notes)


def _pool_folds(data: DataSet, n_folds: int, seed: int) -> tuple[dict[str, Floats], Any]:
    """The probability of the second class in every test row of one run, by calibrator."""
    probabilities = {name: np.empty(len(data.y)) for name in _COLUMNS}
    for number, fold in enumerate(outer_folds(data.y, 0, n_folds, seed)):
        scored = score(data, NaiveBayes(), fold, seed_of(data.name, 0, number, seed))
        for name, pooled in probabilities.items():
            pooled[fold[1]] = calibrate(scored, CALIBRATORS[name](), data.classes)[:, 1]
    return probabilities, data.y == data.classes[1]


def _draw_diagram(axes: Axes, truth: Any, probability: Floats) -> None:
    ReliabilityDisplay.from_predictions(
        truth, probability, n_bins=_N_BINS, ax=axes, confidence=None, histogram=False, markersize=3
    )
    axes.set(xlabel="", ylabel="", xticks=[0, 0.5, 1], yticks=[0, 0.5, 1], aspect="equal")


def artificial_figure(seed: int = 0) -> Figure:
    """A classifier that knows only the class frequencies, before and after calibration.

    Two attributes; the second class lives in the lower left and the upper right corner.
    """
    from matplotlib.figure import Figure

    X, y = _corners(np.random.default_rng(seed))
    model = CalibratedClassifier(DummyClassifier(), CalibrationTree()).fit(X, y)
    figure = Figure(figsize=(9, 4.7), dpi=120, layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    plot_regions(model, X, y, attributes=[0, 1], max_rows=len(y), ax=panels)
    titles = ("class frequencies, uncalibrated", "calibrated by a tree")
    for axes, title in zip(panels, titles, strict=True):
        axes.set(title=title, xlabel="$x_1$")
    panels[0].set_ylabel("$x_2$")
    return figure


def _corners(random: np.random.Generator) -> tuple[Floats, npt.NDArray[np.str_]]:
    X = random.random((600, 2))
    inside = (X < 0.5).all(axis=1) | (X > 0.6).all(axis=1)
    y = np.where(random.random(600) < np.where(inside, 0.9, 0.1), "second", "first")
    return X, y


def tree_figure(n_rows: int = 200, seed: int = 5) -> Figure:
    """A calibration tree of an SVM's margins on RDG1, with the formulas in its leaves.

    The rows of the paper are not known; these are some whose tree is as small as the printed one.
    """
    from matplotlib.figure import Figure
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder
    from sklearn.svm import SVC

    data = rdg1(n_rows, seed=seed)
    svm = make_pipeline(OneHotEncoder(sparse_output=False, drop="if_binary"), SVC(C=10, gamma=0.01))
    model = CalibratedClassifier(
        svm, PublishedCalibrationTree(), response_method="decision_function"
    )
    tree = model.fit(data.X, data.y).calibrator_
    size = (max(5.0, 2.5 * tree.get_n_leaves()), 0.4 + 0.85 * (1 + tree.get_depth()))
    figure = Figure(figsize=size, dpi=120)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    plot_tree(tree, ax=axes, counts=False, orientation="down")
    return figure
