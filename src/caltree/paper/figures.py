"""The figures of the paper: reliability diagrams, an artificial example, and a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.dummy import DummyClassifier

from ..classifier import CalibratedClassifier
from ..reliability import reliability_curve
from ..text import conditions, formulas
from ..tree import CalibrationTree
from .datasets import DataSet
from .generators import rdg1
from .learners import NaiveBayes
from .protocol import CALIBRATORS, calibrated, outer_folds, score, seed_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]
Place: TypeAlias = tuple[float, float]

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
_COLOURS = {"line": "#0072B2", "diagonal": "#bbbbbb", "inner": "#ffffff", "leaf": "#e3e7ea"}


def reliability_figure(data: dict[str, DataSet], *, n_folds: int = 10, seed: int = 1) -> Figure:
    """Reliability diagrams of naive Bayes before and after calibration, one row a data set.

    The probabilities of all test folds of one run are pooled. Of nursery only the classes
    priority and spec_prior are used, as in the paper.
    """
    from matplotlib.figure import Figure

    two_classes = {name: _two_classes(whole) for name, whole in data.items()}
    figure = Figure(figsize=(11, 2.6 * len(data)), dpi=120, layout="constrained")
    grid = figure.subplots(len(data), len(_COLUMNS), sharex=True, sharey=True, squeeze=False)
    for row, (name, binary) in zip(grid, two_classes.items(), strict=True):
        probabilities, truth = _pooled(binary, n_folds, seed)
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


def _pooled(data: DataSet, n_folds: int, seed: int) -> tuple[dict[str, Floats], Any]:
    """The probability of the second class in every test row of one run, by calibrator."""
    probabilities = {name: np.empty(len(data.y)) for name in _COLUMNS}
    for number, fold in enumerate(outer_folds(data.y, 0, n_folds, seed)):
        scored = score(data, NaiveBayes(), fold, seed_of(data.name, 0, number, seed))
        for name, pooled in probabilities.items():
            pooled[fold[1]] = calibrated(scored, CALIBRATORS[name](), data.classes)[:, 1]
    return probabilities, data.y == data.classes[1]


def _draw_diagram(axes: Axes, truth: Any, probability: Floats) -> None:
    curve = reliability_curve(truth, probability, n_bins=_N_BINS)
    axes.plot([0, 1], [0, 1], "--", color=_COLOURS["diagonal"], linewidth=1)
    axes.plot(curve.predicted, curve.observed, "o-", color=_COLOURS["line"], markersize=3)
    axes.set_xlim(-0.03, 1.03)
    axes.set_ylim(-0.03, 1.03)
    axes.set_xticks([0, 0.5, 1])
    axes.set_yticks([0, 0.5, 1])
    axes.set_aspect("equal")


def artificial_figure(seed: int = 0) -> Figure:
    """A classifier that knows only the class frequencies, before and after calibration.

    Two attributes; the second class lives in the lower left and the upper right corner.
    """
    from matplotlib.figure import Figure

    X, y = _corners(np.random.default_rng(seed))
    prior = DummyClassifier()
    model = CalibratedClassifier(prior, CalibrationTree()).fit(X, y)
    figure = Figure(figsize=(9, 4.7), dpi=120, layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    planes = (prior.fit(X, y).predict_proba, model.predict_proba)
    titles = ("class frequencies, uncalibrated", "calibrated by a tree")
    for axes, plane, title in zip(panels, planes, titles, strict=True):
        shown = _draw_plane(axes, plane)
        _draw_rows(axes, X, y)
        axes.set_title(title)
        axes.set_xlabel("$x_1$")
    panels[0].set_ylabel("$x_2$")
    figure.colorbar(shown, ax=list(panels), label="probability of the second class")
    figure.legend(
        *panels[0].get_legend_handles_labels(), title="class", loc="outside lower center", ncols=2
    )
    return figure


def _corners(random: np.random.Generator) -> tuple[Floats, npt.NDArray[np.str_]]:
    X = random.random((600, 2))
    inside = (X < 0.5).all(axis=1) | (X > 0.6).all(axis=1)
    y = np.where(random.random(600) < np.where(inside, 0.9, 0.1), "second", "first")
    return X, y


def _draw_rows(axes: Axes, X: Floats, y: npt.NDArray[np.str_]) -> None:
    style: dict[str, Any] = {"edgecolors": "black", "linewidths": 0.4, "facecolors": "none"}
    for label, marker in (("first", "o"), ("second", "^")):
        across, up = X[y == label].T
        axes.scatter(across, up, s=10, marker=marker, label=label, **style)


def _draw_plane(axes: Axes, predict_proba: Any, n_points: int = 200) -> Any:
    steps = (np.arange(n_points) + 0.5) / n_points
    points = np.column_stack([each.ravel() for each in np.meshgrid(steps, steps)])
    plane = predict_proba(points)[:, 1].reshape(n_points, n_points)
    return axes.imshow(
        plane, origin="lower", extent=(0, 1, 0, 1), cmap="RdBu_r", vmin=0, vmax=1, alpha=0.7
    )


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
    model = CalibratedClassifier(svm, CalibrationTree.published(), score_method="decision_function")
    tree = model.fit(data.X, data.y).calibrator_
    figure = Figure(
        figsize=(max(6.0, 2.9 * tree.get_n_leaves()), 1.8 * (1 + tree.get_depth())),
        dpi=120,
        layout="constrained",
    )
    _draw_tree(figure.subplots(), tree)
    return figure


def _draw_tree(axes: Axes, tree: CalibrationTree) -> None:
    model = tree.tree_
    places = _places(tree)
    for node, place in places.items():
        if model.attribute[node] < 0:
            label = "\n".join(formulas(model, node, tree.classes_.tolist(), 2))
            _draw_node(axes, place, label, _COLOURS["leaf"], family="monospace")
            continue
        name = model.attributes.columns[model.attribute[node]].name
        for branch, condition in enumerate(conditions(model, node)):
            child = places[int(model.first_child[node]) + branch]
            _draw_edge(axes, place, child, condition.removeprefix(name).strip())
        _draw_node(axes, place, name, _COLOURS["inner"])
    across, down = zip(*places.values(), strict=True)
    axes.set_xlim(min(across) - 0.6, max(across) + 0.6)
    axes.set_ylim(min(down) - 0.5, max(down) + 0.4)
    axes.set_axis_off()


def _draw_node(axes: Axes, place: Place, label: str, colour: str, **font: Any) -> None:
    box = {"boxstyle": "round,pad=0.5", "facecolor": colour, "edgecolor": "black"}
    axes.text(*place, label, ha="center", va="center", fontsize=9, bbox=box, **font)


def _draw_edge(axes: Axes, parent: Place, child: Place, label: str) -> None:
    across, down = zip(parent, child, strict=True)
    axes.plot(across, down, color="black", linewidth=0.8, zorder=1)
    middle = (sum(across) / 2, sum(down) / 2)
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
    axes.text(*middle, label, ha="center", va="center", fontsize=9, bbox=box)


def _places(tree: CalibrationTree) -> dict[int, Place]:
    """Leaves side by side from left to right, inner nodes above the middle of their children."""
    model, n_placed = tree.tree_, 0
    places: dict[int, Place] = {}

    def place(node: int, depth: int) -> float:
        nonlocal n_placed
        if model.attribute[node] < 0:
            across = float(n_placed)
            n_placed += 1
        else:
            first = int(model.first_child[node])
            children = range(first, first + int(model.n_children[node]))
            below = [place(child, depth + 1) for child in children]
            across = (below[0] + below[-1]) / 2
        places[node] = (across, -float(depth))
        return across

    place(0, 0)
    return places
