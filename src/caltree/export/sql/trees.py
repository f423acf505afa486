"""Trees and forests in SQL: one nested sum per class, linear in the number of nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from ..._inputs.arrays import Floats, Mask
from .dialects import Dialect
from .layers import Layers
from .logistic import LARGEST_EXPONENT, largest_size, linear, product, sigmoid_denominator
from .routes import LeafRoutes, Routes, leaf_numbers
from .text import Lines, add_blocks, add_terms, indent, join_lines, join_terms

Term: TypeAlias = Callable[[int], str]


@dataclass(frozen=True)
class NodeModels:
    """The node models of a tree or a forest."""

    dialect: Dialect
    weight: Floats
    parameters: Floats
    """Intercepts and slopes: nodes x log-odds x (1 + scores seen)."""
    scores: Sequence[Sequence[str]]
    """The scores that the slopes of each log-odds belong to."""
    offsets: Sequence[str]
    """One per log-odds; empty without offsets."""
    largest: float
    """The largest absolute value of a score."""
    vector: str = ""
    """All scores as a list, if every log-odds has them all and the database can multiply lists."""

    def of_two(self, node: int) -> str:
        """Return the addend of a node to the probability of the second of two classes."""
        (state,) = self.parameters[node]
        negated = self._state(-state, 0, "-")
        denominator = sigmoid_denominator(self.dialect, negated, self.size_of(node))
        return f"{self.weight_of(node)} / {denominator}"

    def states(self, node: int) -> list[str]:
        """Return the linear models of a node, one per class."""
        return [self._state(state, k) for k, state in enumerate(self.parameters[node])]

    def state(self, node: int, k: int) -> str:
        """Return the linear model of one class in a node."""
        return self._state(self.parameters[node, k], k)

    def weight_of(self, node: int) -> str:
        """Return the weight of a node."""
        return self.dialect.double(float(self.weight[node]))

    def size_of(self, node: int) -> float:
        """Return the largest absolute value of the linear models of a node."""
        offset = self.largest if self.offsets else 0.0
        return max(
            largest_size(state[0], state[1:].tolist(), self.largest, offset)
            for state in self.parameters[node]
        )

    def _state(self, state: Floats, k: int, sign: str = "") -> str:
        intercept, *slopes = state.tolist()
        offset = sign + self.offsets[k] if self.offsets else ""
        if self.vector:
            return product(self.dialect, intercept, slopes, self.vector, offset)
        pairs = zip(slopes, self.scores[k], strict=True)
        return linear(self.dialect, intercept, pairs, offset)


class TreeText:
    """The sums of a tree, or of all trees of a forest, as lines of SQL.

    The nodes that count have an addend, their term.
    """

    def __init__(self, routes: Routes | LeafRoutes, counts: Mask, term: Term) -> None:
        self.counts = counts
        self.term = term
        self._deepest = routes.dialect.deepest
        self._children: dict[int, list[tuple[str, int]]] = {}
        below = counts.copy()
        # Children come after their parents.
        for node in np.flatnonzero(routes.model.attribute >= 0)[::-1].tolist():
            children = routes.children(node)
            if any(below[child] for _, child in children):
                self._children[node] = children
                below[node] = True

    def tree(self, root: int) -> list[Lines]:
        """Return the terms of a tree: its top, and each part that lies too deep for one term."""
        blocks = []
        pending: list[tuple[list[str], int]] = [([], root)]
        while pending:
            way, node = pending.pop()
            deep: list[tuple[list[str], int]] = []
            if way:
                split = self._split(node, 1, way, deep)
                conditions = join_terms([f"({condition})" for condition in way], " AND ")
                head = f"CASE WHEN {conditions} THEN"
                blocks.append([head, *indent(split), "ELSE 0 END"])
            else:
                blocks.append(self._node(node, 0, way, deep))
            pending += reversed(deep)
        return blocks

    def _node(self, node: int, depth: int, way: list[str], deep: list[Any]) -> Lines:
        parts: list[Lines] = []
        if self.counts[node]:
            parts.append([self.term(node)])
        if node in self._children:
            if depth == self._deepest:
                deep.append((way, node))
            else:
                parts.append(self._split(node, depth + 1, way, deep))
        return add_blocks(parts or [["0"]])

    def _split(self, node: int, depth: int, way: list[str], deep: list[Any]) -> Lines:
        children = self._children[node]
        if len(children) == 1:
            return self._node(children[0][1], depth - 1, way, deep)
        lines = ["CASE"]
        for number, (condition, child) in enumerate(children):
            last = number == len(children) - 1
            lines.append("  ELSE" if last else f"  WHEN {condition} THEN")
            lines += indent(self._node(child, depth, [*way, condition], deep), 2)
        return [*lines, "END"]


def sums_of_two(routes: Routes, models: NodeModels, roots: Sequence[int]) -> Lines:
    """Return the sum over the nodes of all trees for the second of two classes."""
    text = TreeText(routes, models.weight > 0.0, models.of_two)
    return add_blocks([block for root in roots for block in text.tree(root)])


def sums_of_many(
    layers: Layers, routes: Routes, models: NodeModels, roots: Sequence[int]
) -> list[Lines]:
    """Return the sums over the nodes of all trees, one for each of several classes.

    All classes share the leaves that a row falls into, and the denominators of the softmax. A row
    passes at most one node of each tree on each level: there is one denominator for each of these.
    """
    level, tree = routes.model.level, routes.model.tree_of_nodes
    nodes = np.flatnonzero(models.weight > 0.0).tolist()
    places = sorted({(int(tree[node]), int(level[node])) for node in nodes})
    if 2 * len(places) > routes.dialect.most_columns:
        raise ValueError(
            f"the calibrator has {len(places)} levels of trees, which are too many for the columns "
            f"of {routes.dialect.name}; fit one with fewer trees or with max_depth"
        )
    leaves = _leaves(layers, routes, roots)
    by_leaf = LeafRoutes(routes.dialect, routes.model, [leaves[number] for number in tree])
    terms = SoftmaxTerms(models)

    def name_places(layer: int, kind: str, term: Term) -> list[str]:
        names: dict[tuple[int, int], str] = {}
        for place in places:
            here = (models.weight > 0.0) & (tree == place[0]) & (level == place[1])
            text = join_lines(add_blocks(TreeText(by_leaf, here, term).tree(roots[place[0]])))
            names[place] = layers.name(layer, f"{kind}_{len(names) + 1}", text)
        return [names.get(place, "") for place in zip(tree.tolist(), level.tolist(), strict=True)]

    if max(map(models.size_of, nodes)) > LARGEST_EXPONENT:
        terms.largest = name_places(2, "largest", terms.largest_of)
    terms.totals = name_places(3, "total", terms.total_of)
    sums = []
    for j in range(models.parameters.shape[1]):
        text = TreeText(by_leaf, models.weight > 0.0, partial(terms.share_of, j))
        sums.append(add_blocks([block for root in roots for block in text.tree(root)]))
    return sums


class SoftmaxTerms:
    """The addends of nodes, by the names that all classes share."""

    def __init__(self, models: NodeModels) -> None:
        self.models = models
        self.dialect = models.dialect
        self.largest: list[str] = []
        self.totals: list[str] = []

    def largest_of(self, node: int) -> str:
        """Return the largest of the linear models."""
        return f"{self.dialect.greatest}({', '.join(self.models.states(node))})"

    def total_of(self, node: int) -> str:
        """Return the denominator."""
        return add_terms([self._exponential(node, state) for state in self.models.states(node)])

    def share_of(self, j: int, node: int) -> str:
        """Return the addend of a node to the probability of a class."""
        above = self._exponential(node, self.models.state(node, j))
        return f"{self.models.weight_of(node)} * {above} / {self.totals[node]}"

    def _exponential(self, node: int, state: str) -> str:
        if not self.largest:
            return f"exp({state})"
        # Against the largest, for the values themselves may be beyond any exponential.
        lower = f"{state} - {self.largest[node]}"
        return f"exp({self.dialect.clip_below(lower, -LARGEST_EXPONENT)})"


def _leaves(layers: Layers, routes: Routes, roots: Sequence[int]) -> list[str]:
    """Give a short name to the leaf of a row in each tree."""
    first, _ = leaf_numbers(routes.model)
    text = TreeText(routes, routes.model.attribute < 0, lambda node: str(first[node]))
    return [
        layers.name(1, f"leaf_{number}", join_lines(add_blocks(text.tree(root))))
        for number, root in enumerate(roots, start=1)
    ]
