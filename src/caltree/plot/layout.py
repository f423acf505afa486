"""Where the boxes and branches of a drawn tree go, so that nothing overlaps; all in points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Size: TypeAlias = tuple[float, float]
Point: TypeAlias = tuple[float, float]
Orientation: TypeAlias = Literal["down", "right"]

# Between neighbours, and around the line from which the branches of a node part.
_GAP = 14.0
_BUS = 12.0
_STEM = 8.0


@dataclass(eq=False)
class Box:
    """A node and the label of the branch that leads to it, with their places.

    Sizes are widths and heights; places are centres, counted from the upper left corner.
    """

    text: str
    label: str
    share: float
    children: list[Box] = field(default_factory=list)
    size: Size = (0.0, 0.0)
    label_size: Size = (0.0, 0.0)
    place: Point = (0.0, 0.0)
    label_place: Point = (0.0, 0.0)
    branch: list[Point] = field(default_factory=list)

    def all(self) -> Iterator[Box]:
        """The box and all below it."""
        yield self
        for child in self.children:
            yield from child.all()


def arrange(root: Box, orientation: Orientation) -> Size:
    """Place a tree and all its labels, and return the size of the whole.

    Every node has a strip across the direction of growth that is wide enough for its box, its
    label and the strips of its children; every level has a strip of its own along it, with the
    labels of its branches before it. A leaf has its strip to itself, and may reach beyond its
    level.
    """
    side = 1 if orientation == "right" else 0
    levels: list[list[Box]] = [[root]]
    while below := [child for box in levels[-1] for child in box.children]:
        levels.append(below)
    breadth: dict[int, float] = {}
    _measure_strips(root, breadth, side)
    middles: dict[int, float] = {}
    _spread(root, 0.0, breadth, middles, side)
    along = end = 0.0
    for depth, level in enumerate(levels):
        bus = along + _BUS
        start = bus + _STEM + max(box.label_size[1 - side] for box in level) + _STEM
        start = start if depth else 0.0
        for box in level:
            box.place = _point(start + box.size[1 - side] / 2, middles[id(box)], side)
            middle = bus + _STEM + box.label_size[1 - side] / 2
            box.label_place = _point(middle, middles[id(box)], side)
        end = max(end, start + max(box.size[1 - side] for box in level))
        along = start + max((box.size[1 - side] for box in level if box.children), default=0.0)
        if depth:
            for parent in levels[depth - 1]:
                _branch(parent, bus, side)
    return _point(end, breadth[id(root)], side)


def _measure_strips(box: Box, breadth: dict[int, float], side: int) -> float:
    """The breadth that a node and everything below it need."""
    below = sum(_measure_strips(child, breadth, side) for child in box.children)
    breadth[id(box)] = max(max(box.size[side], box.label_size[side]) + _GAP, below)
    return breadth[id(box)]


def _spread(
    box: Box, start: float, breadth: dict[int, float], middles: dict[int, float], side: int
) -> None:
    """Put a node between its children, as far as its strip allows."""
    strip = breadth[id(box)]
    children = box.children
    begin = start + (strip - sum(breadth[id(child)] for child in children)) / 2
    for child in children:
        _spread(child, begin, breadth, middles, side)
        begin += breadth[id(child)]
    middle = start + strip / 2
    if children:
        wanted = (middles[id(children[0])] + middles[id(children[-1])]) / 2
        half = (max(box.size[side], box.label_size[side]) + _GAP) / 2
        middle = min(max(wanted, start + half), start + strip - half)
    middles[id(box)] = middle


def _branch(parent: Box, bus: float, side: int) -> None:
    """Lines with two right angles from a node to each of its children."""
    for child in parent.children:
        child.branch = [
            parent.place,
            _point(bus, parent.place[side], side),
            _point(bus, child.place[side], side),
            child.place,
        ]


def _point(along: float, across: float, side: int) -> Point:
    return (along, across) if side == 1 else (across, along)
