"""Trees and forests in SQL: one nested sum a class, linear in the number of nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from ..._fitted.model import Floats, Indices
from ..._inputs.arrays import Mask
from .dialects import Dialect, Lines, indented
from .layers import Layers
from .routes import LeafRoutes, Routes, leaf_numbers
from .sums import LARGEST_EXPONENT, added, added_blocks, joined, linear, product, sigmoid_of, size

Term: TypeAlias = Callable[[int], str]


@dataclass(frozen=True)
class NodeModels:
    """The node models of a tree or a forest.

    Parameters
    ----------
    dialect : Dialect
        The database.
    weight : ndarray
        What each node counts for.
    parameters : ndarray of shape (n_nodes, n_states, 1 + k)
        Intercepts and slopes.
    scores : list of list of str
        The scores that the slopes of each state belong to.
    offsets : list of str
        What is added to each state; empty for nothing.
    largest : float
        The largest size of a score.
    vector : str
        All scores as a list, if every state has them all and the database can multiply lists.
    """

    dialect: Dialect
    weight: Floats
    parameters: Floats
    scores: Sequence[Sequence[str]]
    offsets: Sequence[str]
    largest: float
    vector: str = ""

    def of_two(self, node: int, j: int) -> str:
        """What a node adds to the probability of one of two classes."""
        (state,) = self.parameters[node]
        negated = self._state(-state, 0, "-") if j == 1 else self._state(state, 0)
        return f"{self.share(node)} / {sigmoid_of(self.dialect, negated, self.size_of(node))}"

    def states(self, node: int) -> list[str]:
        """The linear models of a node, one a class."""
        return [self._state(state, k) for k, state in enumerate(self.parameters[node])]

    def state(self, node: int, k: int) -> str:
        """The linear model of one class in a node."""
        return self._state(self.parameters[node, k], k)

    def share(self, node: int) -> str:
        """The weight of a node."""
        return self.dialect.double(float(self.weight[node]))

    def size_of(self, node: int) -> float:
        """The largest size of what the linear models of a node can give."""
        offset = self.largest if self.offsets else 0.0
        return max(
            size(state[0], state[1:].tolist(), self.largest, offset)
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

    Parameters
    ----------
    routes : Routes or LeafRoutes
        Where rows go.
    counts : ndarray of bool
        Which nodes add something.
    term : callable
        What a node adds.
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
        """A tree; what lies too deep comes as further terms, under the condition of its way."""
        blocks = []
        pending: list[tuple[list[str], int]] = [([], root)]
        while pending:
            way, node = pending.pop()
            deep: list[tuple[list[str], int]] = []
            if way:
                split = self._split(node, 1, way, deep)
                conditions = joined([f"({condition})" for condition in way], " AND ")
                head = f"CASE WHEN {conditions} THEN"
                blocks.append([head, *indented(split), "ELSE 0 END"])
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
        return added_blocks(parts or [["0"]])

    def _split(self, node: int, depth: int, way: list[str], deep: list[Any]) -> Lines:
        children = self._children[node]
        if len(children) == 1:
            return self._node(children[0][1], depth - 1, way, deep)
        lines = ["CASE"]
        for number, (condition, child) in enumerate(children):
            last = number == len(children) - 1
            lines.append("  ELSE" if last else f"  WHEN {condition} THEN")
            lines += indented(self._node(child, depth, [*way, condition], deep), 2)
        return [*lines, "END"]


def sums_of_two(routes: Routes, models: NodeModels, roots: Sequence[int], j: int) -> Lines:
    """What the nodes of all trees say of one of two classes."""
    text = TreeText(routes, models.weight > 0.0, lambda node: models.of_two(node, j))
    return added_blocks([block for root in roots for block in text.tree(root)])


def sums_of_many(
    layers: Layers, routes: Routes, models: NodeModels, roots: Sequence[int]
) -> list[Lines]:
    """What the nodes of all trees say of each of several classes.

    All classes share the leaves that a row falls into, and the denominators of the softmax. A row
    passes one node of each tree on each level at most, so that there is one for each of these.
    """
    level, tree = _places(routes.model, roots)
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

    def named(layer: int, kind: str, term: Term) -> list[str]:
        names: dict[tuple[int, int], str] = {}
        for place in places:
            here = (models.weight > 0.0) & (tree == place[0]) & (level == place[1])
            text = _on_one_line(TreeText(by_leaf, here, term).tree(roots[place[0]]))
            names[place] = layers.name(layer, f"{kind}_{len(names) + 1}", text)
        return [names.get(place, "") for place in zip(tree.tolist(), level.tolist(), strict=True)]

    if max(map(models.size_of, nodes)) > LARGEST_EXPONENT:
        terms.largest = named(2, "largest", terms.largest_of)
    terms.totals = named(3, "total", terms.total_of)
    sums = []
    for j in range(models.parameters.shape[1]):
        text = TreeText(by_leaf, models.weight > 0.0, partial(terms.share_of, j))
        sums.append(added_blocks([block for root in roots for block in text.tree(root)]))
    return sums


class SoftmaxTerms:
    """What nodes add, in terms of what all classes share.

    Parameters
    ----------
    models : NodeModels
        The node models.
    """

    def __init__(self, models: NodeModels) -> None:
        self.models = models
        self.dialect = models.dialect
        self.largest: list[str] = []
        self.totals: list[str] = []

    def largest_of(self, node: int) -> str:
        """The largest of the linear models."""
        return f"{self.dialect.greatest}({', '.join(self.models.states(node))})"

    def total_of(self, node: int) -> str:
        """The denominator."""
        return added([self._exponential(node, state) for state in self.models.states(node)])

    def share_of(self, j: int, node: int) -> str:
        """What the node adds to the probability of a class."""
        above = self._exponential(node, self.models.state(node, j))
        return f"{self.models.share(node)} * {above} / {self.totals[node]}"

    def _exponential(self, node: int, state: str) -> str:
        if not self.largest:
            return f"exp({state})"
        # Against the largest, for the values themselves may be beyond any exponential.
        lower = f"{state} - {self.largest[node]}"
        return f"exp({self.dialect.at_least(lower, -LARGEST_EXPONENT)})"


def _leaves(layers: Layers, routes: Routes, roots: Sequence[int]) -> list[str]:
    """Short names for the leaf of a row in each tree."""
    first, _ = leaf_numbers(routes.model)
    text = TreeText(routes, routes.model.attribute < 0, lambda node: str(first[node]))
    return [
        layers.name(1, f"leaf_{number}", _on_one_line(text.tree(root)))
        for number, root in enumerate(roots, start=1)
    ]


def _on_one_line(blocks: Sequence[Lines]) -> str:
    return " ".join(line.strip() for line in added_blocks(blocks))


def _places(model: Any, roots: Sequence[int]) -> tuple[Indices, Indices]:
    """The level and the tree of every node."""
    level = np.zeros(len(model.attribute), dtype=np.int32)
    for node in np.flatnonzero(model.attribute >= 0):
        first = model.first_child[node]
        level[first : first + model.n_children[node]] = level[node] + 1
    tree = np.searchsorted(roots, np.arange(len(level)), side="right") - 1
    return level, tree.astype(np.int32)
