"""`plot_regions`: probabilities before and after calibration, over two attributes."""

from __future__ import annotations

import reprlib
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from .._base import Calibrator
from .._classifier_base import CalibratedClassifierBase, before_and_after
from .._fitted.model import FittedModel
from .._inputs.arrays import Floats
from .._inputs.indexing import column_positions, take_columns
from .._inputs.labels import known_labels
from .._inputs.parameters import check_count
from .._inputs.score_columns import turn
from .._inputs.tables import Table, read_table
from .._model_base import AttributeCalibrator, TreeCalibrator, fitted_attributes
from .plane import Axis, Plane, make_plane
from .reliability_data import check_label
from .style import check_axes, legend_name, plain, require_matplotlib, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_TITLES = ("before calibration", "after calibration")
_COLOURS = "viridis"  # as light, in grey too, as the probability is high
_LONGEST_NAME = 24
_LONGEST_LINE = 120
_MOST_LINES = 2
_MOST_LETTERS = 36
_JITTER = 0.3


@dataclass(frozen=True, eq=False)
class RegionsDisplay:
    """The picture that `plot_regions` drew, and its numbers.

    Attributes
    ----------
    ax_ : ndarray of two matplotlib Axes
        Before and after.
    figure_ : matplotlib Figure
        The figure of both.
    before, after : ndarray of shape (cells up, cells across)
        The probabilities.
    held : dict
        The values of the attributes that do not vary; without an estimator, of the scores too.
    """

    ax_: npt.NDArray[np.object_]
    figure_: Any
    before: Floats
    after: Floats
    held: dict[str, Any]


def plot_regions(
    calibrator: Any,
    X: Any,
    y: Any = None,
    scores: Any = None,
    *,
    attributes: Any = None,
    fixed: Mapping[Any, Any] | None = None,
    pos_label: Any = None,
    n_points: int = 200,
    max_rows: int = 300,
    ax: Any = None,
) -> RegionsDisplay:
    """Draw the probability of a class before and after calibration, over two attributes.

    Parameters
    ----------
    calibrator : CalibratedClassifier or calibrator
        Fitted. A classifier is asked for its scores at every point of the plane; a calibrator
        alone, such as a `CalibrationTree`, gets the same scores everywhere, so the plane shows how
        it changes them in each place.
    X : table of shape (n, d)
        Rows from which the values of the attributes are taken.
    y : array-like of shape (n,), optional
        Their labels. If they are given, the rows are drawn, regardless of their other attributes.
    scores : array-like, optional
        For a calibrator alone: the scores of these rows, of which the mean is used, or one row of
        scores.
    attributes : pair of names or indices, optional
        The columns that vary, from left to right and upwards; numbers or categories. By default the
        two that explain most of the miscalibration (`feature_importances_`).
    fixed : dict, optional
        Values of other attributes, by name or index. The others have the median of `X`, or the
        most frequent category.
    pos_label : label, optional
        The class to look at; the second of two by default.
    n_points : int, default=200
        The number of points of a numeric attribute.
    max_rows : int, default=300
        The maximum number of rows to draw, evenly chosen.
    ax : pair of matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    RegionsDisplay
        The axes, and what they show.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import numpy as np
    >>> from sklearn.dummy import DummyClassifier
    >>> from caltree import CalibratedClassifier
    >>> from caltree.plot import plot_regions
    >>> random = np.random.default_rng(0)
    >>> X = random.random((1000, 2))
    >>> y = random.random(1000) < np.where(X[:, 0] > 0.5, 0.9, 0.1)
    >>> model = CalibratedClassifier(DummyClassifier()).fit(X, y)
    >>> display = plot_regions(model, X, y, attributes=[0, 1], n_points=2)
    >>> display.before.round(1).tolist(), display.after.round(1).tolist()
    ([[0.5, 0.5], [0.5, 0.5]], [[0.1, 0.9], [0.1, 0.9]])
    """
    require_matplotlib()
    given = check_axes(ax, 2, "pass one for before and one for after")
    _check_calibrator(calibrator, scores)
    label = _check_label(pos_label, calibrator.classes_)
    check_count("n_points", n_points, 2)
    check_count("max_rows", max_rows, 1)
    table = read_table(X, "X")
    if table.shape[0] == 0:
        raise ValueError("X has no rows; give rows that show the values of the attributes")
    class_index = calibrator.classes_.tolist().index(label)
    happened = None
    if y is not None:
        happened = known_labels(y, calibrator.classes_, table.shape[0])[:, class_index] > 0
    pair = _check_pair(attributes, table, calibrator)
    X, pair, fixed = _take_used(X, pair, fixed, calibrator)
    plane = make_plane(X, pair, _nominal(calibrator, read_table(X, "X")), fixed, n_points)
    before, after, held_scores = _probabilities(calibrator, plane, scores, table.shape[0])
    held = {**plane.held, **held_scores}
    surfaces = [part[:, class_index].reshape(plane.shape) for part in (before, after)]

    panels = _new_panels(held) if given is None else given
    for axes, surface, title in zip(panels, surfaces, _TITLES, strict=True):
        image = _draw_surface(axes, surface, plane)
        axes.set_title(title)
        if happened is not None:
            names = _names_of_rows(label, calibrator.classes_.tolist())
            _draw_rows(axes, plane, happened, names, max_rows)
    panels[0].set_ylabel(_name(plane.up.name))
    figure = panels[0].figure
    colours = figure.colorbar(image, ax=panels)
    of_class = f"probability of {_name(label)}"
    colours.set_label(of_class)
    if happened is not None:
        _draw_legend(panels)
    both = np.array(panels, dtype=object)
    return RegionsDisplay(both, figure, surfaces[0], surfaces[1], held)


