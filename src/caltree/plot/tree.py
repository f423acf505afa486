"""`plot_tree`: a tree as a picture."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sklearn.utils.validation import check_is_fitted

from .._classifier_base import CalibratedClassifierBase
from .._fitted.formulas import Formula, Formulas
from .._fitted.names import format_count, printable
from .._fitted.outline import Outline
from .._inputs.arrays import Floats
from .._inputs.parameters import check_choice, check_count, check_flag
from .._model_base import AttributeCalibrator
from .._tree_base import TreeEstimator
from .boxes import draw_into, draw_new
from .layout import Box, Orientation
from .style import check_axes, require_matplotlib, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_LEAVES = 400
_CONDITION_WIDTH = 26
# The one formula of two classes may take several lines. A class among many has one, in which its
# own score comes first. Trees that grow to the right have more room in lines than for lines.
_FORMULA_WIDTH: dict[Orientation, int] = {"down": 40, "right": 56}
_MOST_FORMULA_LINES = 4
_WIDTH_A_CLASS, _MOST_LINES_A_CLASS = 56, 1
_LONGEST_CLASS = 20
_MOST_LINES = 3


def plot_tree(
    tree: TreeEstimator | CalibratedClassifierBase,
    *,
    ax: Axes | None = None,
    max_depth: int | None = None,
    decimals: int = 2,
    max_formulas: int = 4,
    counts: bool = True,
    orientation: Literal["auto", "down", "right"] = "auto",
) -> Axes:
    """Draw a tree: conditions on its branches, formulas in its nodes.

    The words are those of `CalibrationTree.to_text`. Leaves have formulas and show what a score
    becomes, such as ``0.2 -> 0.15``. In an averaged tree, all nodes that have a weight have
    formulas; the larger the weight, the darker the node.

    Parameters
    ----------
    tree : CalibrationTree, PublishedCalibrationTree, LogisticModelTree or CalibratedClassifier
        A fitted tree, or a fitted classifier that is calibrated by one.
    ax : matplotlib Axes, optional
        Where to draw; the text shrinks until the tree fits. By default a new figure that is as
        large as the tree needs.
    max_depth : int, optional
        Draw this many levels of splits, and show how many leaves are below.
    decimals : int, default=2
        Decimals of the coefficients.
    max_formulas : int, default=4
        The maximum number of formulas in a node. With more classes, only the first ones are shown.
    counts : bool, default=True
        Show how many training rows reached each node.
    orientation : {"auto", "down", "right"}, default="auto"
        Which way the tree grows; "auto" lets small trees grow down and large ones to the right.

    Returns
    -------
    matplotlib Axes
        The axes with the tree.

    See Also
    --------
    CalibrationTree.to_text : The same in words, and complete.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from caltree import CalibrationTree
    >>> from caltree.plot import plot_tree
    >>> X = [[0], [0], [0], [1], [1], [1]] * 10
    >>> y = [0, 1, 0, 1, 1, 1] * 10
    >>> tree = CalibrationTree().fit(X, y, scores=[0.5] * 60)
    >>> ax = plot_tree(tree)
    >>> for text in ax.texts[1:3]:
    ...     print(text.get_text())
    x0
    n=60
    <= 0.5
    >>> print(ax.texts[3].get_text())
    0.2 -> 0.11, 0.5 -> 0.34, 0.8 -> 0.67
    logit p = -0.68 + logit s
    n=30, weight 0.98
    """
    require_matplotlib()
    shown = _check_tree(tree)
    given = check_axes(ax, 1, "pass one")
    if max_depth is not None:
        check_count("max_depth", max_depth, 0, "None or ")
    check_count("decimals", decimals, 0)
    check_count("max_formulas", max_formulas, 1)
    check_flag("counts", counts)
    check_choice("orientation", orientation, ("auto", "down", "right"))
    formulas = shown.formulas(decimals, lambda label: shorten(label, _LONGEST_CLASS))
    outline = Outline.of(shown.model_)
    _check_leaves(outline, max_depth)
    n_leaves = shown.model_.sum_over_leaves(shown.model_.attribute < 0)
    ways: Sequence[Orientation] = ("down", "right") if orientation == "auto" else (orientation,)
    trees = {
        way: _Words(formulas, outline, n_leaves, max_formulas, counts, way).box(0, "", max_depth)
        for way in ways
    }
    note = "\n".join(formulas.legend())
    return draw_new(trees, note) if given is None else draw_into(given[0], trees, note)


def _check_tree(tree: Any) -> TreeEstimator:
    found = tree
    if isinstance(tree, CalibratedClassifierBase):
        check_is_fitted(tree)
        found = tree.calibrator_
    if isinstance(found, TreeEstimator):
        check_is_fitted(found)
        return found
    whose = "the calibrator of tree" if found is not tree else "tree"
    if isinstance(found, AttributeCalibrator):
        raise TypeError(
            f"{whose} is a {type(found).__name__}, whose many trees do not fit a picture; draw a "
            "CalibrationTree, or probabilities with plot_regions"
        )
    raise TypeError(
        f"{whose} is a {type(found).__name__}, which has no tree; give a fitted CalibrationTree, "
        "or a CalibratedClassifier with one as calibrator"
    )


def _check_leaves(outline: Outline, max_depth: int | None) -> None:
    shown, depth, n_leaves = [0], 0, 0
    while shown:
        is_last = depth == max_depth
        below = [[] if is_last else outline.children(node) for node in shown]
        n_leaves += sum(not children for children in below)
        shown, depth = [child for children in below for child in children], depth + 1
    if n_leaves > _MOST_LEAVES:
        raise ValueError(
            f"tree has {n_leaves} leaves to draw, more than the {_MOST_LEAVES} that fit a picture; "
            "draw the top of it with max_depth, or use to_text"
        )


@dataclass(frozen=True)
class _Words:
    """The text of the nodes and branches of a tree, in lines of limited length."""

    formulas: Formulas
    outline: Outline
    n_leaves: Floats
    """The number of leaves below each node."""
    max_formulas: int
    counts: bool
    way: Orientation

    def box(self, node: int, label: str, depth_left: int | None) -> Box:
        """A node and all nodes below it."""
        tree = self.outline.tree
        is_split = bool(tree.attribute[node] >= 0)
        is_cut = is_split and depth_left == 0
        lines: list[str] = []
        if not is_split:
            lines += self._outcome(node)
        elif not is_cut:
            lines += _wrap(self.outline.attribute_name(node, printable), _CONDITION_WIDTH)
        if tree.weight[node] > 0.0 or is_cut:
            lines += self._formulas(node)
        lines += self._facts(node)
        if is_cut:
            lines.append(f"… {self.n_leaves[node]:.0f} leaves below")
        box = Box("\n".join(lines), label, float(tree.weight[node]))
        if not is_cut:
            left = None if depth_left is None else depth_left - 1
            for child in self.outline.children(node):
                condition = self.outline.bare_condition(child, printable)
                wrapped = "\n".join(_wrap(condition, _CONDITION_WIDTH))
                box.children.append(self.box(child, wrapped, left))
        return box

    def _outcome(self, leaf: int) -> list[str]:
        if self.outline.tree.uncalibrated_weight == 1.0:
            return ["uncalibrated"]
        if not self.formulas.has_outcomes:
            return []
        return textwrap.wrap(self.formulas.outcome(leaf), self._limits[0])

    def _formulas(self, node: int) -> list[str]:
        every = self.formulas.of_node(node)
        shown = [_wrap_formula(each, *self._limits) for each in every[: self.max_formulas]]
        lines = [line for wrapped in shown for line in wrapped]
        more = len(every) - self.max_formulas
        return [*lines, f"… {more} more class{'es' if more > 1 else ''}"] if more > 0 else lines

    @property
    def _limits(self) -> tuple[int, int]:
        """The width and the most lines of a formula."""
        if len(self.formulas.classes) == 2:
            return _FORMULA_WIDTH[self.way], _MOST_FORMULA_LINES
        return _WIDTH_A_CLASS, _MOST_LINES_A_CLASS

    def _facts(self, node: int) -> list[str]:
        tree = self.outline.tree
        facts = [f"n={format_count(float(tree.n_rows[node]))}"] if self.counts else []
        if 0.0 < tree.weight[node] < 1.0:
            facts.append(f"weight {tree.weight[node]:.2f}")
        return [", ".join(facts)] if facts else []


def _wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, max_lines=_MOST_LINES, placeholder=" …") or [text]


def _wrap_formula(formula: Formula, width: int, most_lines: int) -> list[str]:
    """A formula in lines that begin with a sign, the first one apart."""
    # Textwrap breaks lines at plain spaces only.
    joined = " ".join(term.replace(" ", "\u00a0") for term in formula.terms)
    left = f"{formula.left} = ".replace(" ", "\u00a0")
    lines = textwrap.wrap(
        left + joined,
        width,
        subsequent_indent="\u00a0" * len(left),
        max_lines=most_lines,
        placeholder=" …",
        break_long_words=False,
    )
    return [line.replace("\u00a0", " ") for line in lines]
