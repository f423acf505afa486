"""The leaves that rows reach, as a tree ensemble of ONNX that gives their numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..._fitted.trees import ONLY_MISSING, Trees
from ..._inputs.arrays import Indices
from ..._inputs.attributes import Attribute
from ..._inputs.tables import Categories
from .graph import Graph


@dataclass(frozen=True)
class Split:
    """A column cut into pieces, and the child to which each piece goes."""

    column: int
    bounds: list[float]
    """The end of each piece, which belongs to it. The last piece has no end."""
    children: list[int]
    missing: int
    """The piece whose child missing values go to."""

    @classmethod
    def of_pieces(cls, column: int, pieces: Sequence[tuple[float, int]], missing: int) -> Split:
        """Merge neighbouring pieces of one child, and find the place of missing values."""
        merged: list[tuple[float, int]] = []
        for bound, child in pieces:
            if merged and merged[-1][1] == child:
                merged.pop()
            merged.append((bound, child))
        children = [child for _, child in merged]
        if missing not in children:
            # Nothing is above infinity, but missing values can be sent there.
            children.append(missing)
        bounds = [bound for bound, _ in merged][: len(children) - 1]
        return cls(column, bounds, children, children.index(missing))


def split_of(model: Trees, node: int, attribute: Attribute | None, column: int) -> Split:
    """Return the split of a node, by an attribute or, if there is none, by a score."""
    missing = int(model.missing[node])
    categories = attribute.categories if attribute is not None else None
    if not categories or attribute is None:
        threshold = float(model.threshold[node])
        # The largest number stands for infinity: all but missing values go to the first child.
        threshold = math.inf if threshold == ONLY_MISSING else threshold
        return Split.of_pieces(column, [(threshold, 0), (math.inf, 1)], missing)
    children = model.branches_of(node).tolist()
    pieces = [(code + 0.5, child) for code, child in enumerate(children)]
    if is_text(categories):
        pieces[-1] = (math.inf, children[-1])
    else:
        pieces = _number_pieces(categories, children, children[int(attribute.fill)])
    return Split.of_pieces(column, pieces, missing)


def is_text(values: Collection[Any] | None) -> bool:
    """Whether categories or labels are strings, which are encoded before they are compared."""
    return values is not None and len(values) > 0 and all(isinstance(v, str) for v in values)


def _number_pieces(
    categories: Categories, children: list[int], other: int
) -> list[tuple[float, int]]:
    """Return the pieces of numbers that are categories; between them lie unseen ones."""
    pieces = []
    for number, child in sorted(zip(map(float, categories), children, strict=True)):
        pieces += [(math.nextafter(number, -math.inf), other), (number, child)]
    return [*pieces, (math.inf, other)]


@dataclass
class Ensemble:
    """The nodes of trees as ONNX wants them; every tree is a target of its own.

    Every test is `x <= bound`, for which runtimes are quickest. Numbers are compared in double
    precision, to which those of single precision are cast first: so every row goes where
    `predict_proba` sends it, and no bound needs to be rounded. Thresholds are made so that rounding
    to single precision changes no branch.
    """

    n_trees: int = 0
    rows: list[tuple[int, int, int, float, int, int, int]] = field(default_factory=list)
    numbers: list[float] = field(default_factory=list)
    _begin: int = 0

    def start_tree(self) -> int:
        """Begin another tree, and return the place of its root."""
        self._begin = len(self.rows)
        self.n_trees += 1
        return self.add_place()

    def add_place(self) -> int:
        """Make room for a node of this tree."""
        self.rows.append((0, 0, 0, 0.0, 0, 0, 0))
        self.numbers.append(math.nan)
        return len(self.rows) - 1 - self._begin

    def put_leaf(self, place: int, number: int) -> None:
        """Put a leaf there."""
        self.put_test(place, 0, 0.0, (0, 0), missing=False)
        self.numbers[self._begin + place] = float(number)

    def add_leaf(self, number: int) -> int:
        """Add a leaf to this tree."""
        place = self.add_place()
        self.put_leaf(place, number)
        return place

    def put_test(
        self, place: int, column: int, bound: float, where: tuple[int, int], *, missing: bool
    ) -> None:
        """Put a test there: the first way is for values up to the bound, and maybe missing ones."""
        tree = self.n_trees - 1
        self.rows[self._begin + place] = (tree, place, column, bound, *where, int(missing))

    def put_split(self, place: int, split: Split, reach: Callable[[int, bool], int]) -> None:
        """Put the tests of a split there; `reach` gives the place of a child, by either way."""
        if len(split.children) == 1:
            self.put_passage(place, split.column, reach(split.children[0], True))
            return

        def within(first: int, last: int, first_way: bool, place: int | None = None) -> int:
            if first == last:
                return reach(split.children[first], first_way)
            place = self.add_place() if place is None else place
            middle = (first + last) // 2
            missing = first <= split.missing <= middle
            below, above = within(first, middle, True), within(middle + 1, last, False)
            self.put_test(
                place, split.column, split.bounds[middle], (below, above), missing=missing
            )
            return place

        within(0, len(split.children) - 1, True, place)

    def put_passage(self, place: int, column: int, to: int) -> None:
        """Put a test there that always takes the first way."""
        self.put_test(place, column, math.inf, (to, self.add_leaf(0)), missing=True)

    def add_to(self, graph: Graph, columns: str) -> str:
        """Add the numbers of the leaves that rows reach to a graph, a column per tree."""
        tree, node, column, bound, below, above, missing = zip(*self.rows, strict=True)
        is_leaf = ~np.isnan(self.numbers)
        leaves = np.flatnonzero(is_leaf).tolist()
        return graph.op(
            "TreeEnsembleRegressor",
            columns,
            n_targets=self.n_trees,
            nodes_treeids=tree,
            nodes_nodeids=node,
            nodes_featureids=column,
            nodes_values_as_tensor=np.array(bound),
            nodes_truenodeids=below,
            nodes_falsenodeids=above,
            nodes_missing_value_tracks_true=missing,
            nodes_modes=np.where(is_leaf, "LEAF", "BRANCH_LEQ").tolist(),
            target_treeids=[tree[leaf] for leaf in leaves],
            target_nodeids=[node[leaf] for leaf in leaves],
            target_ids=[tree[leaf] for leaf in leaves],
            target_weights_as_tensor=np.array(self.numbers)[is_leaf],
        )


def add_tree(
    ensemble: Ensemble,
    root: int,
    first_child: Indices,
    split: Callable[[int], Split],
    leaf_number: dict[int, int],
) -> None:
    """Add a tree: `split` gives the split of a node, `leaf_number` the numbers of its leaves."""
    waiting = [(root, ensemble.start_tree())]
    while waiting:
        node, place = waiting.pop()
        if node in leaf_number:
            ensemble.put_leaf(place, leaf_number[node])
        else:
            cut = split(node)
            children = _Children(ensemble, cut, int(first_child[node]), leaf_number, waiting)
            ensemble.put_split(place, cut, children.reach)


class _Children:
    """The children of a node; they wait for their turn once a test leads to them."""

    def __init__(
        self,
        ensemble: Ensemble,
        cut: Split,
        first_child: int,
        leaf_number: dict[int, int],
        waiting: list[tuple[int, int]],
    ) -> None:
        self.ensemble = ensemble
        self.column = cut.column
        self.first_child = first_child
        self.leaf_number = leaf_number
        self.waiting = waiting
        self.n_pieces = Counter(cut.children)
        self.places: dict[int, int] = {}

    def reach(self, branch: int, first_way: bool) -> int:
        """Return the place of a child, for the first or the second way of a test."""
        child = self.first_child + branch
        is_leaf = child in self.leaf_number  # which there may be several copies of
        if is_leaf or branch not in self.places:
            self.places[branch] = self.ensemble.add_place()
            self.waiting.append((child, self.places[branch]))
        if is_leaf or first_way or self.n_pieces[branch] == 1:
            return self.places[branch]
        # Several pieces go to one child: onnxruntime lets the first ways of tests meet, but not
        # the second ones.
        passage = self.ensemble.add_place()
        self.ensemble.put_passage(passage, self.column, self.places[branch])
        return passage
