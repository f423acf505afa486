"""Boosted trees of many classes: those of each class on the rows for which it is in question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._inputs.arrays import Floats
from .._inputs.folds import Rows
from .boosting_columns import moderate, nominal_columns
from .dataset import Dataset
from .lightgbm_trees import TreeArrays, read_trees
from .losses import log_losses, mean_loss

MANY_CLASSES = 31
"""From so many classes on, each has a booster of its own."""
MANY_CELLS = 250_000
"""If there are that many rows times classes; up to these, trees on all rows take seconds."""
SHARES_OF_A_CLASS = 40.0
"""A class is in question for so many times as many rows as it has: those of its highest scores."""
MOST_ROUNDS, MOST_TREES = 300, 30_000
"""On the same rows; the trees are those of all classes."""
LARGEST_STEP, WAY = 0.8, 120.0
"""The fewer rounds there may be, the larger are their steps (`learning_rate`): together so many."""
PARAMETERS = {"max_bin": 63, "num_threads": 1, "objective": "none", "num_class": 1}
# Of LightGBM's histograms, all boosters together.
_POOL_IN_MEGABYTES = 1000.0


@dataclass(frozen=True)
class Gate:
    """The rows for which a class is in question: those with a score above a floor."""

    state: int
    score: int
    floor: float

    def find(self, dataset: Dataset, rows: Rows) -> npt.NDArray[np.intp]:
        """Return the places of these among some rows."""
        return np.flatnonzero(dataset.scores[rows, self.score] > self.floor)


def make_gates(dataset: Dataset, rows: Rows) -> list[Gate]:
    """Return the gates of all classes that have some of the rows for which they are in question.

    If there are several classifiers, each class takes the scores of the one that loses the fewest
    of its rows.
    """
    labels, n_classes = dataset.labels[rows], dataset.n_classes
    counts = np.bincount(labels, minlength=n_classes)
    gates = []
    for state in np.flatnonzero(counts):
        share = SHARES_OF_A_CLASS * max(counts[state] / len(rows), 1.0 / n_classes)
        found = []
        for score in range(state, dataset.n_plain_scores, n_classes):
            values = dataset.scores[rows, score]
            floor = -np.inf if share >= 1.0 else float(np.quantile(values, 1.0 - share))
            found.append((int((values[labels == state] > floor).sum()), -score, floor))
        kept, score, floor = max(found)
        if kept > 0:
            gates.append(Gate(int(state), -score, floor))
    return gates


class Pairs:
    """Pairs of a row and a class that is in question for it, class by class.

    The log-odds of all other classes of a row stay where they start, so that their sum is enough.
    """

    def __init__(self, dataset: Dataset, rows: Rows, start: Floats, gates: Sequence[Gate]) -> None:
        found = [gate.find(dataset, rows) for gate in gates]
        self.bounds = np.cumsum([0, *map(len, found)])
        self.row = np.concatenate([np.empty(0, dtype=np.intp), *found])
        of_gates = np.array([gate.state for gate in gates], dtype=np.intp)
        states = np.repeat(of_gates, np.diff(self.bounds))
        labels = dataset.labels[rows]
        self._is_label = states == labels[self.row]
        self._weights = None
        if dataset.weights is not None:
            self._weights = moderate(dataset.weights[rows], dataset.weights.mean())
        self._n_rows, self._n_classes = len(rows), dataset.n_classes
        odds = np.exp(start - start.max(axis=1, keepdims=True))
        self._start = odds[self.row, states]
        self._label = odds[np.arange(len(rows)), labels]
        odds[self.row, states] = 0.0
        self._rest, self._rest_squared = odds.sum(axis=1), (odds**2).sum(axis=1)
        self._added = np.zeros(len(self.row))

    def of(self, number: int) -> slice:
        """Return the pairs of a class, by the number of its gate."""
        return slice(self.bounds[number], self.bounds[number + 1])

    def add(self, number: int, added: Floats) -> None:
        """Set what the trees of a class add to its log-odds."""
        self._added[self.of(number)] = added

    def gradients(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Return the first and second derivatives of the log loss by the log-odds of all pairs."""
        found, _ = self._probabilities()
        factor = self._n_classes / (self._n_classes - 1.0)
        first, second = found - self._is_label, factor * found * (1.0 - found)
        if self._weights is not None:
            first, second = (d * self._weights[self.row] for d in (first, second))
        return first.astype(np.float32), second.astype(np.float32)

    def loss(self, scoring: str) -> float:
        """Return the loss of the rows, by the probabilities of all classes."""
        found, total = self._probabilities()
        likely = self._label / total
        likely[self.row[self._is_label]] = found[self._is_label]
        if scoring == "log_loss":
            return mean_loss(log_losses(likely), self._weights, scoring)
        squares = self._rest_squared / total**2 + self._sums(found**2)
        return mean_loss((squares - 2.0 * likely + 1.0) / self._n_classes, self._weights, scoring)

    def _probabilities(self) -> tuple[Floats, Floats]:
        """Return those of the pairs, and the total odds of every row."""
        odds = self._start * np.exp(self._added)
        total = self._rest + self._sums(odds)
        return odds / total[self.row], total

    def _sums(self, values: Floats) -> Floats:
        return np.bincount(self.row, values, self._n_rows).astype(np.float64, copy=False)


