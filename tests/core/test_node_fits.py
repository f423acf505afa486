"""Node models that are fitted by sums, and the same fitted by the rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caltree import _core

from ..spec import newton
from ..spec import shrunken as spec
from ..support.histogram_cases import examples
from ..support.shrunken_cases import cases, core_nodes, core_parameters, core_tree

SAME = {"rtol": 1e-9, "atol": 1e-9}
# Where no probability is further from 0 and 1, a temperature tells all classes apart: the sharper
# the better, until nothing is left to gain.
SURE = 1e-9


# -- The same steps -------------------------------------------------------------------------------


def fitted_by_sums(
    sample: spec.Sample,
    parts: list[np.ndarray],
    parents: list[np.ndarray],
    penalty: float,
    *,
    sees_all: bool,
    is_root: bool,
    monotone: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Node models of several nodes, whose rows are known by sums alone; and the steps of each."""
    shape, seen = sample.no_correction.shape, sample.regressors
    # What all states see is given once.
    centre, scale = (np.ravel(each[:1] if sees_all else each) for each in (seen.centre, seen.scale))

    def sums(nodes: Any, parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        found = []
        for node, flat in zip(nodes, parameters, strict=True):
            rows, matrix = parts[node], flat.reshape(shape)
            loss = sample.weights[rows] @ spec.losses(sample, rows, matrix)
            found.append((loss, *spec.derivatives(sample, rows, matrix)))
        loss, gradient, hessian = (np.array(each) for each in zip(*found, strict=True))
        return loss, gradient, hessian

    starts = np.array([parent.ravel() for parent in parents])
    weight = np.array([sample.weights[rows].sum() for rows in parts])
    loss, gradient, hessian = sums(range(len(parts)), starts)
    fits = _core.NodeFits(
        starts,
        shape[0],
        sees_all,
        centre,
        scale,
        seen.corrects_probabilities,
        penalty,
        is_root,
        weight,
        loss,
        gradient,
        hessian,
        0.0,
        monotone,
    )
    n_steps = np.zeros(len(parts), dtype=int)
    while len(pending := fits.pending()) > 0:
        trials = fits.trials()
        before = fits.parameters()[pending]
        moved = fits.take(*sums(pending, trials)).astype(bool)
        # Whoever has moved is where the trial was, and nobody else is elsewhere.
        after = np.where(moved[:, np.newaxis], trials, before)
        assert np.array_equal(fits.parameters()[pending], after)
        n_steps[pending] += moved
    return fits.parameters().reshape(len(parts), *shape), n_steps


def test_roots_are_the_same_by_sums_and_by_rows():
    steps = Counter()

    @examples(80)
    @given(cases(), st.sampled_from([0.05, 0.001, 30.0]), st.booleans())
    def check(case, penalty, monotone):
        monotone = monotone and case.can_be_monotone
        sample = case.sample()
        arrays = core_tree(case, spec.Settings(penalty, max_depth=0, monotone=monotone)).arrays
        rows, nothing = np.arange(len(case.y)), sample.no_correction
        sees_all = nothing.shape[1] == 1 + case.scores.shape[1]
        kind = {"sees_all": sees_all, "is_root": True, "monotone": monotone}
        found, n_steps = fitted_by_sums(sample, [rows], [nothing], penalty, **kind)
        expected = core_parameters(sample, arrays, 0)
        said, said_by_rows = (sample.probabilities(rows, each) for each in (found[0], expected))
        np.testing.assert_allclose(said, said_by_rows, **SAME)
        if (said_by_rows * (1.0 - said_by_rows)).max() > SURE:
            np.testing.assert_allclose(found[0], expected, **SAME)
        steps.update(n_steps.tolist())

    check()
    assert sum(count for n_steps, count in steps.items() if n_steps > 5) > 20


def test_nodes_below_a_root_are_the_same_by_sums_and_by_rows():
    steps = Counter()

    @examples(80)
    @given(cases(), st.sampled_from([0.001, 0.05, 10.0, 1000.0]), st.booleans())
    def check(case, penalty, monotone):
        monotone = monotone and case.can_be_monotone
        sample = case.sample()
        limits = spec.Settings(penalty, 2.0, 1.0, max_depth=1, monotone=monotone)
        arrays = core_tree(case, limits).arrays
        children = [node for node in core_nodes(case, arrays) if node.parent == 0]
        if not children:
            return
        root = core_parameters(sample, arrays, 0)
        found, n_steps = fitted_by_sums(
            sample,
            [child.rows for child in children],
            [root] * len(children),
            penalty,
            sees_all=root.shape[1] == 1 + case.scores.shape[1],
            is_root=False,
            monotone=monotone,
        )
        for parameters, child in zip(found, children, strict=True):
            expected = core_parameters(sample, arrays, child.index)
            np.testing.assert_allclose(parameters, expected, **SAME)
        steps.update(n_steps.tolist())

    check()
    assert steps[1] > 0 and steps[newton.MOST_STEPS] > 10


def test_noise_is_no_gain():
    """Losses that are known but for some noise do not keep a root going, nor hold it back."""
    given = good()
    given["is_root"] = True
    fits = _core.NodeFits(**{**given, "noise": 5.0})
    assert fits.pending().tolist() == [0, 1]
    # Worse by less than the noise: taken for as good, and the end.
    moved = fits.take(given["loss"] + 4.0, given["gradient"], given["hessian"])
    assert moved.tolist() == [1, 1] and len(fits.pending()) == 0
    fits = _core.NodeFits(**{**given, "noise": 0.0})
    moved = fits.take(given["loss"] + 4.0, given["gradient"], given["hessian"])
    assert moved.tolist() == [0, 0] and len(fits.pending()) == 2


def test_a_step_that_does_not_help_is_halved():
    given = good()
    fits = _core.NodeFits(**given)
    whole = fits.trials() - given["parents"]
    assert fits.take(given["loss"] + 1e6, given["gradient"], given["hessian"]).tolist() == [0, 0]
    np.testing.assert_allclose(fits.trials() - given["parents"], whole / 2, rtol=1e-12)
    for _ in range(newton.MOST_HALVINGS - 1):
        assert len(fits.pending()) == 2
        fits.take(given["loss"] + 1e6, given["gradient"], given["hessian"])
    assert len(fits.pending()) == 0
    assert np.array_equal(fits.parameters(), given["parents"])


@pytest.mark.parametrize("is_root", [False, True])
def test_without_a_step_there_is_no_trial(is_root):
    """By rounding a Hessian may be none: then a root is damped, and others stay where they are."""
    given = {**good(), "is_root": is_root}
    # Rows that are alike, and weigh so much that the penalty is lost.
    given["weight"][0] = 1e20
    given["hessian"][0] = 1e20 * (1.0 - 1e-15 * np.eye(WIDTH))
    fits = _core.NodeFits(**given)
    assert fits.pending().tolist() == ([0, 1] if is_root else [1])
    assert np.isfinite(fits.trials()).all()
    assert np.array_equal(fits.parameters(), given["parents"])


# -- Shapes ---------------------------------------------------------------------------------------

N_NODES, N_STATES, WIDTH = 2, 3, 4


def good() -> dict[str, Any]:
    """Two nodes of three log-odds, each of which sees three scores."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(N_NODES, N_STATES, WIDTH, WIDTH))
    return {
        "parents": rng.normal(size=(N_NODES, N_STATES * WIDTH)),
        "n_states": N_STATES,
        "sees_all": True,
        "centre": np.zeros(WIDTH - 1),
        "scale": np.ones(WIDTH - 1),
        "corrects_probabilities": False,
        "penalty": 0.05,
        "is_root": False,
        "weight": np.array([10.0, 20.0]),
        "loss": np.array([5.0, 9.0]),
        "gradient": rng.normal(size=(N_NODES, N_STATES, WIDTH)),
        "hessian": root @ root.transpose(0, 1, 3, 2) + np.eye(WIDTH),
        "noise": 0.0,
    }


def shorter(array: np.ndarray, axis: int) -> np.ndarray:
    return np.ascontiguousarray(np.delete(array, -1, axis=axis))


def longer(array: np.ndarray, axis: int) -> np.ndarray:
    return np.concatenate([array, np.take(array, [-1], axis=axis)], axis=axis)


SCORES = {"centre": 1, "scale": 1}
ARRAYS = {"parents": 2, "weight": 1, "loss": 1, "gradient": 3, "hessian": 4}
SHAPES = [
    pytest.param(name, change, axis, id=f"{name}-{axis}-{change.__name__}")
    for name, ndim in {**ARRAYS, **SCORES}.items()
    for axis in range(ndim)
    for change in (shorter, longer)
]


def test_right_shapes_are_taken():
    fits = _core.NodeFits(**good())
    assert fits.pending().tolist() == [0, 1]
    assert fits.trials().shape == fits.parameters().shape == (N_NODES, N_STATES * WIDTH)


@pytest.mark.parametrize(("name", "change", "axis"), SHAPES)
def test_other_shapes_are_refused(name, change, axis):
    given = good()
    given[name] = change(given[name], axis)
    wrong = r"one entry per node|another (shape|width)|one centre and scale per score"
    with pytest.raises(ValueError, match=wrong):
        _core.NodeFits(**given)


@pytest.mark.parametrize("name", [*ARRAYS, *SCORES])
def test_other_dimensions_are_refused(name):
    given = good()
    for change in (given[name][np.newaxis], given[name][0], "text", None):
        with pytest.raises(TypeError):
            _core.NodeFits(**{**given, name: change})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_states": 0}, "parameters have another width"),
        ({"n_states": 5}, "parameters have another width"),
        ({"n_states": 4}, "the gradient has another shape"),
        ({"sees_all": False}, "one centre and scale per score"),
        ({"parents": np.empty((N_NODES, 0))}, "parameters have another width"),
        ({"rising": True}, "only one score of two classes can rise"),
        ({"penalty": 0.0}, "the penalty must be positive"),
        ({"penalty": -1.0}, "the penalty must be positive"),
        ({"penalty": np.nan}, "the penalty must be positive"),
    ],
)
def test_other_numbers_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        _core.NodeFits(**{**good(), **changes})


SHAPES_TO_TAKE = [each for each in SHAPES if each.values[0] in ("loss", "gradient", "hessian")]


@pytest.mark.parametrize(("name", "change", "axis"), SHAPES_TO_TAKE)
def test_other_shapes_are_not_taken(name, change, axis):
    given = good()
    fits = _core.NodeFits(**given)
    before = fits.trials()
    sums = {key: given[key] for key in ("loss", "gradient", "hessian")}
    with pytest.raises(ValueError, match=r"another shape|one loss per pending node"):
        fits.take(**{**sums, name: change(sums[name], axis)})
    assert np.array_equal(fits.trials(), before)
    fits.take(**sums)


@pytest.mark.parametrize("change", [shorter, longer])
def test_sums_of_other_nodes_than_are_pending_are_refused(change):
    given = good()
    fits = _core.NodeFits(**given)
    before = fits.trials()
    sums = [change(given[name], 0) for name in ("loss", "gradient", "hessian")]
    with pytest.raises(ValueError, match="one loss per pending node"):
        fits.take(*sums)
    assert np.array_equal(fits.trials(), before)


def test_no_nodes_have_nothing_pending():
    given = good()
    for name in ARRAYS:
        given[name] = given[name][:0]
    fits = _core.NodeFits(**given)
    assert len(fits.pending()) == 0 and fits.trials().shape == (0, N_STATES * WIDTH)
