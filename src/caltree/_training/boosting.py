"""Boosted trees that start from a curve: grown by LightGBM, as far as held-out rows advise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np

from .._fitted.boosted import BoostedModel, one_leaf
from .._fitted.selection import BOOSTED, GLOBAL, Selection
from .._inputs.arrays import Floats
from .._inputs.folds import Fold, Rows, make_folds, random_generator
from .._inputs.scores import is_offset
from .._running import progress
from .._running.threads import count_threads
from .boosting_by_class import MANY_CELLS, MANY_CLASSES, ClassBoosters
from .boosting_columns import columns_of, count_bins, moderate, nominal_columns, score_floors
from .candidates import Candidates
from .curves import fit_correction
from .dataset import Dataset
from .do_no_harm import choose_weights
from .lightgbm_trees import TreeArrays, read_trees
from .losses import mean_loss, row_losses
from .settings import AVERAGING, GROWING, JUDGING

# How trees are grown.
PARAMETERS = {
    "learning_rate": 0.2,
    "num_leaves": 31,
    "min_data_in_leaf": 20,
    "min_sum_hessian_in_leaf": 1.0,
    "lambda_l2": 20.0,
    "max_bin": 255,
    "feature_pre_filter": False,
}
MOST_ROUNDS = 1000
PATIENCE, PATIENCE_OF_ONE_FOLD = 20, 10
"""Rounds without improvement on held-out rows, after which no more are boosted."""
START_OF_RISING = 0.6
"""The share of the curve that trees add to if they must rise with the score: what they add can then
make the curve flatter, too."""
CURVE_PENALTY = 0.05
"""How strongly the curve is held at the temperature; see `CalibrationTree`."""

ROWS_A_THREAD = 50_000
"""With fewer rows threads wait for each other, and on a busy machine far longer than they work."""

N_FOLDS = 5
MANY_ROWS = 50_000
"""From so many rows on, one fold is held out instead of each in turn."""
REFITS = True
"""Whether trees are then grown once more, on all rows, with so many more rounds."""
ROUNDS_OF_REFIT = 1.25


@dataclass(frozen=True)
class BoostingSettings:
    """How trees are boosted and averaged; see `CalibrationBoosting`."""

    scoring: str
    do_no_harm: bool
    monotone: bool
    random_state: Any

    @property
    def start(self) -> float:
        """The share of the curve's log-odds that trees add to."""
        return START_OF_RISING if self.monotone else 1.0


def import_lightgbm() -> Any:
    """Return the module, or say how to install it."""
    try:
        import lightgbm
    except (ImportError, OSError) as error:  # OSError: without the OpenMP library
        raise ImportError(
            f"CalibrationBoosting.fit needs LightGBM, which cannot be imported ({error}); run: pip "
            'install "caltree[boosting]" and, if OpenMP is missing, apt install libgomp1'
        ) from error
    return lightgbm


GrowAll: TypeAlias = Callable[[dict[str, Any], Floats, float, int], TreeArrays]
"""Grows trees on all rows, wherever these are: by LightGBM's parameters, from a share of a curve,
in so many rounds."""


def fit_boosting(
    dataset: Dataset,
    settings: BoostingSettings,
    n_jobs: int | None,
    grow_all: GrowAll | None = None,
) -> tuple[BoostedModel, Selection]:
    """Boost trees from a curve, and average both and the uncalibrated probabilities.

    With `grow_all` the dataset is a sample of more rows, on which the last trees are grown.

    Each fold's trees stop where its held-out loss is lowest. The held-out rows decide on the
    weights. With few rows the trees of all folds are averaged.
    """
    with progress.stage(GROWING) as growing:
        grown = grow_boosting(dataset, settings, n_jobs, growing, grow_all)
    with progress.stage(JUDGING + AVERAGING) as averaging:
        candidates = grown.candidates()
        held_out = candidates.held_out(dataset, settings.scoring, settings.do_no_harm)
        weights, selection = choose_weights(held_out, or_global=True)
        averaging.say(f"averaged {len(weights)} candidates (chosen: {selection.chosen})")
    return grown.model(weights[-len(candidates) :]), selection


