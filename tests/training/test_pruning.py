"""The choice of the pruning strength."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from caltree import _core
from caltree._training.pruning import choose_pruning
from caltree._training.settings import Settings

STEPS = np.array([0.0, 0.01, 0.04])
SEQUENCES = [
    (np.array([0.0, 0.015, 0.3]), np.array([0.5, 0.4, 0.6])),
    (np.array([0.0, 0.3, 0.02]), np.array([0.5, 0.3, 0.2])),  # a dip: 0.02 comes with 0.3
]


@dataclass
class Grown:
    """Trees of which the pruning sequences alone are known: strengths and losses."""

    whole: Any
    of_folds: Any


@pytest.fixture(autouse=True)
def sequences(monkeypatch):
    monkeypatch.setattr(_core, "pruning_sequence", lambda strengths, losses: (strengths, losses))


def make_settings(scoring="rmse", ccp_alpha="cv", criteria=("residual",)):
    return Settings(
        criteria=criteria,
        scoring=scoring,
        ccp_alpha=ccp_alpha,
        path_averaging=False,
        do_no_harm=False,
    )


def choose(sequences, strength_of_root, settings=None):
    """The choice if these are the RMSE or, if that is the scoring, the log losses of folds."""
    settings = make_settings() if settings is None else settings
    if settings.scoring == "rmse":
        sequences = [(strengths, rmse**2) for strengths, rmse in sequences]
    return choose_pruning(Grown((STEPS, None), sequences), settings, strength_of_root)


def test_strengths_lie_between_the_steps_and_every_fold_answers_with_its_own():
    found = choose(SEQUENCES, 1.0)
    strengths, rmse = found.path
    np.testing.assert_allclose(strengths, [0.0, 0.02, 0.2])
    np.testing.assert_allclose(rmse, [0.5, 0.45, 0.45])
    assert found.alpha == strengths[2]
    assert found.loss == rmse.min()


@pytest.mark.parametrize("scoring", ["rmse", "log_loss"])
def test_the_last_strength_is_that_of_the_root_in_every_fold(scoring):
    found = choose(SEQUENCES, None, make_settings(scoring))
    strengths, losses = found.path
    # Between 0.04 and 4, which no step in deviance comes near.
    np.testing.assert_allclose(strengths, [0.0, 0.02, 0.4])
    np.testing.assert_allclose(losses, [0.5, 0.45, 0.4])
    assert found.alpha == strengths[2] and found.loss == losses[2]


def test_of_equal_strengths_the_stronger_is_chosen():
    fold = (np.array([0.0]), np.array([0.5]))
    assert choose([fold], 1.0).alpha == pytest.approx(0.2)
    better = (np.array([0.0, 0.03]), np.array([0.4, 0.5]))
    assert choose([better], 1.0).alpha == pytest.approx(0.02)


@pytest.mark.parametrize("strength", [None, 0.0, 0.02])
def test_a_fixed_strength_is_judged_only_if_criteria_are_compared(strength):
    alone = choose(SEQUENCES, 1.0, make_settings(ccp_alpha=strength))
    assert (alone.alpha, alone.path, alone.loss) == (strength, None, math.inf)
    both = make_settings(ccp_alpha=strength, criteria=("residual", "gain_ratio"))
    found = choose(SEQUENCES, 1.0, both)
    assert (found.alpha, found.path) == (strength, None)
    assert found.loss == pytest.approx(0.45 if strength else 0.5)
