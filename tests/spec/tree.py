"""The whole: missing values, number of iterations, growing, pruning."""

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import numpy as np

from .boosting import Classes, Floats, choose_iterations, in_order_sum, mean_error
from .folds import Rows, deal_folds
from .nodes import Node, fit_node_models, grow
from .pruning import pruning_sequence


@dataclass
class SpecTree:
    """A fitted tree.

    Attributes
    ----------
    root : the (pruned) tree
    replacements : (d,) what stands in for missing values
    boosting_iterations : the number chosen at the root, or fixed
    iteration_error : held-out error summed over folds, by number of iterations; None if fixed
    alpha : strength of pruning used; None if not pruned
    pruning_path : strengths tried and their held-out error summed over folds; None unless "cv"
    """

    root: Node
    replacements: Floats
    boosting_iterations: int
    iteration_error: Floats | None
    alpha: float | None
    pruning_path: tuple[Floats, Floats] | None

    def predict_proba(self, X: Floats, scores: Floats) -> Floats:
        """Calibrated probabilities (n, m)."""
        return self.root.predict_proba(fill_missing(X, self.replacements), scores)


def published_tree(
    X: Floats,
    y: Classes,
    scores: Floats,
    n_categories: Sequence[int],
    n_classes: int,
    *,
    boosting_iterations: int | None = None,
    max_boosting_iterations: int = 200,
    n_folds: int = 5,
    pruning: str | float | None = "cv",
    min_samples_split: int = 16,
    min_samples_leaf: int = 2,
    max_depth: int | None = None,
    by_wrong_rows: bool = False,
) -> SpecTree:
    """Fit the published tree.

    Parameters
    ----------
    X : (n, d) attributes; nominal values as category indices, NaN where missing
    y : (n,) class indices
    scores : (n, c) log-odds or margins
    n_categories : for each attribute its number of categories, 0 if numeric
    n_classes : number of classes
    boosting_iterations : to run in every node; None to choose by cross-validation
    max_boosting_iterations : most iterations tried in that choice
    n_folds : folds of both cross-validations
    pruning : "cv", a fixed strength, or None for the tree as grown
    min_samples_split, min_samples_leaf, max_depth : limits of growth
    by_wrong_rows : choose by wrong rows, as logistic model trees do, not by RMSE
    """
    replacements = missing_value_replacements(X, n_categories)
    X = fill_missing(X, replacements)
    no_model = np.zeros((n_classes, 1 + scores.shape[1]))

    iteration_error = None
    iterations_in_node = boosting_iterations
    if boosting_iterations is None:
        boosting_iterations, iteration_error = choose_iterations(
            no_model, scores, y, max_boosting_iterations, n_folds, by_wrong_rows
        )
        # Where boosting does not even help at the root, every node chooses for itself.
        iterations_in_node = boosting_iterations or None

    def grown_on(rows: Rows) -> Node:
        root = grow(
            X,
            y,
            n_categories,
            n_classes,
            rows,
            min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf,
            max_depth=max_depth,
        )
        fit_node_models(
            root,
            no_model,
            scores,
            y,
            iterations_in_node,
            max_boosting_iterations,
            n_folds,
            by_wrong_rows,
        )
        return root

    root = grown_on(np.arange(len(y)))
    alpha, path = None, None
    if pruning == "cv":
        curves = [
            pruning_curve(grown_on(train), X[test], y[test], scores[test], by_wrong_rows)
            for train, test in deal_folds(y, n_folds)
        ]
        path = strengths_tried(list(pruning_sequence(deepcopy(root), len(y))), curves)
        alpha = best_strength(*path)
    elif pruning is not None:
        alpha = float(pruning)
    if alpha is not None:
        list(pruning_sequence(root, len(y), alpha))
    return SpecTree(root, replacements, boosting_iterations, iteration_error, alpha, path)


def missing_value_replacements(X: Floats, n_categories: Sequence[int]) -> Floats:
    """Mean of a numeric attribute, most frequent category (the first of equals) of a nominal one.

    Where every value of an attribute is missing, 0.
    """
    replacements = np.zeros(X.shape[1])
    for attribute, size in enumerate(n_categories):
        present = X[~np.isnan(X[:, attribute]), attribute]
        if size > 0:
            counts = np.bincount(present.astype(np.intp), minlength=size)
            replacements[attribute] = np.argmax(counts)
        elif len(present) > 0:
            replacements[attribute] = in_order_sum(present) / len(present)
    return replacements


def fill_missing(X: Floats, replacements: Floats) -> Floats:
    return np.where(np.isnan(X), replacements, X)


def pruning_curve(
    root: Node, X: Floats, y: Classes, scores: Floats, by_wrong_rows: bool = False
) -> tuple[list[float], list[float]]:
    """Alphas of the pruning sequence of a fold's tree, and the held-out error after each step."""
    alphas, errors = [], []
    for alpha in pruning_sequence(root, root.n):
        alphas.append(alpha)
        errors.append(mean_error(root.predict_proba(X, scores), y, by_wrong_rows))
    return alphas, errors


def strengths_tried(
    alphas: list[float], curves: list[tuple[list[float], list[float]]]
) -> tuple[Floats, Floats]:
    """Strengths between the steps of the full tree, and their held-out error summed over folds."""
    strengths = [
        math.sqrt(alpha * following)
        for alpha, following in zip(alphas, [*alphas[1:], 1.0], strict=True)
    ]
    sums = [
        sum(errors[step_reached(fold_alphas, strength)] for fold_alphas, errors in curves)
        for strength in strengths
    ]
    return np.array(strengths), np.array(sums)


def step_reached(alphas: list[float], strength: float) -> int:
    """The step just before the first whose alpha exceeds the strength; alphas need not rise."""
    for step, alpha in enumerate(alphas):
        if alpha > strength:
            return step - 1
    return len(alphas) - 1


def best_strength(strengths: Floats, sums: Floats) -> float:
    """The strength of smallest sum, of equals the one of the more heavily pruned tree."""
    return float(strengths[sums == sums.min()][-1])
