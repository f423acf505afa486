"""The node models of a tree as formulas, and what they make of a score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.special import logit, softmax

from .._inputs.arrays import Floats
from .._inputs.score_columns import ScoreColumns
from .._inputs.score_limits import LEAST_STEP
from .._inputs.scores import ScoreKind
from .model import FittedModel

Term: TypeAlias = tuple[float, str]
"""A coefficient, and the name of what it belongs to; no name for a constant."""

# The scores of which a leaf says what they become.
_EXAMPLES = (0.2, 0.5, 0.8)
# Of more classes, the score of each in turn, and the most classes of which that is said.
_HALF = 0.5
_MOST_CLASSES = 5
_FEWEST_DECIMALS = 2


@dataclass(frozen=True)
class Formula:
    """An equation whose right side is a sum."""

    left: str
    terms: tuple[str, ...]
    """With their signs, but for a plus before the first."""

    def __str__(self) -> str:
        return f"{self.left} = {' '.join(self.terms)}"


@dataclass(frozen=True)
class Formulas(ABC):
    """Writes the node models of a tree."""

    tree: FittedModel
    classes: Sequence[str]
    """The names of the classes, as they are printed."""
    decimals: int

    def legend(self) -> list[str]:
        """Say what the formulas and outcomes mean, a line each as far as there are any."""
        if self.tree.uncalibrated_weight == 1.0:
            return []
        lines = [self.explain_letters(), *self.explain_limits()]
        if self.has_outcomes and (self.is_average or len(self.classes) > 2):
            lines.append(self.explain_outcomes() + self._explain_average())
        return lines

    @abstractmethod
    def explain_letters(self) -> str:
        """Explain the letters in formulas."""

    def explain_limits(self) -> list[str]:
        """Say what very small and large scores count as, in a line if it is not the usual."""
        return []

    def explain_outcomes(self) -> str:
        """Say what the outcomes of leaves are; see `has_outcomes`."""
        raise NotImplementedError

    @abstractmethod
    def of_node(self, node: int) -> list[Formula]:
        """Return the model of a node in as few formulas as will do."""

    def outcome(self, leaf: int) -> str:
        """Say what a few scores become in a leaf; see `has_outcomes`."""
        raise NotImplementedError

    @property
    def has_outcomes(self) -> bool:
        """Whether the outcome of scores can be told."""
        return False

    @property
    def is_average(self) -> bool:
        """Whether probabilities are averages over several nodes of a path."""
        return bool(((self.tree.weight > 0.0) & (self.tree.weight < 1.0)).any())

    def vanishes(self, coefficient: float) -> bool:
        """Whether a coefficient is zero at the decimals shown."""
        return round(abs(coefficient), self.decimals) == 0.0

    def write_sum(self, terms: Iterable[Term]) -> tuple[str, ...]:
        """Write the terms of a sum that do not vanish."""
        written: list[str] = []
        for coefficient, name in terms:
            if self.vanishes(coefficient):
                continue
            size = self.write_size(abs(coefficient))
            text = name if name and float(size) == 1.0 else f"{size} {name}".rstrip()
            sign = "-" if coefficient < 0.0 else "+"
            written.append(f"{sign} {text}" if written else f"{sign.strip('+')}{text}")
        return tuple(written) or (f"{0.0:.{self.decimals}f}",)

    def write_size(self, size: float) -> str:
        """Write the size of a coefficient."""
        return f"{size:.{self.decimals}f}"

    def _explain_average(self) -> str:
        share = self.tree.uncalibrated_weight
        if not self.is_average:
            return ""
        itself = f" ({share:.2f} for the score itself)" if share > 0.0 else ""
        return f", averaged over its path by weight{itself}"


@dataclass(frozen=True)
class ScoreFormulas(Formulas):
    """Writes node models of scores."""

    kind: ScoreKind
    columns: ScoreColumns

    def explain_limits(self) -> list[str]:
        lowest, highest = self.kind.limits.lowest, self.kind.limits.highest
        if self.columns.is_turned:
            lowest, highest = 1.0 - highest, 1.0 - lowest
        said = []
        if lowest >= LEAST_STEP / 2:
            said.append(f"below {lowest:g} counts as {lowest:g}")
        if highest <= 1.0 - LEAST_STEP / 2 and len(self.classes) == 2:
            said.append(f"above {highest:.10g} counts as {highest:.10g}")
        if self.kind.published or not said:
            return []
        return [f"in formulas, a score {', and one '.join(said)}"]

    @property
    def has_outcomes(self) -> bool:
        """Whether the outcome of scores can be told: those of one classifier, no margins."""
        return not self.enter_as_given and self.n_classifiers == 1

    @property
    def n_classifiers(self) -> int:
        """The number of classifiers whose scores stand side by side."""
        return max(1, self.columns.n_columns // len(self.classes))

    @property
    def enter_as_given(self) -> bool:
        """Whether the scores are regressors as they are, not made into probabilities first."""
        if self.kind.score_type == "logit":
            return self.kind.published and self.columns.n_columns > 1
        return self.kind.score_type == "margin"

    def a_classifier(self, letter: str) -> list[str]:
        """Return a letter for each classifier: s, or s1, s2, ... if there are several."""
        if self.n_classifiers == 1:
            return [letter]
        return [f"{letter}{number}" for number in range(1, self.n_classifiers + 1)]

    def name_scores(self, count: int) -> str:
        """Return the word for so many scores."""
        word = self.kind.score_type if self.enter_as_given else "score"
        return word if count == 1 else f"{word}s"

    def write_probability(self, probability: float) -> str:
        """Write a probability, with two decimals at least."""
        return f"{probability:.{max(self.decimals, _FEWEST_DECIMALS)}f}"

    def calibrate(self, probabilities: Floats, leaf: int) -> Floats:
        """Calibrate scores of one classifier, probabilities with a column per class, in a leaf.

        All models on the path count by their weights, and so do the uncalibrated probabilities.
        """
        tree, scores = self.tree, probabilities[:, len(self.classes) - self.columns.n_columns :]
        if self.kind.score_type == "logit":
            scores = np.log(scores) if self.columns.n_columns > 1 else logit(scores)
        seen = self.kind.regressors(scores)
        offset = self.kind.offset(scores, seen) if tree.offset else None
        total, node = tree.uncalibrated_weight * probabilities, leaf
        while node >= 0:
            intercepts, slopes = np.split(tree.coefficients(node), [1], axis=1)
            log_odds = intercepts.T + seen @ slopes.T + (0.0 if offset is None else offset)
            total += tree.weight[node] * softmax(log_odds, axis=1)
            node = int(tree.parent[node])
        return total


def make_formulas(
    tree: FittedModel,
    classes: Sequence[str],
    kind: ScoreKind,
    columns: ScoreColumns,
    decimals: int,
) -> ScoreFormulas:
    """Return the writer of a tree's formulas, by the number of classes."""
    writer = _TwoClasses if len(classes) == 2 else _ManyClasses
    return writer(tree, classes, decimals, kind, columns)


