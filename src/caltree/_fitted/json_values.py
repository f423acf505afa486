"""Values from a JSON file, checked before they are used."""

from __future__ import annotations

import reprlib
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from .._inputs.score_columns import ScoreColumns
from .._inputs.score_limits import USUAL_LIMITS, ScoreLimits
from .._inputs.scores import ScoreType

# No loss, weight or pruning strength is larger.
_LARGEST_NUMBER = 1e300
# Up to here all whole numbers are doubles.
_LARGEST_WHOLE = 2.0**53
# The fields of the scores, which every stored calibrator has.
SCORE_KEYS = {"score_type", "score_limits", "n_scores", "pos_label", "score_names"}


def read_numbers(
    state: dict[str, Any], name: str, dtype: type, ndim: int, *, may_be_empty: bool = False
) -> npt.NDArray[Any]:
    """Return a list of finite numbers as an array, or raise a ValueError."""
    if may_be_empty and state[name] == []:
        return np.empty(0, dtype=dtype)
    shape, numbers = _flatten(state[name], ndim)
    # By type, before there is an array: numpy would make one as wide as the longest string.
    kinds = {int} if dtype is np.int32 else {int, float}
    if not numbers or not set(map(type, numbers)) <= kinds:
        raise ValueError(
            f"{name} of a stored calibrator must be a {ndim}-dimensional list of numbers"
        )
    limits = np.iinfo(np.int32)
    if dtype is np.int32 and (min(numbers) < limits.min or max(numbers) > limits.max):
        raise ValueError(f"{name} of a stored calibrator holds a number that is out of range")
    try:
        array: npt.NDArray[Any] = np.array(numbers, dtype=dtype)
    except OverflowError:  # a whole number beyond all floats
        array = np.array(np.inf)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} of a stored calibrator holds a number that is not finite")
    return array.reshape(shape)


def plain_numbers(array: npt.NDArray[Any]) -> list[Any]:
    """Return an array as lists of numbers, whole ones without a point: they take less room."""
    flat: list[Any] = array.ravel().tolist()
    if array.dtype.kind == "f":
        whole = np.abs(array.ravel()) < _LARGEST_WHOLE
        whole &= array.ravel() == np.rint(array.ravel())
        for place in np.flatnonzero(whole).tolist():
            flat[place] = int(flat[place])
    for width in reversed(array.shape[1:]):
        flat = [flat[begin : begin + width] for begin in range(0, len(flat), width)]
    return flat


def _flatten(values: Any, ndim: int) -> tuple[tuple[int, ...], list[Any]]:
    """The shape of lists in lists, and the values in them; none if the lists differ in length."""
    shape: list[int] = []
    level = [values]
    for _ in range(ndim):
        lengths = {len(each) if isinstance(each, list) else -1 for each in level}
        if len(lengths) != 1 or lengths == {-1}:
            return (), []
        shape += lengths
        level = list(chain.from_iterable(level))
    return tuple(shape), level


def read_score_type(state: dict[str, Any]) -> ScoreType:
    """Return the kind of the scores, or raise a ValueError."""
    found = state["score_type"]
    if found not in ("probability", "logit", "margin"):
        raise ValueError(f"a stored calibrator cannot have score_type {reprlib.repr(found)}")
    score_type: ScoreType = found
    return score_type


def write_score_limits(limits: ScoreLimits) -> list[float] | None:
    """Return what probabilities of 0 and 1 count as; None for the usual limits."""
    return None if limits == USUAL_LIMITS else [limits.lowest, limits.highest]


def read_score_limits(state: dict[str, Any]) -> ScoreLimits:
    """Return what probabilities of 0 and 1 count as, or raise a ValueError."""
    if state["score_limits"] is None:
        return USUAL_LIMITS
    lowest, *others = read_numbers(state, "score_limits", float, 1).tolist()
    if state["score_type"] != "probability" or len(others) != 1 or not 0 < lowest <= others[0] < 1:
        raise ValueError(
            "score_limits of a stored calibrator must be null or, of probabilities, two numbers "
            "between 0 and 1"
        )
    return ScoreLimits(lowest, others[0])


def read_score_columns(state: dict[str, Any], classes: npt.NDArray[Any]) -> ScoreColumns:
    """Return the columns of the scores, or raise a ValueError."""
    n_scores, label, names = (state[name] for name in ("n_scores", "pos_label", "score_names"))
    _check_width(n_scores, len(classes))
    known = classes.tolist()
    if (label is None) != (n_scores > 1) or (label is not None and label not in known):
        raise ValueError(
            f"pos_label of a stored calibrator of {n_scores} scores cannot be {reprlib.repr(label)}"
        )
    listed = isinstance(names, list) and len(names) == n_scores
    if names is not None and not (listed and all(isinstance(name, str) for name in names)):
        raise ValueError("score_names of a stored calibrator must be null or a name per score")
    positive = None if label is None else known.index(label)
    return ScoreColumns(n_scores, positive, None if names is None else tuple(names))


def _check_width(n_scores: Any, n_classes: int) -> None:
    """Refuse a number of scores that does not match the classes."""
    whole = type(n_scores) is int and n_scores > 0
    if not whole or (n_scores % n_classes and (n_scores, n_classes) != (1, 2)):
        raise ValueError(
            f"a stored calibrator has {reprlib.repr(n_scores)} scores for {n_classes} classes"
        )


def is_number(value: Any) -> bool:
    """Whether a stored value can be a loss, a weight or a pruning strength."""
    return type(value) in (int, float) and -_LARGEST_NUMBER <= value <= _LARGEST_NUMBER
