"""Which columns of a file are scores, attributes, label and weight."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .._inputs.score_columns import match_names
from .._options import list_names
from .errors import CommandError

LABEL_NAMES = ("label", "target", "class", "y")
SCORE_NAMES = ("score", "probability", "proba", "prob", "p")
_NO_NAME = "no name says so"


def _one_of(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


GUESSES = f"""\
Without --label, the label is the column named {_one_of(LABEL_NAMES)}. Without --scores, the
score of two classes is the column named {_one_of(SCORE_NAMES)}. Or each class (or one of two) has
a column with one of these names, followed by _ and the class, such as p_no and p_yes. Upper and
lower case are the same. If no column or several columns fit, use these options.
"""


@dataclass(frozen=True)
class Columns:
    """The names of columns, as the command stores them beside a calibrator."""

    scores: tuple[str, ...]
    attributes: tuple[str, ...]
    label: str | None = None
    weight: str | None = None
    groups: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        plain = asdict(self)
        return {name: list(v) if isinstance(v, tuple) else v for name, v in plain.items()}

    @classmethod
    def from_dict(cls, stored: Any) -> Columns:
        """Rebuild from `to_dict`; ValueError on anything malformed."""
        keys = set(cls.__dataclass_fields__)
        valid = isinstance(stored, dict) and set(stored) == keys
        for name in ("scores", "attributes") if valid else ():
            names = stored[name]
            valid &= isinstance(names, list) and all(isinstance(item, str) for item in names)
        for name in ("label", "weight", "groups") if valid else ():
            valid &= stored[name] is None or isinstance(stored[name], str)
        if not valid:
            raise ValueError("the section columns of the model is malformed")
        lists = {name: tuple(stored[name]) for name in ("scores", "attributes")}
        return cls(**{**stored, **lists})


PREFIX = "calibrated_"
"""What the names of columns of calibrated probabilities begin with."""


def calibrated_columns(prefix: str, classes: Sequence[Any], *, interval: bool) -> list[str]:
    """The names of the columns of calibrated probabilities, and of the ends of their intervals."""
    names = [f"{prefix}{label}" for label in classes]
    if interval:
        names += [f"{name}_{end}" for name in names for end in ("lower", "upper")]
    return names


def guess_label(columns: Sequence[str], file: str) -> str:
    """The one column whose name says that it is the label."""
    found = [name for name in columns if name.lower() in LABEL_NAMES]
    if len(found) != 1:
        raise _guess_error("column", "is the label", "--label", found, columns, file)
    return found[0]


def guess_scores(columns: Sequence[str], classes: Sequence[Any], file: str) -> tuple[str, ...]:
    """The columns whose names say that they are scores, one per class or that of one of two."""
    found: list[tuple[str, ...]] = []
    nothing = _NO_NAME
    for stem in SCORE_NAMES:
        if len(classes) == 2:
            found += [(name,) for name in columns if name.lower() == stem]
        by_class = [_of_class(columns, stem, label) for label in classes]
        named = tuple(name for name in by_class if name is not None)
        if len(named) == len(classes) or (len(classes) == 2 and named):
            found.append(named)
        elif len(named) > 1:
            absent = [str(label) for label, n in zip(classes, by_class, strict=True) if n is None]
            nothing = f"there are {_some(named)}, but none for the class {_some(absent)}"
    if len(found) != 1:
        matches = list(dict.fromkeys(name for names in found for name in names))
        raise _guess_error("columns", "are the scores", "--scores", matches, columns, file, nothing)
    return found[0]


def in_class_order(scores: tuple[str, ...], classes: Sequence[Any]) -> tuple[str, ...]:
    """The columns in the order of the classes, if their names say which class each is of."""
    order = _classes_in_names(scores, classes)
    if order is None or len(scores) == 1:
        return scores
    return tuple(scores[order.index(j)] for j in range(len(scores)))


def named_like_scores(
    names: Sequence[str], scores: Sequence[str], classes: Sequence[Any]
) -> list[str]:
    """Which other columns are named as those of the scores are, but after no class.

    The name of each score must be that of its class, after one and the same beginning.
    """
    if len(scores) != len(classes):
        return []
    starts = {
        name.lower().removesuffix(str(label).lower())
        for name, label in zip(scores, classes, strict=True)
    }
    [start, *others] = starts
    if others or not start or start in {name.lower() for name in scores}:
        return []
    return [name for name in names if name.lower().startswith(start)]


@dataclass(frozen=True)
class Positive:
    """The class that a single column of scores is the score of."""

    label: Any
    """None if there is one column per class."""
    reason: str
    by_name: bool = False


def find_positive(scores: Sequence[str], classes: Sequence[Any], given: str | None) -> Positive:
    """The class of a single column: as the option says, as its name says, or the second."""
    if given is not None:
        label = _check_positive(scores, classes, given)
        said = _classes_in_names(scores, classes)
        if said is not None and classes[said[0]] != label:
            warnings.warn(
                f"--positive is {given}, but the column {scores[0]} is named after "
                f"{classes[said[0]]}; --positive is used",
                UserWarning,
                stacklevel=2,
            )
        return Positive(label, "as --positive says")
    if len(scores) > 1:
        return Positive(None, "")
    said = _classes_in_names(scores, classes)
    if said is not None:
        return Positive(classes[said[0]], "by the name of the column", by_name=True)
    return Positive(classes[1], "the second class; use --positive for the other")


def _check_positive(scores: Sequence[str], classes: Sequence[Any], given: str) -> Any:
    names = [str(label) for label in classes]
    if given not in names:
        raise CommandError(
            f"--positive is {given}, which is not a class; choose one of {_some(names)}"
        )
    if len(scores) > 1 or len(classes) > 2:
        raise CommandError(
            f"--positive is only for a single column of scores of two classes, but there are "
            f"{len(scores)} columns of scores and {len(classes)} classes; leave it out"
        )
    return classes[names.index(given)]


def _classes_in_names(scores: Sequence[str], classes: Sequence[Any]) -> list[int] | None:
    try:
        return match_names(tuple(scores), np.array(classes))
    except ValueError as error:
        message = str(error).replace("give an array, one column", "give --scores, one column")
        raise CommandError(message) from None


def check_number(scores: Sequence[str], classes: Sequence[Any]) -> None:
    """Refuse another number of scores than the classes ask for."""
    n_scores, n_classes = len(scores), len(classes)
    if n_scores and (n_scores % n_classes == 0 or (n_scores, n_classes) == (1, 2)):
        return
    one = ", or that of one of them" if n_classes == 2 else ""
    names = _some([str(label) for label in classes])
    raise CommandError(
        f"--scores names {n_scores} column(s), but the label has the {n_classes} classes {names}; "
        f"give one column per class in this order{one}"
    )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")


def _of_class(columns: Sequence[str], stem: str, label: Any) -> str | None:
    wanted = f"{stem}_{label}".lower()
    return next((name for name in columns if name.lower() == wanted), None)


def _guess_error(
    which: str,
    what: str,
    option: str,
    found: Sequence[str],
    columns: Sequence[str],
    file: str,
    nothing: str = _NO_NAME,
) -> CommandError:
    why = f"it could be {' or '.join(found)}" if found else nothing
    return CommandError(
        f"cannot tell which {which} of {file} {what} ({why}); give {option}: the columns are "
        f"{list_names(columns)}"
    )
