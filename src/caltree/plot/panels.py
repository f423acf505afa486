"""The axes of reliability diagrams: a panel per class, with a histogram below."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._inputs.arrays import Floats
from ..reliability import ReliabilityCurve
from .style import COLOURS, GREY, LINES, MARKERS, legend_name, plain, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.gridspec import SubplotSpec
    from matplotlib.lines import Line2D


_REFERENCE = "perfectly calibrated"
_HISTOGRAM = "caltree histogram of predictions"
_LEGEND = "caltree legend"
_LEGEND_INCHES = 2.8
_HEIGHTS = (4.0, 1.0)
_MARGIN = 0.02
_FEW_TICKS = (0.0, 0.5, 1.0)
_ONE_ROW = 3
_MOST_COLUMNS = 6
_LONGEST_NAME = 40
_LONGEST_TITLE = 24


@dataclass(frozen=True)
class Style:
    """The name and the line properties of the curve of one model."""

    name: str | None
    properties: Mapping[str, Any]

    @classmethod
    def from_kwargs(cls, name: str | None, kwargs: Mapping[str, Any]) -> Style:
        """Check the properties as matplotlib does, before anything is drawn."""
        from matplotlib.cbook import normalize_kwargs
        from matplotlib.lines import Line2D

        properties = normalize_kwargs(dict(kwargs), Line2D)
        Line2D([], [], **properties)
        return cls(name, properties)

    def of_line(self, number: int, small: bool) -> dict[str, Any]:
        """All properties of the curve, `number` being its place on the axes."""
        label = {} if self.name is None else {"label": legend_name(self.name, _LONGEST_NAME)}
        return {
            "color": COLOURS[number % len(COLOURS)],
            "marker": MARKERS[number % len(MARKERS)],
            "linestyle": LINES[number % len(LINES)],
            "markersize": 3 if small else 4.5,
            "linewidth": 1.2,
            **label,
            **self.properties,
        }


@dataclass(frozen=True)
class Panel:
    """One diagram, perhaps with a histogram."""

    axes: Axes
    histogram: Axes | None
    small: bool

    @property
    def lowest(self) -> Axes:
        """The axes at the bottom."""
        return self.axes if self.histogram is None else self.histogram

    def draw(
        self,
        curve: ReliabilityCurve,
        band: tuple[Floats, Floats] | None,
        heights: Floats,
        ref_line: bool,
        style: Style,
    ) -> tuple[Line2D, Any]:
        """Add the curve of one model; returns its line and its band."""
        others = [line for line in self.axes.get_lines() if line.get_label() != _REFERENCE]
        if ref_line and len(others) == len(self.axes.get_lines()):
            self.axes.plot([0, 1], [0, 1], "-", color=GREY, linewidth=0.9, label=_REFERENCE)
        look = style.of_line(len(others), self.small)
        [line] = self.axes.plot(curve.predicted, curve.observed, **look)
        colour = line.get_color()
        drawn = None
        if band is not None:
            # The edge is what shows of the band of a single bin.
            drawn = self.axes.fill_between(
                curve.predicted, *band, facecolor=(colour, 0.15), edgecolor=(colour, 0.3), zorder=1
            )
        if self.histogram is not None:
            edges = np.linspace(0.0, 1.0, len(heights) + 1)
            look = {"color": colour, "linestyle": line.get_linestyle(), "linewidth": 1.2}
            self.histogram.stairs(heights, edges, **look)
        return line, drawn


def make_panels(
    axes: Sequence[Axes] | None, labels: Sequence[Any], kind: str, histogram: bool
) -> list[Panel]:
    """Return a panel per class, on the given axes or on those of a new figure."""
    several = len(labels) > 1
    made = axes is None
    diagrams = _new_axes(len(labels), histogram) if axes is None else list(axes)
    panels = []
    for diagram, label in zip(diagrams, labels, strict=True):
        is_new = not diagram.get_lines()
        below = _histogram_below(diagram, small=several) if histogram else None
        panel = Panel(diagram, below, several)
        _set_limits(panel)
        if several:
            diagram.set_title(plain(shorten(label, _LONGEST_TITLE)), fontsize=9)
        if not several:
            _name_axes(panel, _joint_label(panel, label, kind), kind)
        elif is_new and not made:
            _name_axes(panel, None, kind)
        panels.append(panel)
    if made and several:
        _name_all(panels, *_axis_names(None, kind))
    return panels


def finish_panels(panels: Sequence[Panel], several: bool) -> None:
    """Rescale the histograms, and make a legend if some model has a name."""
    from matplotlib.patches import StepPatch

    for panel in panels:
        if panel.histogram is not None:
            steps = [each for each in panel.histogram.patches if isinstance(each, StepPatch)]
            highest = max(float(np.max(each.get_data()[0])) for each in steps)
            panel.histogram.set_ylim(0.0, 1.08 * highest)
    axes = panels[0].axes
    handles, names = axes.get_legend_handles_labels()
    if set(names) <= {_REFERENCE}:
        return
    if not several:
        axes.legend(loc="best", fontsize=8)
    else:
        figure = axes.figure
        for old in [each for each in figure.legends if each.get_label() == _LEGEND]:
            old.remove()
        n_columns = max(1, int(figure.bbox.width / figure.dpi / _LEGEND_INCHES))
        legend = figure.legend(
            handles, names, loc="outside upper center", fontsize=8, ncols=n_columns
        )
        legend.set_label(_LEGEND)


def _new_axes(count: int, histogram: bool) -> list[Axes]:
    import matplotlib.pyplot as plt

    if count == 1:
        size = (5.0, 6.0 if histogram else 5.0)
        return [plt.figure(figsize=size, layout="constrained").add_subplot()]
    n_columns = _n_columns(count)
    n_rows = math.ceil(count / n_columns)
    size = (0.6 + 2.1 * n_columns, 0.9 + (2.6 if histogram else 2.2) * n_rows)
    figure = plt.figure(figsize=size, layout="constrained")
    heights = _HEIGHTS if histogram else _HEIGHTS[:1]
    grid = figure.add_gridspec(n_rows * len(heights), n_columns, height_ratios=heights * n_rows)
    axes: list[Axes] = []
    for number in range(count):
        row, column = divmod(number, n_columns)
        shared = {"sharex": axes[0], "sharey": axes[0]} if axes else {}
        axes.append(figure.add_subplot(grid[row * len(heights), column], **shared))
        if histogram:
            _add_histogram(axes[-1], grid[row * 2 + 1, column], small=True)
    return axes


def _n_columns(count: int) -> int:
    return count if count <= _ONE_ROW else min(math.ceil(math.sqrt(count)), _MOST_COLUMNS)


def _histogram_below(diagram: Axes, *, small: bool) -> Axes:
    """The axes of the histogram: those that are there, or a part of the diagram's place."""
    place = _place_of(diagram)
    for other in diagram.figure.axes:
        below = other.get_subplotspec() if other.get_label() == _HISTOGRAM else None
        if below is not None and _is_next_below(below, place):
            return other
    grid = place.subgridspec(2, 1, height_ratios=_HEIGHTS, hspace=0.05)
    diagram.set_subplotspec(grid[0])
    return _add_histogram(diagram, grid[1], small=small)


