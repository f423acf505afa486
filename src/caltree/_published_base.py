"""The base of the estimators that grow the published tree, whatever its node models look at."""

from __future__ import annotations

from typing import Any, Literal

import numpy.typing as npt

from ._fitted.json_values import is_number
from ._fitted.model import FittedModel
from ._inputs.arrays import Floats, Mask
from ._inputs.folds import make_folds
from ._inputs.parameters import (
    check_alpha,
    check_count,
    check_cv,
    check_depth,
    check_jobs,
    check_verbose,
    is_cv,
)
from ._training.dataset import Dataset
from ._training.pruning import Path
from ._training.published import Boosting, PublishedEngine, fit_published_tree
from ._training.settings import depth_limit


class PublishedMethod:
    """C4.5's splits, LogitBoost's node models, and pruning, with the parameters of all three."""

    boosting_iterations: int | Literal["cv"]
    max_boosting_iterations: int
    min_samples_split: int
    min_samples_leaf: int
    max_depth: int | None
    cv: Any
    ccp_alpha: float | Literal["cv"] | None
    random_state: Any
    n_jobs: int | None
    verbose: int
    boosting_iterations_: int
    ccp_alpha_: float | None
    ccp_path_: Path | None

    def _check_growth(self) -> None:
        """Refuse parameters that no tree can be grown with."""
        if not is_cv(self.boosting_iterations):
            check_count("boosting_iterations", self.boosting_iterations, 1, "'cv' or ")
        check_count("max_boosting_iterations", self.max_boosting_iterations, 1)
        check_count("min_samples_split", self.min_samples_split, 2)
        check_count("min_samples_leaf", self.min_samples_leaf, 1)
        check_depth(self.max_depth)
        check_alpha(self.ccp_alpha)
        check_jobs(self.n_jobs)
        check_verbose(self.verbose)
        if self._needs_folds():
            check_cv(self.cv)

    def _needs_folds(self) -> bool:
        return is_cv(self.ccp_alpha) or is_cv(self.boosting_iterations)

    def _fit_tree(
        self,
        dataset: Dataset,
        keep: Mask | None,
        groups: npt.NDArray[Any] | None = None,
        *,
        frequencies: bool,
        scoring: Literal["rmse", "accuracy"] = "rmse",
    ) -> tuple[FittedModel, Floats | None]:
        """Fit a tree to rows, of which some of the table may not have been kept.

        Also return the cross-validated error by number of iterations, if that was chosen.
        """
        folds = []
        if self._needs_folds():
            folds = make_folds(self.cv, dataset.labels, keep, self.random_state, groups)
        iterations = self.boosting_iterations
        boosting = Boosting(
            min_samples_split=float(self.min_samples_split),
            min_samples_leaf=float(self.min_samples_leaf),
            max_depth=depth_limit(self.max_depth),
            iterations=None if is_cv(iterations) else int(iterations),
            max_iterations=int(self.max_boosting_iterations),
            frequencies=frequencies,
            scoring=scoring,
        )
        engine = PublishedEngine(
            dataset, folds, boosting, prunes=is_cv(self.ccp_alpha), n_jobs=self.n_jobs
        )
        fitted = fit_published_tree(engine, self.ccp_alpha)
        self.boosting_iterations_ = engine.iterations
        self.ccp_alpha_, self.ccp_path_ = fitted.pruning.alpha, fitted.pruning.path
        return fitted.model, engine.iteration_errors

    def _chosen_parameters(self) -> dict[str, Any]:
        """Return the chosen parameters as plain values."""
        return {"boosting_iterations": self.boosting_iterations_, "ccp_alpha": self.ccp_alpha_}

    def _restore_chosen(self, chosen: dict[str, Any]) -> None:
        """Take over the values of `_chosen_parameters`, or raise a ValueError."""
        if set(chosen) != {"boosting_iterations", "ccp_alpha"}:
            raise ValueError(
                "chosen of a stored tree must have the keys boosting_iterations and ccp_alpha"
            )
        iterations, alpha = chosen["boosting_iterations"], chosen["ccp_alpha"]
        if type(iterations) is not int or (alpha is not None and not is_number(alpha)):
            raise ValueError("chosen of a stored tree must hold numbers")
        self.boosting_iterations_, self.ccp_alpha_ = iterations, alpha
        self.ccp_path_ = None
