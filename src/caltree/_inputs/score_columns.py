"""Which class each column of scores is of: by its name, by `pos_label`, or by its place."""

from __future__ import annotations

import re
import reprlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from .arrays import Classes, Floats
from .scores import ScoreType, check_probabilities

Names: TypeAlias = tuple[Any, ...]

# Words that may stand before a class in the name of a column: p_yes, prob.yes, P(yes).
_STEMS = "p|pr|prob|probs|proba|probability|score|scores|pred|logit|margin"
_STEM_AND_CLASS = re.compile(
    rf"[._]?(?:{_STEMS})(?:[ _.:=](?P<rest>.+)|\((?P<inside>.+)\))", re.IGNORECASE
)
_NUMBER = re.compile(r"_\d+$")
_IN_ORDER = "give an array, one column per class in the order of the classes"


@dataclass(frozen=True)
class ScoreColumns:
    """The columns of the scores that a calibrator was fitted to."""

    n_columns: int
    positive: int | None = None
    """The class that a single column is the score of; None if there is one column per class."""
    names: tuple[str, ...] | None = None
    """The names of the columns, if they name the classes; else None."""

    @property
    def is_turned(self) -> bool:
        """Whether a single column must be turned to be the score of the second class."""
        return self.positive == 0


def find_columns(
    scores: Any, matrix: Floats, classes: Classes, pos_label: Any, of: str = "scores"
) -> tuple[ScoreColumns, Floats]:
    """Find the class of each column of scores, and put these in the order of the classes.

    `matrix` holds the numbers of `scores`; `of` is what the argument is called, for messages. A
    single column stays as it is.
    """
    n_columns = matrix.shape[1]
    given = check_pos_label(pos_label, classes, n_columns, of)
    names = column_names(scores, classes)
    order = None if names is None else match_names(names, classes, of)
    known = None if order is None or names is None else tuple(map(str, names))
    if n_columns > 1:
        return ScoreColumns(n_columns, None, known), _in_order(matrix, order)
    said = None if order is None else order[0]
    if known is not None and said is not None and given not in (None, said):
        raise ValueError(
            f"pos_label is {pos_label!r}, but the column of {of} is named {known[0]!r}, after "
            f"the class {classes.tolist()[said]!r}; correct one of them, or give the column "
            f"without its name, e.g. {of}.to_numpy()"
        )
    positive = next((each for each in (given, said) if each is not None), 1)
    return ScoreColumns(1, positive, known), matrix


def arrange_columns(
    scores: Any, matrix: Floats, classes: Classes, fitted: ScoreColumns, score_type: ScoreType
) -> Floats:
    """Put scores into the order of the classes, or a single column as that of the second.

    `matrix` holds the numbers of `scores`, and `fitted` says what the calibrator was fitted to.
    """
    names = column_names(scores, classes)
    order = place_columns(names, matrix.shape[1], classes, fitted)
    if matrix.shape[1] == 1:
        return turn(matrix, score_type) if order == [0] else matrix
    return _in_order(matrix, order)


def place_columns(
    names: Names | None, n_columns: int, classes: Classes, fitted: ScoreColumns
) -> list[int] | None:
    """The class of each column of scores to be calibrated; None if they are in order."""
    order = None if names is None else match_names(names, classes)
    if n_columns == 1:
        return [_class_of_single(names, order, classes, fitted)]
    if order is None and fitted.names is not None:
        before = match_names(fitted.names, classes)
        if before is not None and before != sorted(before):
            raise ValueError(
                "the columns of scores do not name the classes, but the calibrator was fitted to "
                f"the columns {', '.join(fitted.names)}, which are not in the order of the classes "
                f"{_list(classes)}; give a table with these names"
            )
    return order


def _class_of_single(
    names: Names | None, order: list[int] | None, classes: Classes, fitted: ScoreColumns
) -> int:
    """The class of a single column of scores to be calibrated."""
    said = None if order is None else order[0]
    if fitted.positive is None:
        return 1 if said is None else said
    if said is not None and names is not None and said != fitted.positive:
        labels = classes.tolist()
        raise ValueError(
            f"the column of scores is named {names[0]!r}, after the class {labels[said]!r}, but "
            f"the calibrator was fitted to scores of {labels[fitted.positive]!r}; give those, or, "
            "if the name is wrong, the column without it, e.g. scores.to_numpy()"
        )
    return fitted.positive


def turn(matrix: Floats, score_type: ScoreType) -> Floats:
    """The score of the other of two classes."""
    if score_type != "probability":
        return -matrix
    check_probabilities(matrix)
    return 1.0 - matrix