class ClassBoosters:
    """Boosters of LightGBM, one per class, whose trees are grown in turns."""

    def __init__(
        self, lightgbm: Any, dataset: Dataset, parameters: dict[str, Any], rows: Rows, start: Floats
    ) -> None:
        self._lightgbm, self._data, self._rows = lightgbm, dataset, rows
        self._most_rounds = min(MOST_ROUNDS, max(1, MOST_TREES // dataset.n_classes))
        self._parameters = {
            **_without_columns(parameters),
            **PARAMETERS,
            "learning_rate": min(LARGEST_STEP, WAY / self._most_rounds),
            "histogram_pool_size": _POOL_IN_MEGABYTES / dataset.n_classes,
        }
        self._gates = make_gates(dataset, rows)
        self._pairs = Pairs(dataset, rows, start, self._gates)
        self._boosters = [
            lightgbm.Booster({**self._parameters, "seed": seed % 2**31}, self._columns(gate, rows))
            for seed, gate in enumerate(self._gates, self._parameters["seed"])
        ]

    def boost(self, rounds: int, tell: Callable[[float], None]) -> TreeArrays:
        """Boost so many rounds, and return the trees."""
        for done in range(rounds):
            self._boost_round()
            tell((done + 1) / rounds)
        return self._read(self._count_trees())

    def boost_until(
        self,
        test: Rows,
        start: Floats,
        scoring: str,
        patience: int,
        tell: Callable[[float], None],
    ) -> tuple[TreeArrays, int]:
        """Boost until the held-out loss falls no further; return trees and rounds of the lowest."""
        judged = Pairs(self._data, test, start, self._gates)
        tested = [number for number, size in enumerate(np.diff(judged.bounds)) if size > 0]
        for number in tested:
            booster = self._boosters[number]
            columns = self._columns(self._gates[number], test, booster.train_set)
            booster.add_valid(columns, "held out")
        best, n_trees, least = 0, [0] * len(self._gates), judged.loss(scoring)
        for done in range(1, self._most_rounds + 1):
            self._boost_round()
            for number in tested:
                self._boosters[number].eval_valid(_take(judged, number))
            loss = judged.loss(scoring)
            tell(done / self._most_rounds)
            if loss < least:
                best, n_trees, least = done, self._count_trees(), loss
            elif done >= best + patience:
                break
        return self._read(n_trees), best

    def _boost_round(self) -> None:
        first, second = self._pairs.gradients()
        for number, booster in enumerate(self._boosters):
            own = self._pairs.of(number)
            # If no cut at random is any good, there is no tree, but there may be one next time.
            booster.update(fobj=lambda *_, own=own: (first[own], second[own]))
            booster.eval_train(_take(self._pairs, number))

    def _columns(self, gate: Gate, rows: Rows, reference: Any = None) -> Any:
        """Return the rows of a class: attributes, and the scores of this class."""
        data, own = self._data, rows[gate.find(self._data, rows)]
        scores = data.scores[own[:, np.newaxis], self._scores_of(gate)]
        return self._lightgbm.Dataset(
            np.hstack([data.matrix[own], scores]),
            label=np.zeros(len(own)),
            categorical_feature=nominal_columns(data.attributes),
            reference=reference,
            params=self._parameters,
        )

    def _scores_of(self, gate: Gate) -> npt.NDArray[np.intp]:
        return np.arange(gate.state, self._data.n_plain_scores, self._data.n_classes)

    def _count_trees(self) -> list[int]:
        return [booster.num_trees() for booster in self._boosters]

    def _read(self, n_trees: Sequence[int]) -> TreeArrays:
        """Return the first trees of all classes, each behind the gate of its class."""
        found, n_attributes = TreeArrays([], []), self._data.matrix.shape[1]
        for gate, booster, count in zip(self._gates, self._boosters, n_trees, strict=True):
            if count == 0:
                continue
            text = booster.model_to_string(num_iteration=count)
            columns = np.append(np.arange(n_attributes), n_attributes + self._scores_of(gate))
            trees = read_trees(text, self._data.attributes, 1).of_columns(columns)
            if np.isfinite(gate.floor):
                trees = trees.behind(n_attributes + gate.score, gate.floor, len(self._rows))
            found.trees.extend(trees.trees)
            found.states.extend([gate.state] * len(trees.trees))
        return found


def _without_columns(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters without those of each column: the columns are others."""
    return {name: parameters[name] for name in parameters if not name.endswith("_by_feature")}


def _take(pairs: Pairs, number: int) -> Callable[..., tuple[str, float, bool]]:
    """Return a metric that only notes what trees add."""

    def note(added: Floats, _: Any) -> tuple[str, float, bool]:
        pairs.add(number, added)
        return "", 0.0, False

    return note
