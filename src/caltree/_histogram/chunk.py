"""A chunk of rows, and the questions that it answers.

Every question is a function of the plan, the rows, what was made of them so far (their state: the
node that each row is in, of every tree) and a message. None of them changes what it is given; some
can add their answer to that of other rows in its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .. import _core
from .._fitted.model import Arrays
from .._inputs.arrays import Labels
from .binning import Codes
from .plan import Plan

Floats: TypeAlias = npt.NDArray[np.float64]
Indices: TypeAlias = npt.NDArray[np.int32]
Nodes: TypeAlias = npt.NDArray[np.uint16]
Wholes: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Rows(Arrays):
    """Some rows: codes of their attributes, classes, scores, and the fold each is held out from."""

    codes: Codes
    labels: Labels
    scores: Floats
    """As the node models see them, a row each."""
    offset: Floats | None
    """What they say before any correction; None if it is nothing, or the scores themselves."""
    weights: Floats | None
    fold: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.labels)

    def of_offset(self, plan: Plan) -> Floats | None:
        """What the scores say before any correction, a column a log-odds."""
        if not plan.has_offset:
            return None
        return self.scores if self.offset is None else self.offset

    def in_core(self, plan: Plan) -> _core.Chunk:
        """The rows as the core wants them, which checks them once."""
        if "_in_core" not in self.__dict__:
            self.__dict__["_in_core"] = _core.Chunk(
                self.codes,
                plan.bins.n_bins,
                self.labels,
                plan.n_classes,
                self.scores,
                self.of_offset(plan),
                self.weights,
                self.fold,
            )
        chunk: _core.Chunk = self.__dict__["_in_core"]
        return chunk


@dataclass(frozen=True)
class Question:
    """A question about some nodes of the trees, each of which has a slot."""

    first: Indices
    """Where the nodes of each tree begin, and where the last end."""
    slot: Indices
    """Of every node of all trees; -1 if it is not asked about."""
    parameters: Floats
    """Of the node model of each slot."""
    by_class: bool = False
    """Whether histograms are to be of classes, not of what a node model gets wrong."""


@dataclass(frozen=True)
class Splits:
    """The splits of all nodes of all trees."""

    first: Indices
    attribute: Indices
    cut: Indices
    missing: Indices
    first_child: Indices
    n_children: Indices
    table: Indices
    branches: Indices


@dataclass(frozen=True)
class Speakers:
    """Who speaks for the rows of each node of all trees, at several levels."""

    first: Indices
    ancestor: Indices
    """Nodes of all trees x levels."""
    parameters: Floats


def at_the_roots(plan: Plan, rows: Rows, state: Any, message: None) -> Nodes:
    """Every row in the root of every tree."""
    return np.zeros((plan.n_trees, len(rows)), dtype=np.uint16)


def weights_of_folds(plan: Plan, rows: Rows, state: Any, message: None) -> Wholes:
    """The weight of the rows that each fold holds out, and of all."""
    weights = np.ones(len(rows)) if rows.weights is None else rows.weights
    wholes = np.rint(weights * plan.unit(1.0)).astype(np.int64)
    held_out = [wholes[rows.fold == fold].sum() for fold in range(plan.n_folds)]
    return np.array([*held_out, wholes.sum()], dtype=np.int64)


def sums(plan: Plan, rows: Rows, nodes: Nodes, asked: Question) -> Wholes:
    """What node models need to know, a row a slot."""
    scale = plan.scale
    return _core.sums(
        rows.in_core(plan),
        nodes,
        asked.first,
        asked.slot,
        asked.parameters,
        scale.centre,
        scale.scale,
        scale.per_state,
        plan.units,
        plan.log_loss,
    )


def histograms(
    plan: Plan, rows: Rows, nodes: Nodes, asked: Question, into: Wholes | None = None
) -> Wholes:
    """What splits are found by, a row a slot; added to what is there already, if anything is.

    That spares many large arrays that would hold little.
    """
    scale = plan.scale
    if into is None:
        shape = (len(asked.parameters), plan.histogram_size(by_class=asked.by_class))
        into = np.zeros(shape, dtype=np.int64)
    _core.histograms(
        rows.in_core(plan),
        nodes,
        asked.first,
        asked.slot,
        asked.parameters,
        scale.centre,
        scale.scale,
        scale.per_state,
        plan.units,
        asked.by_class,
        into,
    )
    return into


def routed(plan: Plan, rows: Rows, nodes: Nodes, splits: Splits) -> Nodes:
    """The rows of nodes that are split go to the children of these."""
    return _core.route(
        rows.in_core(plan),
        nodes,
        splits.first,
        splits.attribute,
        splits.cut,
        splits.missing,
        splits.first_child,
        splits.n_children,
        splits.table,
        splits.branches,
    )


def predictions(
    plan: Plan, rows: Rows, nodes: Nodes, speakers: Speakers
) -> npt.NDArray[np.float32]:
    """What the trees that did not see them say about the rows: levels x rows x log-odds."""
    scale = plan.scale
    return _core.predictions(
        rows.in_core(plan),
        nodes,
        speakers.first,
        speakers.ancestor,
        speakers.parameters,
        scale.centre,
        scale.scale,
        scale.per_state,
    )
