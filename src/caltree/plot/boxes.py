"""Boxes and branches on axes: measured first, then arranged, then drawn."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .layout import Box, Orientation, Point, Size, arrange

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FONT_SIZE = 9.0
_SMALLEST_FONT_SIZE = 5.0
_PADDING = 0.5  # of a box, in font sizes
_MARGIN = 10.0
_NOTE_GAP = 14.0
_POINTS_PER_INCH = 72.0
_WIDEST_DOWNWARDS = 15.0 * _POINTS_PER_INCH
_LARGEST_SIDE = 200.0 * _POINTS_PER_INCH
_NO_SHARE, _ALL = (1.0, 1.0, 1.0), (0.72, 0.83, 0.91)
_LINE = "#333333"


@dataclass(frozen=True)
class _Page:
    """An arranged tree with a note above it."""

    note: str
    note_size: Size
    tree_size: Size

    @property
    def size(self) -> Size:
        """The whole, with its margins."""
        width = max(self.tree_size[0], self.note_size[0])
        return width + 2 * _MARGIN, self.top + self.tree_size[1] + _MARGIN

    @property
    def top(self) -> float:
        """Where the tree begins."""
        return _MARGIN + (self.note_size[1] + _NOTE_GAP if self.note else 0.0)

    @property
    def left(self) -> float:
        """Where the tree begins, below a note that may be wider."""
        return (self.size[0] - self.tree_size[0]) / 2

    def scale(self, room: Size) -> float:
        """The factor, at most 1, by which everything shrinks to fit."""
        return min(room[0] / self.size[0], room[1] / self.size[1], 1.0)


def draw_new(trees: Mapping[Orientation, Box], note: str) -> Axes:
    """Draw a tree on a new figure of the size it needs, in the first way that is not too wide.

    For each way, the tree has boxes of its own.
    """
    import matplotlib.pyplot as plt

    for way, root in trees.items():
        page = _lay_out(root, way, note, plt.rcParams["figure.dpi"])
        if page.size[0] <= _WIDEST_DOWNWARDS:
            break
    width, height = (side / _POINTS_PER_INCH for side in page.size)
    if max(page.size) > _LARGEST_SIDE:
        n_leaves = sum(not box.children for box in root.all())
        raise ValueError(
            f"tree has {n_leaves} leaves to draw, which would need a picture of {width:.0f} by "
            f"{height:.0f} inches; draw the top of it with max_depth, or use to_text"
        )
    axes = plt.figure(figsize=(width, height)).add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    return _draw(axes, root, page, page.size)


def draw_into(axes: Axes, trees: Mapping[Orientation, Box], note: str) -> Axes:
    """Draw a tree as large as fits, but no larger than on a figure of its own."""
    figure = axes.figure
    axes.set_axis_off()
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure.figure)
    extent = axes.get_window_extent()
    room = (_points(extent.width, figure.dpi), _points(extent.height, figure.dpi))
    pages = {way: _lay_out(root, way, note, figure.dpi) for way, root in trees.items()}
    best = max(trees, key=lambda way: pages[way].scale(room))
    font_size = _FONT_SIZE * pages[best].scale(room)
    if font_size < _SMALLEST_FONT_SIZE:
        warnings.warn(
            f"the tree fits into ax only with text of {font_size:.1f} points; leave ax out, give "
            "larger axes, or draw less with max_depth",
            UserWarning,
            stacklevel=3,
        )
    return _draw(axes, trees[best], pages[best], room)


def _lay_out(root: Box, way: Orientation, note: str, dpi: float) -> _Page:
    note_size = _measure(root, note, dpi)
    return _Page(note, note_size, arrange(root, way))


def _points(pixels: float, dpi: float) -> float:
    return pixels * _POINTS_PER_INCH / dpi


def _measure(root: Box, note: str, dpi: float) -> Size:
    """Set the sizes of all boxes and labels, and return that of the note."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    scratch = Figure(dpi=dpi)
    FigureCanvasAgg(scratch)
    known: dict[tuple[str, str], Size] = {("", "sans-serif"): (0.0, 0.0)}

    def size_of(text: str, family: str) -> Size:
        if (text, family) not in known:
            artist = scratch.text(0, 0, text, fontsize=_FONT_SIZE, family=family, parse_math=False)
            extent = artist.get_window_extent()
            artist.remove()
            known[text, family] = (_points(extent.width, dpi), _points(extent.height, dpi))
        return known[text, family]

    border = 2 * _PADDING * _FONT_SIZE
    for box in root.all():
        width, height = size_of(box.text, "monospace")
        box.size = (width + border, height + border)
        box.label_size = size_of(box.label, "sans-serif")
    return size_of(note, "sans-serif")


def _draw(axes: Axes, root: Box, page: _Page, room: Size) -> Axes:
    """Draw an arranged tree in the middle of axes of the given size."""
    scale = page.scale(room)
    half_width, half_height = room[0] / scale / 2, room[1] / scale / 2
    middle, centre = page.size[0] / 2, page.size[1] / 2
    axes.set_xlim(middle - half_width, middle + half_width)
    axes.set_ylim(centre + half_height, centre - half_height)
    font_size = _FONT_SIZE * scale

    def shift(point: Point) -> Point:
        return point[0] + page.left, point[1] + page.top

    if page.note:
        axes.text(_MARGIN, _MARGIN, page.note, fontsize=font_size, va="top", parse_math=False)
    for box in root.all():
        if box.branch:
            across, down = zip(*map(shift, box.branch), strict=True)
            axes.plot(across, down, color=_LINE, linewidth=0.9 * scale, zorder=1)
            _draw_label(axes, shift(box.label_place), box.label, font_size)
        _draw_box(axes, shift(box.place), box, font_size)
    return axes


def _draw_label(axes: Axes, place: Point, label: str, font_size: float) -> None:
    patch = {"facecolor": "white", "edgecolor": "none", "boxstyle": "square,pad=0.1"}
    axes.text(
        *place, label, ha="center", va="center", fontsize=font_size, bbox=patch, parse_math=False
    )


def _draw_box(axes: Axes, place: Point, box: Box, font_size: float) -> None:
    share = min(max(box.share, 0.0), 1.0)
    colour = tuple(
        (1 - share) * none + share * all_ for none, all_ in zip(_NO_SHARE, _ALL, strict=True)
    )
    patch = {
        "facecolor": colour,
        "edgecolor": _LINE,
        "linewidth": 0.8 * font_size / _FONT_SIZE,
        "boxstyle": f"round,pad={_PADDING},rounding_size=0.6",
    }
    axes.text(
        *place,
        box.text,
        ha="center",
        va="center",
        multialignment="left",
        family="monospace",
        fontsize=font_size,
        bbox=patch,
        parse_math=False,
    )