@dataclass(frozen=True)
class _TwoClasses(ScoreFormulas):
    """One formula per node: the log-odds of the event.

    The event is the class that a single column is the score of, and otherwise the second class.
    The two columns of a classifier say the same, and are written as one score.
    """

    def explain_letters(self) -> str:
        names, text = self._names, f"p: probability of {self.classes[self._event]}"
        whose = "its" if len(names) == self.n_classifiers else "the"
        text += f", {', '.join(names)}: {whose} {self.name_scores(len(names))}"
        if self.enter_as_given and self._bends_somewhere:
            text += "".join(f", {_squash(name)}: 1/(1 + exp(-{name}))" for name in names)
        return text

    def explain_outcomes(self) -> str:
        return "s -> p: what a score becomes in a leaf"

    def of_node(self, node: int) -> list[Formula]:
        terms = self.write_sum(self._terms(node))
        if terms in (("logit s",), ("logit mean s",)):
            return [Formula("p", (terms[0].removeprefix("logit "),))]
        return [Formula("logit p", terms)]

    def outcome(self, leaf: int) -> str:
        second = 1.0 - np.array(_EXAMPLES) if self.columns.is_turned else np.array(_EXAMPLES)
        given = np.column_stack([1.0 - second, second])
        becomes = self.calibrate(given, leaf)[:, self._event]
        pairs = zip(_EXAMPLES, map(self.write_probability, becomes), strict=True)
        return ", ".join(f"{score:g} -> {probability}" for score, probability in pairs)

    @property
    def _event(self) -> int:
        return 0 if self.columns.is_turned else 1

    @property
    def _names(self) -> list[str]:
        """The names of the scores."""
        letters = self.a_classifier("m" if self.enter_as_given else "s")
        if self.enter_as_given and self.columns.n_columns > 1:
            return [f"{letter}[{name}]" for letter in letters for name in self.classes]
        return letters

    @property
    def _n_straight(self) -> int:
        """The number of slopes of the scores themselves; those of their bends follow."""
        return self.tree.n_scores if self.kind.published else self.tree.n_scores // 2

    @property
    def _bends_somewhere(self) -> bool:
        bends = self.tree.parameters[self.tree.weight > 0.0, 0, 1 + self._n_straight :]
        return not all(map(self.vanishes, bends.ravel()))

    def _terms(self, node: int) -> Iterator[Term]:
        # The log-odds of the second class become those of the event. A bend is the same of both.
        sign = -1.0 if self.columns.is_turned else 1.0
        intercept, *slopes = self.tree.parameters[node, 0].tolist()
        straight, bends = np.split(np.array(slopes), [self._n_straight])
        if not self.enter_as_given:
            # Of two columns, the log-odds of the first are those of the second, turned round.
            straight, bends = (part.reshape(self.n_classifiers, -1) for part in (straight, bends))
            straight, bends = 2.0 * straight[:, -1] - straight.sum(axis=1), bends.sum(axis=1)
        yield sign * intercept, ""
        if self.tree.offset:
            yield 1.0, "logit mean s"
        for slope, name in zip(straight, self._names, strict=True):
            yield slope, name if self.enter_as_given else f"logit {name}"
        for slope, name in zip(bends, self._names, strict=False):
            yield sign * slope, f"ln {_squash(name)}(1-{_squash(name)})"