def _check_calibrator(calibrator: Any, scores: Any) -> None:
    called = type(calibrator).__name__
    if not isinstance(calibrator, CalibratedClassifierBase | Calibrator):
        raise TypeError(
            f"calibrator must be a fitted CalibratedClassifier or calibrator, got {called}; wrap "
            "a classifier in CalibratedClassifier"
        )
    check_is_fitted(calibrator)
    if isinstance(calibrator, CalibratedClassifierBase):
        if scores is not None:
            raise ValueError(
                "scores is given, but a CalibratedClassifier asks its own classifier for them; "
                "leave scores out, or give its calibrator_ alone"
            )
    elif scores is None:
        raise ValueError(
            f"scores is missing, and a {called} alone has no classifier to ask; give the scores "
            "of the rows of X, or a CalibratedClassifier"
        )


def _check_label(pos_label: Any, classes: npt.NDArray[Any]) -> Any:
    known = classes.tolist()
    if pos_label is None:
        if len(known) == 2:
            return known[1]
        raise ValueError(
            f"pos_label must say which of the {len(known)} classes {reprlib.repr(known)} to draw"
        )
    check_label(pos_label, known)
    return pos_label


def _check_pair(attributes: Any, table: Table, calibrator: Any) -> tuple[int, int]:
    if table.shape[1] < 2:
        raise ValueError("X has one attribute, but a plane needs two; use a ReliabilityDisplay")
    if attributes is None:
        return _most_important(calibrator, table)
    pair = column_positions(attributes, table, "attributes")
    if len(pair) != 2 or pair[0] == pair[1]:
        raise ValueError(
            f"attributes must name two different columns of X, got {reprlib.repr(attributes)}"
        )
    return pair[0], pair[1]


def _take_used(
    X: Any, pair: tuple[int, int], fixed: Any, calibrator: Any
) -> tuple[Any, tuple[int, int], Any]:
    """Leave out columns of a table with names that neither the calibrator nor the plane uses."""
    known, table = fitted_attributes(calibrator), read_table(X, "X")
    if known is None or known.names is None or table.names is None:
        return X, pair, fixed
    if isinstance(fixed, Mapping):
        positions = column_positions(list(fixed), table, "fixed")
        fixed = {table.label(j): v for j, v in zip(positions, fixed.values(), strict=True)}
    names = [*known.used_names, *(table.label(j) for j in pair), *(fixed or ())]
    wanted = sorted(set(column_positions(names, table, "X")))
    return take_columns(X, wanted), (wanted.index(pair[0]), wanted.index(pair[1])), fixed


def _calibrator_and_columns(calibrator: Any, table: Table) -> tuple[Any, list[int | None]]:
    """The calibrator itself, and where each of its attributes is in the table."""
    found = calibrator
    if isinstance(calibrator, CalibratedClassifierBase):
        found = calibrator.calibrator_
    known = fitted_attributes(found)
    if known is not None and known.names is not None and table.names is not None:
        position_of = {name: j for j, name in enumerate(table.names)}
        return found, [position_of.get(name) for name in known.names]
    if isinstance(calibrator, CalibratedClassifierBase):
        return found, list(calibrator.attribute_columns_.positions_in(table))
    return found, list(range(table.shape[1]))


def _most_important(calibrator: Any, table: Table) -> tuple[int, int]:
    """The two attributes that carry most of the miscalibration, and else the first ones."""
    found, positions = _calibrator_and_columns(calibrator, table)
    importances = np.zeros(table.shape[1])
    if isinstance(found, AttributeCalibrator):
        own = found.feature_importances_
        if isinstance(found, TreeCalibrator) and not (own > 0.0).any():
            own = _rows_split(found.model_)
        if len(own) == len(positions):
            for position, share in zip(positions, own, strict=True):
                if position is not None:
                    importances[position] = share
    first, second = sorted(np.argsort(-importances, kind="stable")[:2].tolist())
    return first, second


def _rows_split(model: FittedModel) -> Floats:
    """By attribute, the rows that are split on it: all that is known if no gain was measured."""
    inner = model.attribute >= 0
    n_attributes = len(model.attributes.columns)
    rows = np.bincount(model.attribute[inner], model.n_rows[inner], minlength=n_attributes)
    return rows.astype(np.float64)


def _nominal(calibrator: Any, table: Table) -> npt.NDArray[np.bool_]:
    found, positions = _calibrator_and_columns(calibrator, table)
    known = fitted_attributes(found)
    nominal = np.zeros(table.shape[1], dtype=bool)
    if known is not None and len(known.columns) == len(positions):
        for position, each in zip(positions, known.columns, strict=True):
            if position is not None:
                nominal[position] = each.categories is not None
    return nominal