@dataclass(frozen=True)
class GrownBoosting:
    """The curve and the trees that predict, and those of each fold."""

    dataset: Dataset
    start: float
    curve: Floats
    trees: TreeArrays
    folds: Sequence[Fold]
    of_folds: Sequence[_Grown]

    def candidates(self) -> Candidates:
        """Return the predictions of each fold's curve and trees for its held-out rows."""
        found = []
        for weights in ((1.0, 0.0), (0.0, 1.0)):
            parts = [
                self._predict(
                    make_model(self.dataset, each.curve, each.trees, self.start, *weights), test
                )
                for each, (_, test) in zip(self.of_folds, self.folds, strict=True)
            ]
            found.append(np.concatenate(parts))
        rows = np.concatenate([test for _, test in self.folds])
        return Candidates((GLOBAL, BOOSTED), found, rows)

    def model(self, weights: Floats) -> BoostedModel:
        """Average the curve and the trees by weights of the candidates."""
        return make_model(self.dataset, self.curve, self.trees, self.start, *weights.tolist())

    def _predict(self, model: BoostedModel, rows: Rows) -> Floats:
        data = self.dataset
        offset = None if data.offset is None else _columns_of(data.offset, rows)
        return model.probabilities(data.matrix[rows], _columns_of(data.scores, rows), offset)


def grow_boosting(
    dataset: Dataset,
    settings: BoostingSettings,
    n_jobs: int | None,
    growing: progress.Stage,
    grow_all: GrowAll | None = None,
) -> GrownBoosting:
    """Boost trees on the training rows of each fold, and those that predict."""
    booster = _Booster(dataset, settings, count_threads(n_jobs), grow_all)
    folds = _make_folds(dataset, settings.random_state)
    if grow_all is not None:
        folds = folds[:1]
    n_parts, patience = len(folds) + 1, PATIENCE if len(folds) > 1 else PATIENCE_OF_ONE_FOLD
    grown = []
    for number, fold in enumerate(folds):
        tell = growing.part(number, n_parts)
        grown.append(booster.boost_fold(fold, patience, tell))
        growing.say(f"boosted {grown[-1].rounds} rounds of fold {number + 1} of {len(folds)}")
    curve, trees = booster.finish(grown, growing.part(len(folds), n_parts))
    return GrownBoosting(dataset, settings.start, curve, trees, folds, grown)


def make_model(
    dataset: Dataset,
    curve: Floats,
    trees: TreeArrays,
    start: float,
    curve_weight: float,
    boosted_weight: float,
) -> BoostedModel:
    """Put a curve and trees together; trees of no weight are left out."""
    if boosted_weight > 0.0 and trees.trees:
        arrays = {"attributes": dataset.attributes, **trees.joined()}
    else:
        # Without trees, the curve is all there is.
        curve_weight, boosted_weight = curve_weight + boosted_weight, 0.0
        zero = np.zeros(1, dtype=np.int32)
        arrays = {**one_leaf(dataset.attributes), "roots": zero, "state": zero}
    return BoostedModel(
        **arrays,
        parameters=curve,
        start=start,
        curve_weight=curve_weight,
        boosted_weight=boosted_weight,
        n_scores=int(dataset.scores.shape[1]),
        offset=dataset.offset is not None and not _adds_score(dataset),
    )


@dataclass(frozen=True)
class _Grown:
    """The curve and the trees of a fold's training rows."""

    curve: Floats
    trees: TreeArrays
    rounds: int