def _is_next_below(lower: SubplotSpec, upper: SubplotSpec) -> bool:
    return (
        lower.get_gridspec() is upper.get_gridspec()
        and lower.colspan == upper.colspan
        and lower.rowspan.start == upper.rowspan.stop
    )


def _add_histogram(diagram: Axes, place: SubplotSpec, *, small: bool) -> Axes:
    below = diagram.figure.add_subplot(place, sharex=diagram, label=_HISTOGRAM)
    diagram.tick_params(labelbottom=False)
    below.set_xlabel(diagram.get_xlabel())
    diagram.set_xlabel("")
    below.spines[["top", "right"]].set_visible(False)
    below.tick_params(labelsize=7 if small else 8)
    if small:
        below.set_yticks([])
    else:
        below.locator_params(axis="y", nbins=2)
    return below


def _place_of(axes: Axes) -> SubplotSpec:
    """Where axes are in their grid; those without one are given a grid of their own."""
    place = axes.get_subplotspec()
    if place is None:
        box = axes.get_position()
        grid = axes.figure.add_gridspec(1, 1, left=box.x0, right=box.x1, bottom=box.y0, top=box.y1)
        place = grid[0]
        axes.set_subplotspec(place)
    return place


def _axis_names(label: Any, kind: str) -> tuple[str, str]:
    if kind == "top_label":
        return "largest predicted probability", "observed frequency of its class"
    of_class = "" if label is None else f" of {plain(shorten(label, _LONGEST_TITLE))}"
    return f"predicted probability{of_class}", f"observed frequency{of_class}"


def _joint_label(panel: Panel, label: Any, kind: str) -> Any:
    """The class that all curves of a panel are of; None if they are of several."""
    named = panel.lowest.get_xlabel()
    return label if named in ("", _axis_names(label, kind)[0]) else None


def _name_axes(panel: Panel, label: Any, kind: str) -> None:
    across, up = _axis_names(label, kind)
    panel.lowest.set_xlabel(across)
    panel.axes.set_ylabel(up)
    if panel.histogram is not None and not panel.small:
        panel.histogram.set_ylabel("rows")


def _name_all(panels: Sequence[Panel], across: str, up: str) -> None:
    """Name the axes of a grid of panels once, and label the ticks at its left and its bottom."""
    n_columns = _n_columns(len(panels))
    for number, panel in enumerate(panels):
        panel.lowest.tick_params(labelbottom=number + n_columns >= len(panels))
        panel.axes.tick_params(labelleft=number % n_columns == 0)
    figure = panels[0].axes.figure
    figure.supxlabel(across, fontsize=10)
    figure.supylabel(up, fontsize=10)


def _set_limits(panel: Panel) -> None:
    panel.axes.set_xlim(-_MARGIN, 1.0 + _MARGIN)
    panel.axes.set_ylim(-_MARGIN, 1.0 + _MARGIN)
    if panel.small:
        panel.axes.set_xticks(_FEW_TICKS)
        panel.axes.set_yticks(_FEW_TICKS)
        panel.axes.tick_params(labelsize=7)