def check_pos_label(
    pos_label: Any, classes: Classes, n_columns: int, of: str = "scores"
) -> int | None:
    """The index of the class of a single column of `of`; None stays None."""
    if pos_label is None:
        return None
    labels = classes.tolist()
    if pos_label not in labels:
        raise ValueError(
            f"pos_label is {pos_label!r}, which is not among the classes {_list(classes)}; choose "
            "one of them"
        )
    if len(labels) > 2:
        raise ValueError(
            f"pos_label is {pos_label!r}, but there are {len(labels)} classes: it is only for a "
            f"single column of {of} of two classes; leave it out and give one column per class"
        )
    if n_columns > 1:
        raise ValueError(
            f"pos_label is {pos_label!r}, but {of} has {n_columns} columns: it is only for a "
            f"single column; leave it out, and give the columns in the order {_list(classes)}"
        )
    return int(labels.index(pos_label))


def column_names(scores: Any, classes: Classes) -> Names | None:
    """The names of a table's columns, or of a series; None of anything else.

    Whole numbers, by which pandas counts columns, are names only if they are the classes.
    """
    names: Iterable[Any] | None = getattr(scores, "column_names", None)  # pyarrow
    if names is None:
        names = getattr(scores, "columns", None)
    if names is None:
        name = getattr(scores, "name", None)
        return (name,) if isinstance(name, str) and name else None
    found = tuple(names)
    if all(isinstance(name, str) for name in found):
        return found or None
    counted = found == tuple(range(len(found)))
    return found if not counted and sorted(map(str, found)) == _sorted_texts(classes) else None


def match_names(names: Names, classes: Classes, of: str = "scores") -> list[int] | None:
    """The class of each column; None where no name is that of a class, and order must do.

    With several classifiers side by side order must do, too, and names must not contradict it.
    """
    labels = classes.tolist()
    texts = tuple(map(str, names))
    spelling = _Spelling(labels, of)
    if len(texts) > len(labels):
        _check_order(texts, spelling)
        return None
    found = [spelling.class_of(name) for name in texts]
    if len(texts) == len(labels) and None in found:
        found = spelling.classes_in_frame(texts) or found
    known = [each for each in found if each is not None]
    if not known:
        return None
    if len(known) < len(found) or len(set(known)) < len(known):
        raise ValueError(
            f"{of} has the columns {', '.join(texts)}, and it is not clear which of the classes "
            f"{_list(classes)} each of them belongs to; name every column after one class, such "
            f"as p_{labels[0]}, or {_IN_ORDER}"
        )
    return known


class _Spelling:
    """The classes by the texts that stand for them in names."""

    def __init__(self, labels: Sequence[Any], of: str) -> None:
        self.labels, self.of = labels, of
        self._exact, self._folded = defaultdict[str, list[int]](list), defaultdict(list)
        for j, label in enumerate(labels):
            for text in _texts(label):
                self._exact[text].append(j)
                self._folded[text.casefold()].append(j)

    def class_of(self, name: str) -> int | None:
        """The class that a name says, such as yes or p_yes; None if it says none."""
        match = _STEM_AND_CLASS.fullmatch(name)
        texts = [name] if match is None else [name, match["rest"] or match["inside"]]
        found = {j for text in texts for j in self._exact.get(text, ())}
        found = found or {j for text in texts for j in self._folded.get(text.casefold(), ())}
        if len(found) > 1:
            first, second = (self.labels[j] for j in sorted(found)[:2])
            raise ValueError(
                f"{self.of} has a column {name!r}, which may belong to the class {first!r} or to "
                f"{second!r}; rename it, or {_IN_ORDER}"
            )
        return found.pop() if found else None

    def classes_in_frame(self, names: tuple[str, ...]) -> list[int | None] | None:
        """The classes of names that hold all classes, one each, within the same words."""
        for text in self._exact:
            before, inside, after = names[0].partition(text)
            place = {f"{before}{each}{after}": js[0] for each, js in self._exact.items()}
            found = [place.get(name) for name in names]
            if inside and None not in found and len(set(found)) == len(self.labels):
                return found
        return None


def _check_order(names: tuple[str, ...], spelling: _Spelling) -> None:
    """Refuse the columns of several classifiers whose names say that the order is another."""
    size, found = len(spelling.labels), list[int | None]()
    for begin in range(0, len(names), size):
        block = names[begin : begin + size]
        one_by_one = [spelling.class_of(_NUMBER.sub("", name)) for name in block]
        found += spelling.classes_in_frame(block) or one_by_one
    if None not in found and found != [j % size for j in range(len(names))]:
        raise ValueError(
            f"{spelling.of} has the columns {', '.join(names)}, but those of each classifier must "
            f"be in the order of the classes {reprlib.repr(spelling.labels)}; reorder them"
        )


def _texts(label: Any) -> list[str]:
    """The ways in which a class is written in a name."""
    whole = isinstance(label, bool | float)
    return [str(label), str(int(label))] if whole else [str(label)]


def _sorted_texts(classes: Classes) -> list[str]:
    return sorted(map(str, classes.tolist()))


def _in_order(matrix: Floats, order: list[int] | None) -> Floats:
    if order is None or order == sorted(order):
        return matrix
    return matrix[:, [order.index(j) for j in range(len(order))]]


def _list(classes: Classes) -> str:
    return reprlib.repr(classes.tolist())