class _Booster:
    """Boosts trees on some of the rows."""

    def __init__(
        self,
        dataset: Dataset,
        settings: BoostingSettings,
        n_threads: int,
        grow_all: GrowAll | None,
    ) -> None:
        self._grow_all = grow_all
        self._lightgbm = import_lightgbm()
        self._data = dataset
        self._settings = settings
        self._parameters = _parameters(dataset, settings, n_threads)

    @cached_property
    def _columns(self) -> Any:
        """All rows in the bins of LightGBM: attributes, and the scores without their bends."""
        data = self._data
        return self._lightgbm.Dataset(
            columns_of(data, score_floors(data)),
            label=data.labels,
            weight=None if data.weights is None else moderate(data.weights, data.weights.mean()),
            categorical_feature=nominal_columns(data.attributes),
            params=self._parameters,
        ).construct()

    def fit_curve(self, rows: Rows) -> Floats:
        """Fit the curve to some rows: intercept and slopes of each log-odds."""
        data = self._data
        parameters = fit_correction(
            _columns_of(data.scores, rows),
            None if data.offset is None else _columns_of(data.offset, rows),
            data.labels[rows],
            data.n_classes,
            None if data.weights is None else data.weights[rows],
            CURVE_PENALTY,
            rising=self._settings.monotone,
        )
        if _adds_score(data):
            # The first score is the log-odds that is corrected: a slope of 1 adds it.
            parameters[:, 1] += 1.0
        return parameters

    def boost_fold(self, fold: Fold, patience: int, tell: Callable[[float], None]) -> _Grown:
        """Boost on the training rows of a fold, until the held-out loss falls no further."""
        train, test = (np.sort(rows) for rows in fold)
        curve = self.fit_curve(train)
        if self._is_by_class:
            boosters, judged = self._by_class(train, curve), self._start(test, curve)
            scoring = self._settings.scoring
            return _Grown(curve, *boosters.boost_until(test, judged, scoring, patience, tell))
        trained, judged = (self._subset(rows, curve) for rows in (train, test))
        booster = self._train(
            trained,
            MOST_ROUNDS,
            [
                lambda state: tell(state.iteration / MOST_ROUNDS),
                self._lightgbm.early_stopping(patience, verbose=False),
            ],
            valid_sets=[judged],
            feval=partial(_loss, dataset=self._data, rows=test, scoring=self._settings.scoring),
        )
        rounds = booster.best_iteration
        return _Grown(curve, self._read(booster, rounds), rounds)

    def finish(
        self, grown: Sequence[_Grown], tell: Callable[[float], None]
    ) -> tuple[Floats, TreeArrays]:
        """Return the curve and the trees that predict: the folds' average, or others on all rows.

        Each fold's trees correct that fold's curve, and together they correct the average curve.
        """
        if REFITS and len(grown) == 1:
            rows, rounds = _all_rows(self._data), math.ceil(ROUNDS_OF_REFIT * grown[0].rounds)
            curve = self.fit_curve(rows)
            if self._grow_all is not None:
                return curve, self._grow_all(self._parameters, curve, self._settings.start, rounds)
            if self._is_by_class:
                return curve, self._by_class(rows, curve).boost(rounds, tell)
            callbacks = [lambda state: tell(state.iteration / rounds)]
            booster = self._train(self._subset(rows, curve), rounds, callbacks)
            return curve, self._read(booster, rounds)
        curve = np.mean([each.curve for each in grown], axis=0)
        trees = TreeArrays([], [])
        for each in grown:
            trees = trees + each.trees.scaled(1.0 / len(grown))
        return curve, trees

    def _subset(self, rows: Rows, curve: Floats) -> Any:
        """Return some rows, whose log-odds start at the curve's."""
        subset = self._columns.subset(rows.astype(np.int32)).construct()
        start = self._start(rows, curve)
        return subset.set_init_score(start[:, 0] if start.shape[1] == 1 else start)

    def _start(self, rows: Rows, curve: Floats) -> Floats:
        """Return the log-odds that trees add to."""
        return self._settings.start * curve_log_odds(self._data, curve, rows)

    @property
    def _is_by_class(self) -> bool:
        """Whether each class has a booster of its own."""
        n_rows, n_classes = len(self._data.labels), self._data.n_classes
        is_large = n_classes >= MANY_CLASSES and n_rows * n_classes > MANY_CELLS
        return self._grow_all is None and is_large

    def _by_class(self, rows: Rows, curve: Floats) -> ClassBoosters:
        start, parameters = self._start(rows, curve), self._parameters
        return ClassBoosters(self._lightgbm, self._data, parameters, rows, start)

    def _train(self, rows: Any, rounds: int, callbacks: list[Any], **others: Any) -> Any:
        return self._lightgbm.train(
            self._parameters, rows, num_boost_round=rounds, callbacks=callbacks, **others
        )

    def _read(self, booster: Any, rounds: int) -> TreeArrays:
        text = booster.model_to_string(num_iteration=rounds)
        return read_trees(text, self._data.attributes, self._data.n_states)


