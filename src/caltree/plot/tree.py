"""`plot_tree`: a calibration tree as a picture."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from sklearn.utils.validation import check_is_fitted

from .._classifier_base import CalibratedClassifierBase
from .._fitted.model import FittedModel
from .._fitted.names import format_count, printable
from .._fitted.text import conditions, formulas
from .._inputs.arrays import Floats
from .._inputs.parameters import check_choice, check_count, check_flag
from .._model_base import TreeCalibrator
from ..forest import CalibrationForest
from .boxes import draw_into, draw_new
from .layout import Box, Orientation
from .style import check_axes, require_matplotlib, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_LEAVES = 400
_CONDITION_WIDTH = 26
_FORMULA_WIDTH = 56
_LONGEST_CLASS = 20
_MOST_LINES = 3
_MOST_FORMULA_LINES = 2


def plot_tree(
    tree: TreeCalibrator | CalibratedClassifierBase,
    *,
    ax: Axes | None = None,
    max_depth: int | None = None,
    decimals: int = 2,
    max_formulas: int = 4,
    counts: bool = True,
    orientation: Literal["auto", "down", "right"] = "auto",
) -> Axes:
    """Draw a calibration tree: conditions on its branches, formulas in its nodes.

    ``F[a] = 0.28 - 0.61 S[a]`` says that the log-odds score of class a enters with the slope
    -0.61; the probabilities of a node are the softmax of its F. Leaves have formulas and, in an
    averaged tree, all nodes that have a share in the probabilities, the darker the larger it is.

    Parameters
    ----------
    tree : CalibrationTree, PublishedCalibrationTree or CalibratedClassifier
        A fitted tree, or a fitted classifier that is calibrated by one.
    ax : matplotlib Axes, optional
        Where to draw; the text shrinks until the tree fits. By default a new figure that is as
        large as the tree needs.
    max_depth : int, optional
        Draw this many levels of splits, and say how many leaves are below.
    decimals : int, default=2
        Decimals of the coefficients.
    max_formulas : int, default=4
        The most formulas in a node; of more classes the first ones have theirs.
    counts : bool, default=True
        Say how many training rows reached each node.
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
    >>> [text.get_text().splitlines() for text in ax.texts][:3]
    [['x0', 'n=60'], ['<= 0.5'], ['F[0] =  0.34 - 0.50 S[1]', 'F[1] = -0.34 + 0.50 S[1]', 'n=30']]
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
    _check_leaves(shown.model_, max_depth)
    words = _Words(shown.model_, shown.classes_.tolist(), decimals, max_formulas, counts)
    root = words.box(0, "", max_depth)
    ways: Sequence[Orientation] = ("down", "right") if orientation == "auto" else (orientation,)
    if given is None:
        return draw_new(root, words.note(), ways)
    return draw_into(given[0], root, words.note(), ways)


def _check_tree(tree: Any) -> TreeCalibrator:
    found = tree
    if isinstance(tree, CalibratedClassifierBase):
        check_is_fitted(tree)
        found = tree.calibrator_
    if isinstance(found, TreeCalibrator):
        check_is_fitted(found)
        return found
    whose = "the calibrator of tree" if found is not tree else "tree"
    if isinstance(found, CalibrationForest):
        raise TypeError(
            f"{whose} is a CalibrationForest, whose many trees do not fit a picture; draw a "
            "CalibrationTree, or the forest's probabilities with plot_regions"
        )
    raise TypeError(
        f"{whose} is a {type(found).__name__}, which has no tree; give a fitted CalibrationTree, "
        "or a CalibratedClassifier with one as calibrator"
    )


def _check_leaves(model: FittedModel, max_depth: int | None) -> None:
    shown, depth, n_leaves = [0], 0, 0
    while shown:
        is_last = depth == max_depth
        n_leaves += sum(is_last or model.attribute[node] < 0 for node in shown)
        shown = [] if is_last else [child for node in shown for child in model.children(node)]
        depth += 1
    if n_leaves > _MOST_LEAVES:
        raise ValueError(
            f"tree has {n_leaves} leaves to draw, more than the {_MOST_LEAVES} that fit a picture; "
            "draw the top of it with max_depth, or use to_text"
        )


@dataclass(frozen=True)
class _Words:
    """The text of the nodes and branches of a tree, in lines of limited length."""

    model: FittedModel
    classes: list[Any]
    decimals: int
    max_formulas: int
    counts: bool

    def box(self, node: int, label: str, depth_left: int | None) -> Box:
        """A node and all nodes below it."""
        model = self.model
        split = bool(model.attribute[node] >= 0)
        is_cut = split and depth_left == 0
        lines: list[str] = []
        if split and not is_cut:
            name = printable(model.attributes.columns[model.attribute[node]].name)
            lines += _wrap(name, _CONDITION_WIDTH)
        lines += self._formulas(node, split, is_cut)
        lines += self._facts(node)
        if is_cut:
            lines.append(f"… {self._n_leaves[node]:.0f} leaves below")
        weight = float(model.weight[node])
        box = Box("\n".join(lines), label, weight)
        if split and not is_cut:
            left = None if depth_left is None else depth_left - 1
            name = printable(model.attributes.columns[model.attribute[node]].name)
            for child, condition in zip(model.children(node), conditions(model, node), strict=True):
                rest = condition.removeprefix(name).strip()
                wrapped = "\n".join(_wrap(rest, _CONDITION_WIDTH))
                box.children.append(self.box(child, wrapped, left))
        return box

    def note(self) -> str:
        """The share of the uncalibrated scores, which belongs to no node."""
        share = self.model.uncalibrated_weight
        if not 0.0 < share < 1.0:
            return ""
        return f"A share of {share:.2f} in every probability belongs to the uncalibrated scores."

    @cached_property
    def _n_leaves(self) -> Floats:
        return self.model.sum_over_leaves(self.model.attribute < 0)

    def _formulas(self, node: int, split: bool, is_cut: bool) -> list[str]:
        if not (self.model.weight[node] > 0 or is_cut):
            if split:
                return []
            nothing = self.model.uncalibrated_weight == 1.0
            return ["the uncalibrated scores" if nothing else "no share of its own"]
        names = [shorten(label, _LONGEST_CLASS) for label in self.classes]
        every = formulas(self.model, node, names, self.decimals)
        lines = [line for each in every[: self.max_formulas] for line in _wrap_formula(each)]
        more = len(every) - self.max_formulas
        return [*lines, f"… {more} more class{'es' if more > 1 else ''}"] if more > 0 else lines

    def _facts(self, node: int) -> list[str]:
        weight = self.model.weight[node]
        facts = [f"n={format_count(float(self.model.n_rows[node]))}"] if self.counts else []
        if 0.0 < weight < 1.0:
            facts.append(f"share {weight:.2f}")
        return [", ".join(facts)] if facts else []


def _wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, max_lines=_MOST_LINES, placeholder=" …") or [text]


def _wrap_formula(formula: str) -> list[str]:
    """A formula in lines that begin with a sign, the first one apart."""
    terms = re.split(r" (?=[+-] (?:\d|log p))", formula)
    # Textwrap breaks lines at plain spaces only.
    joined = " ".join(term.replace(" ", "\u00a0") for term in terms)
    indent = "\u00a0" * (formula.index("=") + 2)
    lines = textwrap.wrap(
        joined,
        _FORMULA_WIDTH,
        subsequent_indent=indent,
        max_lines=_MOST_FORMULA_LINES,
        placeholder=" …",
        break_long_words=False,
    )
    return [line.replace("\u00a0", " ") for line in lines]
