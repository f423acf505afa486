"""Growing: first the structure, from attributes and classes; then the node models, from scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from .boosting import Classes, Floats, boost, choose_iterations, predict, squared_error, wrong_rows
from .folds import Rows
from .splits import Split, find_split

# With fewer rows a node keeps its parent's model.
MIN_ROWS_FOR_MODEL = 5


@dataclass
class Node:
    """One node: its training rows, its split (None in a leaf) and its node model."""

    rows: Rows
    split: Split | None = None
    children: list[Node] = field(default_factory=list)
    lines: Floats = field(default_factory=lambda: np.empty((0, 0)))
    iterations_run: int = 0
    error: float = 0.0

    @property
    def n(self) -> int:
        """Number of training rows."""
        return len(self.rows)

    @property
    def n_rows(self) -> float:
        """The weight of the training rows, each of which counts once."""
        return float(self.n)

    @property
    def is_leaf(self) -> bool:
        return self.split is None

    @property
    def attribute(self) -> int | None:
        return None if self.split is None else self.split.attribute

    @property
    def threshold(self) -> float | None:
        return None if self.split is None else self.split.threshold

    @property
    def coef(self) -> Floats:
        """(m, 1 + c) intercept and slopes of each class, multiplied by (m - 1) / m."""
        m = len(self.lines)
        return self.lines * (m - 1) / m

    def make_leaf(self) -> None:
        self.split, self.children = None, []

    def walk(self) -> Iterator[Node]:
        """The node and all below it, in pre-order."""
        yield self
        for child in self.children:
            yield from child.walk()

    def predict_proba(self, X: Floats, scores: Floats) -> Floats:
        """Class probabilities (n, m), each row's from the model of its leaf."""
        if self.split is None:
            return predict(self.lines, scores)
        probabilities = np.empty((len(X), len(self.lines)))
        branch = self.split.branch(X)
        for index, child in enumerate(self.children):
            taken = branch == index
            probabilities[taken] = child.predict_proba(X[taken], scores[taken])
        return probabilities


def grow(
    X: Floats,
    y: Classes,
    n_categories: Sequence[int],
    n_classes: int,
    rows: Rows | None = None,
    *,
    min_samples_split: int = 16,
    min_samples_leaf: int = 2,
    max_depth: int | None = None,
) -> Node:
    """Grow the structure of a tree, on ``rows`` of the data (all of them if None).

    Even then all of ``X`` counts: thresholds are values of it. With ``max_depth`` no node lies
    further than that many edges below the root.
    """

    def grow_node(rows: Rows, depth: int) -> Node:
        node = Node(rows)
        if node.n >= min_samples_split and depth != max_depth:
            node.split = find_split(X[rows], y[rows], n_categories, n_classes, X, min_samples_leaf)
        if node.split is not None:
            branch = node.split.branch(X[rows])
            for index in range(node.split.n_branches):
                node.children.append(grow_node(rows[branch == index], depth + 1))
        return node

    return grow_node(np.arange(len(y)) if rows is None else rows, 0)


def fit_node_models(
    node: Node,
    lines: Floats,
    scores: Floats,
    y: Classes,
    iterations: int | None,
    max_iterations: int = 200,
    n_folds: int = 5,
    by_wrong_rows: bool = False,
) -> None:
    """Give a node and all below it their models and errors.

    Parameters
    ----------
    node : root of the (sub)tree
    lines : (m, 1 + c) the parent's model; zeros at the root
    scores, y : of all rows, indexed by the rows of the nodes
    iterations : to run in every node; None to choose in every node by cross-validation
    max_iterations, n_folds : for that choice
    by_wrong_rows : whether errors are wrong rows, or squared errors, mean over classes
    """
    node_scores, node_y = scores[node.rows], y[node.rows]
    node.lines = lines
    if node.n >= MIN_ROWS_FOR_MODEL:
        wanted = iterations
        if wanted is None:
            wanted, _ = choose_iterations(
                lines, node_scores, node_y, max_iterations, n_folds, by_wrong_rows
            )
        node.lines, node.iterations_run = boost(lines, node_scores, node_y, wanted)
    probabilities = predict(node.lines, node_scores)
    if by_wrong_rows:
        node.error = float(wrong_rows(probabilities, node_y))
    else:
        node.error = squared_error(probabilities, node_y) / len(lines)
    for child in node.children:
        fit_node_models(
            child, node.lines, scores, y, iterations, max_iterations, n_folds, by_wrong_rows
        )
