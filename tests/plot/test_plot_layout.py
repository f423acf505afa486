"""The arrangement of boxes and labels, of any sizes: nothing overlaps anything."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caltree.plot.layout import Box, arrange

sizes = st.tuples(st.floats(1, 300), st.floats(1, 300))


def grown(children):
    return st.builds(
        lambda size, label_size, below: Box(
            "", "x", 0.0, children=below, size=size, label_size=label_size
        ),
        sizes,
        sizes,
        children,
    )


trees = st.recursive(
    grown(st.just([])),
    lambda children: grown(st.lists(children, min_size=2, max_size=4)),
    max_leaves=15,
)


def rectangle(place, size):
    return [(place[k] - size[k] / 2, place[k] + size[k] / 2) for k in (0, 1)]


def apart(one, other, slack=1e-6):
    return any(
        a[1] <= b[0] + slack or b[1] <= a[0] + slack for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("orientation", ["down", "right"])
@settings(max_examples=60, deadline=None)
@given(root=trees)
def test_boxes_and_labels_are_apart_and_inside(orientation, root):
    root.label_size = (0.0, 0.0)
    width, height = arrange(root, orientation)
    shown = [rectangle(box.place, box.size) for box in root.all()]
    shown += [rectangle(box.label_place, box.label_size) for box in root.all() if box is not root]
    for one, other in combinations(shown, 2):
        assert apart(one, other)
    for (left, right), (top, bottom) in shown:
        assert left >= -1e-6 and top >= -1e-6
        assert right <= width + 1e-6 and bottom <= height + 1e-6


@pytest.mark.parametrize("orientation", ["down", "right"])
@settings(max_examples=60, deadline=None)
@given(root=trees)
def test_branches_cross_no_box_but_their_ends(orientation, root):
    arrange(root, orientation)
    parent_of = {id(child): box for box in root.all() for child in box.children}
    boxes = list(root.all())
    for child in boxes[1:]:
        assert child.branch[0] == parent_of[id(child)].place and child.branch[-1] == child.place
        for start, end in zip(child.branch, child.branch[1:], strict=False):
            line = [(min(a, b), max(a, b)) for a, b in zip(start, end, strict=True)]
            for box in boxes:
                if box is not child and box is not parent_of[id(child)]:
                    assert apart(line, rectangle(box.place, box.size))


def test_a_wide_leaf_does_not_push_the_next_level_away():
    small = {"size": (10.0, 10.0), "label_size": (5.0, 5.0)}
    below = [Box("", "x", 0.0, **small) for _ in range(2)]
    inner = Box("", "x", 0.0, children=below, **small)
    wide = Box("", "x", 0.0, size=(500.0, 10.0), label_size=(5.0, 5.0))
    root = Box("", "", 0.0, children=[wide, inner], size=(10.0, 10.0))
    width, _ = arrange(root, "right")
    assert max(box.place[0] for box in below) < wide.place[0]
    assert width == pytest.approx(wide.place[0] + 250.0)
