"""What is on a figure, and whether it can be read."""

from itertools import combinations

import matplotlib.pyplot as plt


def extent_of(text):
    """What a drawn text covers, with its box."""
    patch = text.get_bbox_patch()
    return (text if patch is None else patch).get_window_extent()


def assert_readable(figure, texts, *, smallest=5.0):
    """No text overlaps another one, leaves the figure or is tiny."""
    figure.canvas.draw()
    extents = [(text.get_text(), extent_of(text)) for text in texts]
    for (one, first), (other, second) in combinations(extents, 2):
        apart = (
            first.x1 <= second.x0
            or second.x1 <= first.x0
            or first.y1 <= second.y0
            or second.y1 <= first.y0
        )
        assert apart, f"{one!r} overlaps {other!r}"
    for name, extent in extents:
        inside = extent.x0 >= 0 and extent.y0 >= 0
        inside &= extent.x1 <= figure.bbox.width and extent.y1 <= figure.bbox.height
        assert inside, f"{name!r} leaves the figure"
    assert min(text.get_fontsize() for text in texts) >= smallest


def no_figure_is_open():
    return not plt.get_fignums()