def start_log_odds(dataset: Dataset, curve: Floats, start: float) -> Floats:
    """Return the log-odds that trees add to, of all rows."""
    return start * curve_log_odds(dataset, curve, _all_rows(dataset))


def curve_log_odds(dataset: Dataset, curve: Floats, rows: Rows) -> Floats:
    """Return the log-odds of a curve for some rows, one column per log-odds."""
    model = make_model(dataset, curve, TreeArrays([], []), 1.0, 1.0, 0.0)
    linear = np.tile(curve[:, 0], (len(rows), 1))
    for number, seen in enumerate(model.seen_scores.T, start=1):
        linear += dataset.scores[np.ix_(rows, seen)] * curve[:, number]
    if model.offset and dataset.offset is not None:
        linear += dataset.offset[rows]
    return linear


def _parameters(dataset: Dataset, settings: BoostingSettings, n_threads: int) -> dict[str, Any]:
    """Return the parameters of LightGBM, of which threads change no result."""
    is_binary = dataset.n_classes == 2
    found: dict[str, Any] = {
        **PARAMETERS,
        **count_bins(dataset, int(PARAMETERS["max_bin"])),
        # Of more classes and few rows trees at random cuts are better: the folds average them out.
        "extra_trees": not is_binary and len(dataset.labels) < MANY_ROWS,
        "objective": "binary" if is_binary else "multiclass",
        "num_class": 1 if is_binary else dataset.n_classes,
        "metric": "None",
        "num_threads": max(1, min(n_threads, len(dataset.labels) // ROWS_A_THREAD)),
        "deterministic": True,
        "force_col_wise": True,
        "seed": _seed(settings.random_state),
        "verbosity": -1,
    }
    if settings.monotone:
        found["monotone_constraints"] = [0] * dataset.matrix.shape[1] + [1]
    return found


def _seed(random_state: Any) -> int:
    return 0 if random_state is None else int(random_generator(random_state).randint(2**31))


def _make_folds(dataset: Dataset, random_state: Any) -> list[Fold]:
    """Return the folds to hold out, of rows or of whole groups."""
    n_rows, groups = len(dataset.labels), dataset.groups
    n_units = n_rows if groups is None else int(groups.max()) + 1
    folds = make_folds(min(N_FOLDS, n_units), dataset.labels, None, random_state, groups)
    return folds[:1] if n_rows >= MANY_ROWS else folds


def _loss(
    predicted: Floats, _: Any, *, dataset: Dataset, rows: Rows, scoring: str
) -> tuple[str, float, bool]:
    """Return the loss of rows whose probabilities LightGBM predicts; lower is better."""
    probabilities = predicted
    if predicted.ndim == 1:
        probabilities = np.column_stack([1.0 - predicted, predicted])
    losses = row_losses(probabilities, dataset.labels[rows], scoring)
    weights = None if dataset.weights is None else dataset.weights[rows]
    return scoring, mean_loss(losses, weights, scoring), False


def _adds_score(dataset: Dataset) -> bool:
    """Whether the curve adds the score that it corrects by a slope, and needs no offset."""
    return dataset.offset is not None and is_offset(dataset.n_classes, dataset.scores.shape[1])


def _columns_of(values: Floats, rows: Rows) -> Floats:
    return np.asfortranarray(values[rows])


def _all_rows(dataset: Dataset) -> Rows:
    return np.arange(len(dataset.labels), dtype=np.uint32)
