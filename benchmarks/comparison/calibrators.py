"""The calibrators that are compared: under which name, for how many classes, from where."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from caltree import (
    BetaScaling,
    CalibrationBoosting,
    CalibrationEnsemble,
    CalibrationForest,
    CalibrationTree,
    IdentityCalibrator,
    IsotonicScaling,
    PlattScaling,
    PublishedCalibrationTree,
    TemperatureScaling,
)

from . import peers


@dataclass(frozen=True)
class Entry:
    """How a calibrator is made, of a seed, and what it asks for."""

    make: Callable[[int], Any]
    modules: tuple[str, ...] = ()
    """What must be there to import, unless it comes with us."""
    only_two_classes: bool = False
    is_global: bool = False
    """Whether it maps scores to probabilities in one way, whatever the attributes."""
    needs_learner: bool = False
    """Whether it trains the learner itself, which is then set as its parameter `learner`."""

    def applies_to(self, n_classes: int) -> bool:
        """Whether it can calibrate so many classes at all."""
        return n_classes == 2 or not self.only_two_classes


CALIBRATORS: Mapping[str, Entry] = {
    "none": Entry(lambda seed: IdentityCalibrator(), is_global=True),
    "platt": Entry(lambda seed: PlattScaling(), is_global=True),
    "isotonic": Entry(lambda seed: IsotonicScaling(), is_global=True),
    "temperature": Entry(lambda seed: peers.TemperatureScaling(), is_global=True),
    "our_temperature": Entry(lambda seed: TemperatureScaling(), is_global=True),
    "our_beta": Entry(lambda seed: BetaScaling(), is_global=True),
    "beta": Entry(lambda seed: peers.BetaCalibration(), ("betacal",), is_global=True),
    "venn_abers": Entry(lambda seed: peers.VennAbers(), ("venn_abers",), is_global=True),
    # probmetrics imports numba but does not ask for it.
    "logistic": Entry(lambda seed: peers.Logistic(), ("probmetrics", "numba"), is_global=True),
    "spline": Entry(lambda seed: peers.Spline(), ("splinecalib",), is_global=True),
    "mcgrad": Entry(
        lambda seed: peers.MCGrad(random_state=seed), ("mcgrad",), only_two_classes=True
    ),
    "lightgbm": Entry(lambda seed: peers.LightGBM(random_state=seed), ("lightgbm",)),
    "published": Entry(lambda seed: PublishedCalibrationTree()),
    "tree": Entry(lambda seed: CalibrationTree()),
    "forest": Entry(lambda seed: CalibrationForest(random_state=seed)),
    "boosting": Entry(lambda seed: CalibrationBoosting(random_state=seed), ("lightgbm",)),
    "ensemble": Entry(lambda seed: CalibrationEnsemble(random_state=seed), ("lightgbm",)),
}

RETRAINED: Mapping[str, Entry] = {
    "sklearn_sigmoid": Entry(lambda seed: peers.SklearnEnsemble("sigmoid"), needs_learner=True),
    "sklearn_isotonic": Entry(lambda seed: peers.SklearnEnsemble("isotonic"), needs_learner=True),
}
"""Those that train the learner again; the time that takes is part of theirs."""

VARIANTS: Mapping[str, Entry] = {
    "tree_large": Entry(lambda seed: CalibrationTree(max_leaf_nodes=None, kept_gain=1.0)),
    "tree_half": Entry(lambda seed: CalibrationTree(max_leaf_nodes=32)),
    "tree_free": Entry(lambda seed: CalibrationTree(monotone=False)),
    "tree_leaves": Entry(lambda seed: CalibrationTree(path_averaging=False)),
    "tree_always": Entry(lambda seed: CalibrationTree(do_no_harm=False)),
    "tree_stiff": Entry(lambda seed: CalibrationTree(l2_regularization=1.0)),
    "forest_small": Entry(lambda seed: CalibrationForest(25, random_state=seed)),
    "forest_stiff": Entry(lambda seed: CalibrationForest(l2_regularization=1.0, random_state=seed)),
    "forest_half": Entry(lambda seed: CalibrationForest(max_features=0.5, random_state=seed)),
}
"""Our own with one default changed: what that default is good for."""

ALL: Mapping[str, Entry] = {**CALIBRATORS, **RETRAINED, **VARIANTS}

_PACKAGES = {"venn_abers": "venn-abers"}  # where the module has another name


def applicable(names: Iterable[str], n_classes: int) -> tuple[str, ...]:
    """Those that can calibrate so many classes."""
    return tuple(name for name in names if ALL[name].applies_to(n_classes))


def check_installed(calibrators: Iterable[str], learners: Iterable[str]) -> None:
    """Raise ImportError, which says how to get it, if something is not there."""
    modules = [module for name in calibrators for module in ALL[name].modules]
    modules += ["lightgbm"] if "gradient_boosting" in learners else []
    absent = [module for module in dict.fromkeys(modules) if find_spec(module) is None]
    if absent:
        packages = ", ".join(_PACKAGES.get(module, module) for module in absent)
        raise ImportError(
            f"not installed: {packages}; run: pip install --group benchmark, or leave out what "
            "needs it with --calibrators and --learners"
        )