def _squash(name: str) -> str:
    """Return the name of a score as a probability: a margin m becomes s."""
    return f"s{name[1:]}"


@dataclass(frozen=True)
class _ManyClasses(ScoreFormulas):
    """One formula per class, for probabilities that are yet to be divided by their sum.

    The largest group of classes whose own scores are all that counts, in the same way, shares one.
    """

    def explain_letters(self) -> str:
        letters = self.a_classifier("m" if self.enter_as_given else "s")
        names = ", ".join(f"{letter}[c]" for letter in letters)
        what = f"p[c]: probability of class c, {names}: its {self.name_scores(len(letters))}"
        return f"{what}; the p of all classes are divided by their sum"

    def explain_outcomes(self) -> str:
        arrow = f"{_HALF:g} -> p (c)"
        return (
            f"{arrow}: what a score of {_HALF:g} for class c becomes, the others sharing the rest"
        )

    def of_node(self, node: int) -> list[Formula]:
        found = self._join_alike(self._coefficients(node))
        width = max(len(each.left) for each in found)
        return [Formula(f"{each.left:<{width}}", each.terms) for each in found]

    def outcome(self, leaf: int) -> str:
        n_classes = len(self.classes)
        given = np.full((n_classes, n_classes), (1.0 - _HALF) / (n_classes - 1))
        np.fill_diagonal(given, _HALF)
        becomes = np.diagonal(self.calibrate(given, leaf))
        moved_most = np.sort(np.argsort(-np.abs(becomes - _HALF), kind="stable")[:_MOST_CLASSES])
        said = (
            f"{self.write_probability(becomes[each])} ({self.classes[each]})" for each in moved_most
        )
        return f"{_HALF:g} -> {', '.join(said)}"

    @property
    def _joins(self) -> bool:
        """Whether the uncalibrated probabilities are one of the regressors."""
        return self.tree.offset and self.n_classifiers == 1

    @property
    def _function(self) -> str:
        return "" if self.enter_as_given else "logit " if self.kind.published else "ln "

    def _coefficients(self, node: int) -> Floats:
        """Return the coefficients of each class; a constant in all classes is dropped."""
        rows = self.tree.coefficients(node)
        rows[:, 0] -= rows[:, 0].mean()
        if self._joins:
            own = np.arange(len(rows))
            rows[own, 1 + own] += 1.0
        return rows

    def _join_alike(self, rows: Floats) -> list[Formula]:
        """Write one formula per class, and one for the largest group of classes that are alike."""
        formulas = [self._formula(own, row) for own, row in enumerate(rows)]
        shared = [self._shared_formula(own, row) for own, row in enumerate(rows)]
        counts = Counter(each for each in shared if each is not None)
        if not counts or max(counts.values()) == 1:
            return formulas
        [(common, count)] = counts.most_common(1)
        if count == len(formulas):
            return [common]
        special = [own for own, each in zip(formulas, shared, strict=True) if each != common]
        return [*special, Formula(f"others: {common.left}", common.terms)]

    def _formula(self, own: int, row: Floats) -> Formula:
        others = [
            (slope, f"{self._function}{letter}[{self.classes[column]}]")
            for letter, slopes in self._slopes(row)
            for column, slope in enumerate(slopes)
            if column != own
        ]
        return self._write(f"[{self.classes[own]}]", own, row, others)

    def _shared_formula(self, own: int, row: Floats) -> Formula | None:
        """Return the formula without the name of the class; None if other classes count."""
        for _, slopes in self._slopes(row):
            if not all(map(self.vanishes, np.delete(slopes, own))):
                return None
        return self._write("", own, row, [])

    def _write(self, name: str, own: int, row: Floats, others: Sequence[Term]) -> Formula:
        terms: list[Term] = [(row[0], "")]
        if self.tree.offset and not self._joins:
            terms.append((1.0, f"ln mean s{name}"))
        slopes = self._slopes(row)
        terms += [(each[own], f"{self._function}{letter}{name}") for letter, each in slopes]
        written = self.write_sum([*terms, *others])
        if written in ((f"ln s{name}",), (f"ln mean s{name}",)):
            return Formula(f"p{name}", (written[0].removeprefix("ln "),))
        return Formula(f"ln p{name}", written)

    def _slopes(self, row: Floats) -> list[tuple[str, Floats]]:
        """Return the letter of each classifier, and the slopes of its scores."""
        letters = self.a_classifier("m" if self.enter_as_given else "s")
        return list(zip(letters, row[1:].reshape(len(letters), -1), strict=True))