def _probabilities(
    calibrator: Any, plane: Plane, scores: Any, n_rows: int
) -> tuple[Floats, Floats, dict[str, Any]]:
    """The probabilities of all classes before and after, and the scores that were held."""
    if isinstance(calibrator, CalibratedClassifierBase):
        before, after, _ = before_and_after(calibrator, plane.table)
        return before, after, {}
    matrix = calibrator.read_scores(scores)
    if len(matrix) != 1:
        matrix = calibrator.read_scores(scores, n_rows)
    typical = matrix.mean(axis=0)
    everywhere = np.tile(typical, (plane.shape[0] * plane.shape[1], 1))
    after = calibrator.calibrate_scores(plane.table, everywhere)
    before = calibrator.uncalibrated(everywhere)
    columns = calibrator.score_columns_
    given = turn(typical, calibrator.score_type_) if columns.is_turned else typical
    return before, after, {"scores": given.tolist()}


def _names_of_rows(label: Any, classes: list[Any]) -> tuple[str, str]:
    """The names in the legend: of the other rows, and of those of the class."""
    others = [each for each in classes if each != label]
    other = legend_name(others[0], _LONGEST_NAME) if len(others) == 1 else "other classes"
    return other, legend_name(label, _LONGEST_NAME)


def _new_panels(held: Mapping[str, Any]) -> list[Axes]:
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(10.0, 5.2), layout="constrained")
    left = figure.add_subplot(1, 2, 1)
    right = figure.add_subplot(1, 2, 2, sharex=left, sharey=left)
    right.tick_params(labelleft=False)
    if held:
        figure.suptitle(_held_text(held), fontsize=9)
    return [left, right]


def _held_text(held: Mapping[str, Any]) -> str:
    parts = [f"{_name(name)} = {_format_value(value)}" for name, value in held.items()]
    text = "held: " + ", ".join(part.replace(" ", "\u00a0") for part in parts)
    lines = textwrap.wrap(text, _LONGEST_LINE, max_lines=_MOST_LINES, placeholder=" …")
    return "\n".join(lines).replace("\u00a0", " ")


def _format_value(value: Any) -> str:
    if value is None:
        return "missing"
    if isinstance(value, list):
        return ", ".join(f"{each:.3g}" for each in value[:3]) + (" …" if len(value) > 3 else "")
    return f"{value:.4g}" if isinstance(value, float) else _name(value)


def _name(value: Any) -> str:
    return plain(shorten(value, _LONGEST_NAME))


def _draw_surface(axes: Axes, surface: Floats, plane: Plane) -> Any:
    image = axes.imshow(
        surface,
        origin="lower",
        extent=(*plane.across.limits, *plane.up.limits),
        aspect="auto",
        interpolation="nearest",
        cmap=_COLOURS,
        vmin=0.0,
        vmax=1.0,
    )
    axes.set_xlabel(_name(plane.across.name))
    if plane.across.ticks is not None:
        names = [_name(each) for each in plane.across.ticks]
        slanted: dict[str, Any] = {"rotation": 30, "ha": "right"}
        slanted = slanted if sum(map(len, names)) > _MOST_LETTERS else {}
        axes.set_xticks(range(len(names)), names, **slanted)
    if plane.up.ticks is not None:
        names = [_name(each) for each in plane.up.ticks]
        axes.set_yticks(range(len(names)), names)
    return image


def _draw_rows(
    axes: Axes, plane: Plane, happened: npt.NDArray[np.bool_], names: tuple[str, str], most: int
) -> None:
    n_rows = len(happened)
    rows = np.linspace(0, n_rows - 1, min(most, n_rows)).round().astype(np.intp)
    random = np.random.default_rng(0)
    x, y = (_spread(axis, rows, random) for axis in (plane.across, plane.up))
    looks = (("o", "white", "black"), ("^", "black", "white"))
    for is_class, name, (marker, face, edge) in zip((False, True), names, looks, strict=True):
        shown = (happened[rows] == is_class) & np.isfinite(x) & np.isfinite(y)
        axes.scatter(
            x[shown],
            y[shown],
            s=16,
            marker=marker,
            facecolors=face,
            edgecolors=edge,
            linewidths=0.5,
            label=name,
        )


def _spread(axis: Axis, rows: npt.NDArray[np.intp], random: np.random.Generator) -> Floats:
    """The places of rows; those of one category are spread, since they would hide each other."""
    places = axis.places[rows]
    if axis.ticks is None:
        return places
    return np.asarray(places + random.uniform(-_JITTER, _JITTER, len(rows)))


def _draw_legend(panels: list[Axes]) -> None:
    """Say which rows are which, outside the planes if the figure makes room for it."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = panels[0].figure
    look: dict[str, Any] = {"title": "class", "facecolor": "#cccccc", "fontsize": 9}
    if isinstance(figure.get_layout_engine(), ConstrainedLayoutEngine):
        handles, names = panels[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=2, **look)
    else:
        panels[0].legend(loc="best", **look)
