"""Which columns of a file are scores, attributes, label and weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .._options import list_names
from .errors import CommandError

LABEL_NAMES = ("label", "target", "class", "y")
SCORE_NAMES = ("score", "probability", "proba", "p")


def _one_of(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


GUESSES = f"""\
Without --label, the label is the one column named {_one_of(LABEL_NAMES)}. Without --scores, the
score of two classes is the one column named {_one_of(SCORE_NAMES)}; or there is a column for every
class (or for the second of two) that has one of these names followed by _ and the class, such as
p_no and p_yes. Capitals do not matter. Where more than one column qualifies, or none, the options
must be given.
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


def guess_label(columns: Sequence[str], file: str) -> str:
    """The one column whose name says that it is the label."""
    found = [name for name in columns if name.lower() in LABEL_NAMES]
    if len(found) != 1:
        raise _guess_error("column", "is the label", "--label", found, columns, file)
    return found[0]


def guess_scores(columns: Sequence[str], classes: Sequence[Any], file: str) -> tuple[str, ...]:
    """The columns whose names say that they are scores, one a class or that of the second."""
    found: list[tuple[str, ...]] = []
    for stem in SCORE_NAMES:
        if len(classes) == 2:
            found += [(name,) for name in columns if name.lower() == stem]
        by_class = [_of_class(columns, stem, label) for label in classes]
        if all(by_class):
            found.append(tuple(name for name in by_class if name is not None))
        elif len(classes) == 2 and by_class[1] is not None:
            found.append((by_class[1],))
    if len(found) != 1:
        matches = list(dict.fromkeys(name for names in found for name in names))
        raise _guess_error("columns", "are the scores", "--scores", matches, columns, file)
    return found[0]


def check_order(scores: Sequence[str], classes: Sequence[Any]) -> None:
    """Refuse scores whose names say that they stand in another order than the classes."""
    said = [class_in_name(name, classes) for name in scores]
    labels = [str(label) for label in classes]
    n_classes = len(classes)
    for start in range(0, len(scores), n_classes):
        block = said[start : start + n_classes]
        if None not in block and block != labels and sorted(map(str, block)) == sorted(labels):
            at = {label: scores[start + place] for place, label in enumerate(block)}
            ordered = [*scores[:start], *(at[label] for label in labels), *scores[start:]]
            ordered = [*ordered[: start + n_classes], *scores[start + n_classes :]]
            given, right = list_names(scores, ","), list_names(ordered, ",")
            raise CommandError(
                f"--scores {given} is not in the order of the classes {', '.join(labels)}; give "
                f"--scores {right}"
            )


def check_number(scores: Sequence[str], classes: Sequence[Any]) -> None:
    """Refuse another number of scores than the classes ask for."""
    n_scores, n_classes = len(scores), len(classes)
    if n_scores and (n_scores % n_classes == 0 or (n_scores, n_classes) == (1, 2)):
        return
    second = f", or that of {classes[1]} alone" if n_classes == 2 else ""
    names = ", ".join(map(str, classes[:10])) + (", ..." if n_classes > 10 else "")
    raise CommandError(
        f"--scores names {n_scores} column(s), but the label has the {n_classes} classes {names}; "
        f"give one column a class in this order{second}"
    )


def class_in_name(name: str, classes: Sequence[Any]) -> str | None:
    """The class that a name ends in, the longest if several."""
    labels = [str(label) for label in classes]
    found = [label for label in labels if name.lower().endswith(f"_{label.lower()}")]
    return max(found, key=len, default=None)


def _of_class(columns: Sequence[str], stem: str, label: Any) -> str | None:
    wanted = f"{stem}_{label}".lower()
    return next((name for name in columns if name.lower() == wanted), None)


def _guess_error(
    which: str, what: str, option: str, found: Sequence[str], columns: Sequence[str], file: str
) -> CommandError:
    why = f"it could be {' or '.join(found)}" if found else "no name says so"
    return CommandError(
        f"cannot tell which {which} of {file} {what} ({why}); give {option}: the columns are "
        f"{list_names(columns)}"
    )
