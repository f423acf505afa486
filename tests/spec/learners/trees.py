"""Regression trees: nominal attributes split into all categories, missing values into shares."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from caltree._inputs.arrays import Floats

from .splits import Indices, Part, Presorted, first_best, split_gains, sums

_LEAST_VARIANCE = 1e-3  # of the variance of all rows: a node needs more to be split
_LEAST_GAIN = 1e-12


@dataclass
class Node:
    """A node, with all that is below it."""

    value: float
    """The weighted mean of the response."""
    attribute: int = -1
    """The attribute of the split; -1 in a leaf."""
    cut: float | None = None
    """Rows below it go to the first of two children, the others to the second; None where the
    attribute is nominal, which has a child a category."""
    children: list[Node] = field(default_factory=list)
    shares: tuple[float, ...] = ()
    """The part of a row without a value that goes to each child."""

    def predict(self, matrix: Floats) -> Floats:
        """The value of each row of an encoded table."""
        predicted = np.zeros(len(matrix))
        self._add(matrix, np.arange(len(matrix)), np.ones(len(matrix)), predicted)
        return predicted

    def _add(self, matrix: Floats, rows: Indices, share: Floats, predicted: Floats) -> None:
        if not self.children:
            predicted[rows] += share * self.value
            return
        branches = _branches(matrix[rows, self.attribute], self.cut)
        if all(not child.children for child in self.children):
            values = np.array([child.value for child in self.children])
            values = np.append(values, np.dot(self.shares, values))  # -1, missing, is the last
            predicted[rows] += share * values[branches]
            return
        missing = branches < 0
        for branch, child in enumerate(self.children):
            here = branches == branch
            if self.shares[branch] > 0:
                here |= missing
            part = np.where(missing, share * self.shares[branch], share)[here]
            if len(part):
                child._add(matrix, rows[here], part, predicted)


def fit_tree(table: Presorted, response: Floats, weight: Floats, max_depth: int) -> Node:
    """Return a tree grown by the reduction of the weighted squared error; weights have the mean 1.

    There are at most `max_depth` splits on a way from the root to a leaf. A node without weight
    has the value of its parent.
    """
    total = weight.sum()
    if not total > 0:
        return Node(0.0)
    mean = np.dot(weight, response) / total
    variance = np.dot(weight, response**2) / total - mean**2
    return _grow(table, table.everything, response, weight, max_depth, _LEAST_VARIANCE * variance)


def _grow(
    table: Presorted,
    part: Part,
    response: Floats,
    weight: Floats,
    depth: int,
    least_variance: float,
) -> Node:
    weights, responses = weight[part.rows], response[part.rows]
    total = weights.sum()
    mean = np.dot(weights, responses) / total
    node = Node(float(mean))
    variance = np.dot(weights, responses**2) / total - mean**2
    if variance < least_variance:
        return node
    if not _split(node, table, part, weight, weight * (response - mean)):
        return node
    branches = _branches(table.matrix[part.rows, node.attribute], node.cut)
    if depth == 1:
        node.children = _leaves(node, branches, weights, responses)
        return node
    missing = part.rows[branches < 0]
    for branch, share in enumerate(node.shares):
        if share == 0:
            node.children.append(Node(node.value))
            continue
        here = np.zeros(len(weight), dtype=bool)
        here[part.rows[branches == branch]] = here[missing] = True
        dealt = weight.copy() if len(missing) else weight
        dealt[missing] *= share
        child = _grow(table, part.inside(here), response, dealt, depth - 1, least_variance)
        node.children.append(child)
    return node


def _leaves(node: Node, branches: Indices, weights: Floats, responses: Floats) -> list[Node]:
    """The children of a node that are not split any more."""
    known, shares = branches >= 0, np.array(node.shares)
    weighted = weights * responses
    within = sums(branches[known], weights[known], len(shares)) + shares * weights[~known].sum()
    values = sums(branches[known], weighted[known], len(shares)) + shares * weighted[~known].sum()
    means = np.full(len(shares), node.value)
    np.divide(values, within, out=means, where=within > 0)
    return [Node(mean) for mean in means.tolist()]


def _split(node: Node, table: Presorted, part: Part, weight: Floats, weighted: Floats) -> bool:
    """Note the best split in the node; False where none is any good."""
    found = split_gains(table, part, weight, weighted, all_categories=True)
    # Rows without a value, dealt out evenly, lower the gain to its share of the known weight.
    gains = np.maximum(found.gain, 0.0) * (found.weight / weight[part.rows].sum())
    best = first_best(gains)
    if gains[best] <= _LEAST_GAIN:
        return False
    node.attribute = best
    if table.n_categories[best] == 0:
        low, middle, high = table.halfway(part, best, int(found.choice[best]))
        node.cut = middle if middle > low else high  # there may be no number between the two
    branches = _branches(table.matrix[part.rows, best], node.cut)
    known = branches >= 0
    n_branches = 2 if node.cut is not None else int(table.n_categories[best])
    within = sums(branches[known], weight[part.rows][known], n_branches)
    node.shares = tuple((within / within.sum()).tolist())
    return True


def _branches(values: Floats, cut: float | None) -> Indices:
    """The branch of each value; -1 for a missing one."""
    missing = np.isnan(values)
    if cut is None:
        return np.where(missing, -1, values).astype(np.intp)
    return np.where(missing, -1, (values >= cut).astype(np.intp))
