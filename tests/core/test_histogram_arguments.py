"""Bad input at the core's door is refused, whatever it is: never a crash, nor a wrong answer.

Every function has arguments that are right, and a list of changes each of which makes one wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from caltree import _core

N, N_TREES = 20, 3
INT_MAX = 2**31 - 1


def chunk_arguments(n_classes: int = 2) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    n_scores = 1 if n_classes == 2 else n_classes
    return {
        "codes": rng.integers(0, 4, (N, 2)).astype(np.uint8),
        "n_bins": np.array([3, 4], dtype=np.int32),
        "labels": rng.integers(0, n_classes, N).astype(np.uint16),
        "n_classes": n_classes,
        "scores": rng.standard_normal((N, n_scores)),
        "offset": rng.standard_normal((N, n_scores)),
        "weights": np.full(N, 0.5),
        "fold": rng.choice([0, 1, 255], N).astype(np.uint8),
    }


def question_arguments() -> dict[str, Any]:
    return {
        "chunk": _core.Chunk(**chunk_arguments()),
        "nodes": np.zeros((N_TREES, N), dtype=np.uint16),
        "first": np.array([0, 3, 4, 6], dtype=np.int32),
        "slot": np.array([0, -1, 1, -1, 2, 2], dtype=np.int32),
        "parameters": np.ones((3, 2)),
        "centre": np.zeros(1),
        "scale": np.ones(1),
        "per_state": 1,
        "units": np.full(4, 2.0**30),
    }


def sums_arguments() -> dict[str, Any]:
    return {**question_arguments(), "log_loss": False}


def histograms_arguments() -> dict[str, Any]:
    into = np.zeros((3, 9 * 3), dtype=np.int64)
    return {**question_arguments(), "into": into}


def best_splits_arguments() -> dict[str, Any]:
    return {
        "histograms": np.ones((2, 9 * 3), dtype=np.int64),
        "n_bins": np.array([3, 4], dtype=np.int32),
        "numeric": np.array([1, 0], dtype=np.uint8),
        "n_states": 1,
        "unit": 1.0,
        "penalty": 0.1,
        "min_samples_leaf": 1.0,
        "shares": np.ones(2),
    }


def splits_in_chunk_arguments() -> dict[str, Any]:
    return {
        **question_arguments(),
        "numeric": np.array([1, 0], dtype=np.uint8),
        "penalty": 0.1,
        "min_samples_leaf": 1.0,
        "shares": np.ones(3),
    }


def route_arguments() -> dict[str, Any]:
    return {
        "chunk": _core.Chunk(**chunk_arguments()),
        "nodes": np.zeros((N_TREES, N), dtype=np.uint16),
        "first": np.array([0, 3, 4, 7], dtype=np.int32),
        "attribute": np.array([0, -1, -1, -1, 1, -1, -1], dtype=np.int32),
        "cut": np.array([1, 0, 0, 0, 0, 0, 0], dtype=np.int32),
        "missing": np.array([0, 0, 0, 0, 1, 0, 0], dtype=np.int32),
        "first_child": np.array([1, -1, -1, -1, 1, -1, -1], dtype=np.int32),
        "n_children": np.array([2, 0, 0, 0, 2, 0, 0], dtype=np.int32),
        "table": np.array([-1, -1, -1, -1, 0, -1, -1], dtype=np.int32),
        "branches": np.array([0, 1, 0, 1], dtype=np.int32),
    }


def predictions_arguments() -> dict[str, Any]:
    return {
        "chunk": _core.Chunk(**chunk_arguments()),
        "nodes": np.zeros((N_TREES, N), dtype=np.uint16),
        "first": np.array([0, 3, 4, 6], dtype=np.int32),
        "ancestor": np.zeros((6, 2), dtype=np.int32),
        "parameters": np.ones((6, 2)),
        "centre": np.zeros(1),
        "scale": np.ones(1),
        "per_state": 1,
    }


def distinct_arguments() -> dict[str, Any]:
    return {"values": np.arange(5.0), "most": 10}


def cuts_arguments() -> dict[str, Any]:
    return {"values": np.arange(5.0), "weights": np.ones(5), "max_bins": 3}


def bins_arguments() -> dict[str, Any]:
    return {
        "values": np.arange(5.0),
        "cuts": np.array([0.5, 2.5]),
        "missing": 3,
        "codes": np.zeros(5, dtype=np.uint8),
    }


def assemble_tree_arguments() -> dict[str, Any]:
    def numbers(*values: float) -> np.ndarray:
        return np.array(values, dtype=np.float64)

    def indices(*values: int) -> np.ndarray:
        return np.array(values, dtype=np.int32)

    return {
        "attribute": indices(0, -1, -1),
        "threshold": numbers(0.5, 0, 0),
        "parent": indices(-1, 0, 0),
        "first_child": indices(1, -1, -1),
        "n_children": indices(2, 0, 0),
        "n_rows": numbers(10, 4, 6),
        "gain": numbers(3, 0, 0),
        "missing": indices(1, 0, 0),
        "missing_rows": numbers(0, 0, 0),
        "table": indices(0, -1, -1),
        "table_size": indices(2, 0, 0),
        "branches": indices(0, 1),
        "error": numbers(5, 1, 1),
        "held_out_error": numbers(1, 0.25, 0.25),
        "parameters": np.ones((3, 2)),
        "held_out": 2.0,
    }


ARGUMENTS: dict[str, Callable[[], dict[str, Any]]] = {
    "Chunk": chunk_arguments,
    "sums": sums_arguments,
    "histograms": histograms_arguments,
    "best_splits": best_splits_arguments,
    "splits_in_chunk": splits_in_chunk_arguments,
    "route": route_arguments,
    "predictions": predictions_arguments,
    "distinct_values": distinct_arguments,
    "cuts": cuts_arguments,
    "put_into_bins": bins_arguments,
    "assemble_tree": assemble_tree_arguments,
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_what_is_right_is_taken(name):
    getattr(_core, name)(**ARGUMENTS[name]())


def test_what_is_right_for_more_classes_is_taken():
    _core.Chunk(**chunk_arguments(n_classes=4))


# -- Sizes and types ------------------------------------------------------------------------------


def arrays(name: str) -> list[tuple[str, str]]:
    given = ARGUMENTS[name]()
    return [(name, key) for key, value in given.items() if isinstance(value, np.ndarray)]


ARRAYS = [pair for name in ARGUMENTS for pair in arrays(name)]
# What is no mistake: more than is needed, fewer bins, any number of nodes or of values.
OF_ANY_LENGTH = {
    ("route", "branches", "longer"),
    ("assemble_tree", "branches", "longer"),
    ("sums", "parameters", "longer"),
    *(("put_into_bins", "cuts", change) for change in ("shorter", "longer", "empty")),
    *(("distinct_values", "values", change) for change in ("shorter", "longer", "empty")),
}
LENGTHS = [
    (*pair, change)
    for pair in ARRAYS
    for change in ("shorter", "longer", "empty")
    if (*pair, change) not in OF_ANY_LENGTH
]


@pytest.mark.parametrize(("name", "key", "change"), LENGTHS)
def test_arrays_of_other_lengths_are_refused(name, key, change):
    given = ARGUMENTS[name]()
    right = given[key]
    given[key] = {
        "shorter": right[:-1],
        "longer": np.concatenate([right, right[-1:]]),
        "empty": right[:0],
    }[change]
    with pytest.raises(ValueError):
        getattr(_core, name)(**given)


# As many scores, levels and coefficients as one likes.
OF_ANY_WIDTH = {
    ("Chunk", "scores", "wider"),
    *(("predictions", "ancestor", change) for change in ("narrower", "wider", "without columns")),
    *(
        ("assemble_tree", "parameters", change)
        for change in ("narrower", "wider", "without columns")
    ),
}
WIDTHS = [
    (name, key, change)
    for name, key in ARRAYS
    for change in ("narrower", "wider", "without columns")
    if ARGUMENTS[name]()[key].ndim == 2 and (name, key, change) not in OF_ANY_WIDTH
]


@pytest.mark.parametrize(("name", "key", "change"), WIDTHS)
def test_matrices_of_other_widths_are_refused(name, key, change):
    given = ARGUMENTS[name]()
    right = given[key]
    given[key] = np.ascontiguousarray(
        {
            "narrower": right[:, :-1],
            "wider": np.concatenate([right, right[:, -1:]], axis=1),
            "without columns": right[:, :0],
        }[change]
    )
    with pytest.raises(ValueError):
        getattr(_core, name)(**given)


@pytest.mark.parametrize(("name", "key"), ARRAYS)
def test_what_is_no_array_is_refused(name, key):
    for value in ("text", 3, [[]]):
        given = {**ARGUMENTS[name](), key: value}
        with pytest.raises(TypeError):
            getattr(_core, name)(**given)


@pytest.mark.parametrize("into", [np.zeros((3, 27), dtype=np.int32), np.zeros((27, 3), "i8").T])
def test_histograms_are_not_added_to_a_copy(into):
    """Where there is no room for whole numbers side by side, nothing could be written."""
    with pytest.raises(TypeError):
        _core.histograms(**{**histograms_arguments(), "into": into})


@pytest.mark.parametrize(("name", "key"), ARRAYS)
def test_arrays_of_other_dimensions_are_refused(name, key):
    for change in (lambda array: array[np.newaxis], lambda array: array.ravel()[0]):
        given = ARGUMENTS[name]()
        given[key] = change(given[key])
        with pytest.raises((TypeError, ValueError)):
            getattr(_core, name)(**given)


def test_what_is_written_to_must_be_writable():
    for name, key in (("put_into_bins", "codes"), ("histograms", "into")):
        given = ARGUMENTS[name]()
        given[key].flags.writeable = False
        before = given[key].copy()
        with pytest.raises((TypeError, ValueError)):
            getattr(_core, name)(**given)
        assert np.array_equal(given[key], before)


# -- Values ---------------------------------------------------------------------------------------


def put(key: str, place: Any, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(given: dict[str, Any]) -> None:
        given[key][place] = value

    return change


def let(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(given: dict[str, Any]) -> None:
        given[key] = value

    return change


def of_question(name: str) -> list[tuple[str, str, Callable[[dict[str, Any]], None]]]:
    return [
        (name, "a row is in no node", put("nodes", (0, 7), 3)),
        (name, "a row is in no node", put("nodes", (1, 0), 1)),
        (name, "a row is in no node", put("nodes", (2, N - 1), 65_535)),
        (name, "trees have at least one node", put("first", 1, 4)),
        (name, "trees have at least one node", put("first", slice(None), [0, 5, 4, 6])),
        (name, "trees have at least one node", put("first", 0, -1)),
        (name, "one scale per score", let("centre", np.zeros(2))),
        (name, "one scale per score", let("scale", np.empty(0))),
        (name, "a log-odds sees all scores or its own", let("per_state", 0)),
        (name, "a log-odds sees all scores or its own", let("per_state", 2)),
        (name, "a fold without a tree", too_few_trees),
    ]


def of_slots(name: str) -> list[tuple[str, str, Callable[[dict[str, Any]], None]]]:
    return [
        (name, "a slot is out of range", put("slot", 0, 3)),
        (name, "a slot is out of range", put("slot", 5, -2)),
        (name, "a slot is out of range", put("slot", 5, INT_MAX)),
        (name, "one slot per node", put("first", -1, 7)),
        (name, "four units", let("units", np.ones(3))),
        (name, "a unit", put("units", 0, 0.0)),
        (name, "a unit", put("units", 3, -1.0)),
        (name, "a unit", put("units", 1, np.inf)),
        (name, "a unit", put("units", 2, np.nan)),
    ]


def too_few_trees(given: dict[str, Any]) -> None:
    fold = np.zeros(N, dtype=np.uint8)
    fold[3] = 2
    given["chunk"] = _core.Chunk(**{**chunk_arguments(), "fold": fold})


OF_SLOTS = ("sums", "histograms", "splits_in_chunk")
BAD = [
    ("Chunk", "a code is out of range", put("codes", (4, 0), 4)),
    ("Chunk", "a code is out of range", put("codes", (N - 1, 1), 5)),
    ("Chunk", "codes must have one or two bytes", let("codes", np.zeros((N, 2), dtype=np.uint32))),
    ("Chunk", "codes must have one or two bytes", let("codes", np.zeros((N, 2)))),
    ("Chunk", "too many bins", put("n_bins", 0, -1)),
    ("Chunk", "too many bins", put("n_bins", 1, 65_535)),
    ("Chunk", "an unknown class", put("labels", 2, 2)),
    ("Chunk", "an unknown class", put("labels", 0, 65_535)),
    ("Chunk", "between 2 and 65535 classes", let("n_classes", 1)),
    ("Chunk", "between 2 and 65535 classes", let("n_classes", 0)),
    ("Chunk", "the offset has another shape", let("n_classes", 3)),
    ("Chunk", "scores must be finite", put("scores", (0, 0), np.nan)),
    ("Chunk", "scores must be finite", put("scores", (N - 1, 0), np.inf)),
    ("Chunk", "scores must be finite", put("offset", (3, 0), -np.inf)),
    ("Chunk", "weights must be positive", put("weights", 0, 0.0)),
    ("Chunk", "weights must be positive", put("weights", 5, -1.0)),
    ("Chunk", "weights must be positive", put("weights", 5, np.nan)),
    ("Chunk", "weights must be positive", put("weights", 5, np.inf)),
    *(bad for name in (*OF_SLOTS, "predictions") for bad in of_question(name)),
    *(bad for name in OF_SLOTS for bad in of_slots(name)),
    ("splits_in_chunk", "one entry per attribute", let("numeric", np.ones(3, dtype=np.uint8))),
    ("splits_in_chunk", "one share per node", let("shares", np.ones(2))),
    ("best_splits", "too many bins", put("n_bins", 0, -1)),
    ("best_splits", "too many bins", put("n_bins", 0, 65_535)),
    ("best_splits", "histograms have another width", let("n_states", 2)),
    ("best_splits", "an impossible number of states", let("n_states", 0)),
    ("best_splits", "the unit must be positive", let("unit", 0.0)),
    ("best_splits", "the unit must be positive", let("unit", np.nan)),
    ("route", "a row is in no node", put("nodes", (1, 3), 1)),
    ("route", "trees have at least one node", put("first", 1, 4)),
    ("route", "an attribute is out of range", put("attribute", 0, 2)),
    ("route", "an attribute is out of range", put("attribute", 0, INT_MAX)),
    ("route", "a child is missing", put("first_child", 0, 2)),
    ("route", "a child is missing", put("first_child", 0, 0)),
    ("route", "a child is missing", put("first_child", 4, -5)),
    ("route", "a child is missing", put("n_children", 0, 3)),
    ("route", "a child is missing", put("n_children", 4, 0)),
    ("route", "a cut has two sides", put("n_children", 0, 1)),
    ("route", "missing values go to no child", put("missing", 0, 2)),
    ("route", "missing values go to no child", put("missing", 4, -1)),
    ("route", "categories are out of range", put("table", 4, 1)),
    ("route", "categories are out of range", put("table", 4, INT_MAX)),
    ("route", "a category goes to no child", put("branches", 3, 2)),
    ("route", "a category goes to no child", put("branches", 0, -1)),
    ("route", "a fold without a tree", too_few_trees),
    ("predictions", "an ancestor is out of range", put("ancestor", (0, 0), 6)),
    ("predictions", "an ancestor is out of range", put("ancestor", (5, 1), -1)),
    ("distinct_values", "between 1 and 65534 values", let("most", 0)),
    ("distinct_values", "between 1 and 65534 values", let("most", 65_535)),
    ("distinct_values", "numbers of four or eight bytes", let("values", np.arange(5))),
    ("cuts", "between 2 and 65534 bins", let("max_bins", 1)),
    ("cuts", "between 2 and 65534 bins", let("max_bins", 65_535)),
    ("put_into_bins", "one code for missing values", let("missing", 2)),
    ("put_into_bins", "one code for missing values", let("missing", 65_536)),
    ("put_into_bins", "more bins than a byte can tell apart", let("missing", 256)),
    ("put_into_bins", "codes must have one or two bytes", let("codes", np.zeros(5, dtype="u4"))),
    ("put_into_bins", "numbers of four or eight bytes", let("values", np.arange(5, dtype="f2"))),
    ("assemble_tree", "a parent comes after its child", put("parent", 1, 1)),
    ("assemble_tree", "a parent comes after its child", put("parent", 2, -1)),
    ("assemble_tree", "a child is out of range", put("first_child", 0, 2)),
    ("assemble_tree", "a child is out of range", put("first_child", 0, 0)),
    ("assemble_tree", "a child is out of range", put("first_child", 0, -1)),
    ("assemble_tree", "a child is out of range", put("attribute", 1, 0)),
    ("assemble_tree", "a child is out of range", put("n_children", 0, 3)),
    ("assemble_tree", "a child is out of range", put("n_children", 0, 0)),
    ("assemble_tree", "a child is out of range", put("n_children", 0, -1)),
    ("assemble_tree", "a leaf has no children", put("n_children", 1, 1)),
    ("assemble_tree", "categories are out of range", put("table_size", 0, 3)),
    ("assemble_tree", "categories are out of range", put("table", 0, 1)),
]


@pytest.mark.parametrize(
    ("name", "message", "change"),
    BAD,
    ids=[f"{name}-{number}" for number, (name, _, _) in enumerate(BAD)],
)
def test_bad_values_are_refused(name, message, change):
    given = ARGUMENTS[name]()
    change(given)
    with pytest.raises(ValueError, match=message):
        getattr(_core, name)(**given)


# -- Not yet refused ------------------------------------------------------------------------------


def wide_states(given: dict[str, Any]) -> None:
    given.update(n_states=2**63, histograms=np.ones((2, 9), dtype=np.int64))


def backwards(given: dict[str, Any]) -> None:
    given["table"][0], given["table_size"][0] = 2, -2


ACCEPTED = [
    ("assemble_tree", put("missing", 0, 7)),
    ("assemble_tree", put("branches", 0, 7)),
    ("assemble_tree", backwards),
]
# Sums of 32-bit numbers would overflow, or memory beyond the end be read.
UNDEFINED = [
    ("best_splits", wide_states),
    ("route", put("first_child", 0, INT_MAX)),
    ("sums", put("first", 0, -(2**31))),
    ("assemble_tree", put("first_child", 0, INT_MAX)),
    ("assemble_tree", put("table", 0, INT_MAX)),
]


@pytest.mark.parametrize(("name", "change"), ACCEPTED, ids=["missing", "branch", "backwards"])
def test_what_leads_nowhere_is_refused(name, change):
    given = ARGUMENTS[name]()
    change(given)
    with pytest.raises(ValueError):
        getattr(_core, name)(**given)


@pytest.mark.parametrize(
    ("name", "change"), UNDEFINED, ids=["states", "route", "sums", "child", "table"]
)
def test_numbers_that_overflow_are_refused(name, change):
    given = ARGUMENTS[name]()
    change(given)
    with pytest.raises(ValueError):
        getattr(_core, name)(**given)


# -- What looks odd and is right ------------------------------------------------------------------


def test_no_rows_have_sums_of_nothing():
    given = chunk_arguments()
    for key, value in given.items():
        if isinstance(value, np.ndarray) and key != "n_bins":
            given[key] = value[:0]
    empty = _core.Chunk(**given)
    nodes = np.zeros((N_TREES, 0), dtype=np.uint16)
    asked = {"chunk": empty, "nodes": nodes}
    assert not _core.sums(**{**sums_arguments(), **asked}).any()
    into = np.zeros((3, 27), dtype=np.int64)
    _core.histograms(**{**histograms_arguments(), **asked, "into": into})
    assert not into.any()
    assert _core.route(**{**route_arguments(), **asked}).shape == (N_TREES, 0)
    assert _core.predictions(**{**predictions_arguments(), **asked}).shape == (2, 0, 1)


def test_nothing_asked_is_nothing_answered():
    given = {
        **sums_arguments(),
        "slot": np.full(6, -1, dtype=np.int32),
        "parameters": np.empty((0, 2)),
    }
    assert _core.sums(**given).shape[0] == 0
    found = _core.best_splits(
        **{
            **best_splits_arguments(),
            "histograms": np.empty((0, 27), dtype=np.int64),
            "shares": np.empty(0),
        }
    )
    assert all(len(values) == 0 for values in found.values())


def test_a_node_without_rows_has_no_split():
    found = _core.best_splits(
        **{**best_splits_arguments(), "histograms": np.zeros((2, 27), dtype=np.int64)}
    )
    assert found["attribute"].tolist() == [-1, -1] and found["table"].tolist() == [-1, -1]


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_numbers_of_any_size_are_put_into_bins(value):
    given = bins_arguments()
    given["values"][2] = value
    _core.put_into_bins(**given)
    assert given["codes"].tolist() == [0, 1, 3 if value != value else 2, 2, 2]
    given["cuts"][:] = value
    _core.put_into_bins(**given)
    assert given["codes"].max() <= 3
    assert len(_core.cuts(np.array([1.0, value, 2.0]), None, 5)) <= 2
    assert len(_core.distinct_values(np.array([1.0, value, 2.0]), 5)) == 3 - (value != value)


def test_far_scores_and_parameters_are_cut_off():
    given = sums_arguments()
    for size in (1e100, -1e100):
        scores = np.full((N, 1), size)
        chunk = _core.Chunk(**{**chunk_arguments(), "scores": scores, "offset": scores})
        found = _core.sums(**{**given, "chunk": chunk, "units": np.full(4, 1024.0)})
        assert np.abs(found).max() <= 1024 * 1e4 * N


def test_the_arrays_of_a_chunk_live_as_long_as_it():
    chunk = _core.Chunk(**chunk_arguments())
    expected = _core.sums(**sums_arguments())
    np.random.default_rng(1).standard_normal(10_000)  # whatever was freed is written over
    assert np.array_equal(_core.sums(**{**sums_arguments(), "chunk": chunk}), expected)
