"""The choice of the pruning strength of the published method."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from caltree import _core
from caltree._training.pruning import choose_pruning

STEPS = np.array([0.0, 0.01, 0.04])
SEQUENCES = [
    (np.array([0.0, 0.015, 0.3]), np.array([0.5, 0.4, 0.6])),
    (np.array([0.0, 0.3, 0.02]), np.array([0.5, 0.3, 0.2])),  # a dip: 0.02 comes with 0.3
]


@dataclass
class Grown:
    """Trees of which the pruning sequences alone are known: strengths and squared errors."""

    whole: Any
    of_folds: Any


@pytest.fixture(autouse=True)
def sequences(monkeypatch):
    monkeypatch.setattr(_core, "pruning_sequence", lambda strengths, losses: (strengths, losses))


def choose(sequences, ccp_alpha="cv"):
    """The choice if these are the RMSE of folds."""
    squares = [(strengths, rmse**2) for strengths, rmse in sequences]
    return choose_pruning(Grown((STEPS, None), squares), ccp_alpha)


def test_strengths_lie_between_the_steps_and_every_fold_answers_with_its_own():
    found = choose(SEQUENCES)
    strengths, rmse = found.path
    # The root alone is taken for a tree of strength 1.
    np.testing.assert_allclose(strengths, [0.0, 0.02, 0.2])
    np.testing.assert_allclose(rmse, [0.5, 0.45, 0.45])
    assert found.alpha == strengths[2]


def test_of_equal_strengths_the_stronger_is_chosen():
    fold = (np.array([0.0]), np.array([0.5]))
    assert choose([fold]).alpha == pytest.approx(0.2)
    better = (np.array([0.0, 0.03]), np.array([0.4, 0.5]))
    assert choose([better]).alpha == pytest.approx(0.02)


def test_a_fold_without_weight_says_nothing():
    nothing = (np.array([0.0, 0.3]), np.empty(0))
    found, expected = choose([*SEQUENCES, nothing]), choose(SEQUENCES)
    assert found.alpha == expected.alpha
    assert np.array_equal(found.path[1], expected.path[1])


@pytest.mark.parametrize("strength", [None, 0.0, 0.02])
def test_a_fixed_strength_is_not_judged(strength):
    found = choose(SEQUENCES, strength)
    assert (found.alpha, found.path) == (strength, None)
