"""The native core: plain arrays in, plain arrays out."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.uint16]
Rows = npt.NDArray[np.uint32]
Indices = npt.NDArray[np.int32]
Nodes = npt.NDArray[np.uint16]
Wholes = npt.NDArray[np.int64]

instruction_set: str
only_missing: float
smallest_probability: float
farthest_score: float
largest_loss: float

class Stopped(KeyboardInterrupt): ...

class StopToken:
    def __init__(self) -> None: ...
    def set(self) -> None: ...
    def watch(self) -> None: ...

class Training:
    def __init__(
        self,
        matrix: Floats,
        n_categories: Indices,
        fills: Floats,
        labels: Labels,
        n_classes: int,
        scores: Floats,
        weights: Floats | None,
    ) -> None: ...

class Structure:
    def __len__(self) -> int: ...

class BoostingPath:
    def run_ahead(self, most: int, margin: int) -> int: ...

class FittedNodes: ...

class ModelFitter:
    def __init__(
        self,
        training: Training,
        tree: Structure,
        rows: Rows,
        held_out: Rows,
        iterations: int | None,
        max_iterations: int,
        n_folds: int,
        constant_scores_give_frequencies: bool,
        keep_parameters: bool,
        counts_wrong_rows: bool = False,
    ) -> None: ...
    def fit_top(self, most_rows: int) -> list[int]: ...
    def fit_part(self, part: int) -> None: ...
    def take(self) -> FittedNodes: ...

class Predictor:
    def __init__(
        self,
        attribute: Indices,
        threshold: Floats,
        first_child: Indices,
        n_children: Indices,
        missing: Indices,
        table: Indices,
        branches: Indices,
        n_categories: Indices,
        weight: Floats,
        parameters: Floats,
        roots: Indices,
        n_scores: int,
    ) -> None: ...
    def apply(self, matrix: Floats, scores: Floats | None = None) -> Indices: ...
    def probabilities(
        self, matrix: Floats, scores: Floats, offset: Floats | None = None
    ) -> Floats: ...

class BoostedPredictor:
    def __init__(
        self,
        attribute: Indices,
        threshold: Floats,
        first_child: Indices,
        n_children: Indices,
        missing: Indices,
        table: Indices,
        branches: Indices,
        n_categories: Indices,
        value: Floats,
        roots: Indices,
        state: Indices,
        parameters: Floats,
        n_scores: int,
        start: float,
        curve_weight: float,
        boosted_weight: float,
    ) -> None: ...
    def probabilities(
        self, matrix: Floats, scores: Floats, offset: Floats | None = None
    ) -> Floats: ...

class ShrunkenTraining:
    def __init__(
        self, training: Training, offset: Floats | None, max_bins: int, all_scores: bool
    ) -> None: ...
    def grow(
        self,
        rows: Rows,
        held_out: Rows,
        penalty: float,
        min_samples_split: float,
        min_samples_leaf: float,
        max_depth: int,
        log_loss: bool,
        rising: bool = False,
        share_of_rows: float = 1.0,
    ) -> tuple[Structure, FittedNodes]: ...
    def fit_root(
        self, penalty: float, temperature_only: bool = False, rising: bool = False
    ) -> Floats: ...
    def bagged(
        self,
        seed: int,
        n_split_scores: int,
        penalty: float,
        sizes: Floats,
        min_samples_leaf: float,
        max_depth: int,
        max_features: int,
        groups: Rows | None = None,
    ) -> tuple[Structure, FittedNodes, Rows, Floats]: ...

class NodeFits:
    def __init__(
        self,
        parents: Floats,
        n_states: int,
        sees_all: bool,
        centre: Floats,
        scale: Floats,
        corrects_probabilities: bool,
        penalty: float,
        is_root: bool,
        weight: Floats,
        loss: Floats,
        gradient: Floats,
        hessian: Floats,
        noise: float,
        rising: bool = False,
    ) -> None: ...
    def pending(self) -> Wholes: ...
    def wants_derivatives(self) -> bool: ...
    def trials(self) -> Floats: ...
    def parameters(self) -> Floats: ...
    def take(self, loss: Floats, gradient: Floats, hessian: Floats) -> npt.NDArray[np.uint8]: ...

class Chunk:
    def __init__(
        self,
        codes: npt.NDArray[np.uint8] | npt.NDArray[np.uint16],
        n_bins: Indices,
        labels: Labels,
        n_classes: int,
        scores: Floats,
        offset: Floats | None,
        weights: Floats | None,
        fold: npt.NDArray[np.uint8],
    ) -> None: ...

def sums(
    chunk: Chunk,
    nodes: Nodes,
    first: Indices,
    slot: Indices,
    parameters: Floats,
    centre: Floats,
    scale: Floats,
    per_state: int,
    units: Floats,
    log_loss: bool,
    derivatives: bool = True,
) -> Wholes: ...
def histograms(
    chunk: Chunk,
    nodes: Nodes,
    first: Indices,
    slot: Indices,
    parameters: Floats,
    centre: Floats,
    scale: Floats,
    per_state: int,
    units: Floats,
    into: Wholes,
) -> None: ...
def best_splits(
    histograms: Wholes,
    n_bins: Indices,
    numeric: npt.NDArray[np.uint8],
    n_states: int,
    unit: float,
    penalty: float,
    min_samples_leaf: float,
    shares: Floats,
) -> dict[str, Any]: ...
def splits_in_chunk(
    chunk: Chunk,
    nodes: Nodes,
    first: Indices,
    slot: Indices,
    parameters: Floats,
    centre: Floats,
    scale: Floats,
    per_state: int,
    units: Floats,
    numeric: npt.NDArray[np.uint8],
    penalty: float,
    min_samples_leaf: float,
    shares: Floats,
) -> dict[str, Any]: ...
def route(
    chunk: Chunk,
    nodes: Nodes,
    first: Indices,
    attribute: Indices,
    cut: Indices,
    missing: Indices,
    first_child: Indices,
    n_children: Indices,
    table: Indices,
    branches: Indices,
) -> Nodes: ...
def predictions(
    chunk: Chunk,
    nodes: Nodes,
    first: Indices,
    ancestor: Indices,
    parameters: Floats,
    centre: Floats,
    scale: Floats,
    per_state: int,
) -> npt.NDArray[np.float32]: ...
def distinct_values(values: npt.NDArray[Any], most: int) -> Floats | None: ...
def cuts(values: Floats, weights: Floats | None, max_bins: int) -> Floats: ...
def put_into_bins(
    values: npt.NDArray[Any], cuts: Floats, missing: int, codes: npt.NDArray[Any]
) -> None: ...
def assemble_tree(
    attribute: Indices,
    threshold: Floats,
    parent: Indices,
    first_child: Indices,
    n_children: Indices,
    n_rows: Floats,
    gain: Floats,
    missing: Indices,
    missing_rows: Floats,
    table: Indices,
    table_size: Indices,
    branches: Indices,
    error: Floats,
    held_out_error: Floats,
    parameters: Floats,
    held_out: float,
) -> tuple[Structure, FittedNodes]: ...
def folds(labels: Labels, rows: Rows, n_folds: int) -> list[tuple[Rows, Rows]]: ...
def grow(
    training: Training,
    rows: Rows,
    min_samples_split: float,
    min_samples_leaf: float,
    max_depth: int,
) -> Structure: ...
def boosting_path(
    training: Training, train: Rows, test: Rows, counts_wrong_rows: bool = False
) -> BoostingPath: ...
def choose_iterations(paths: Sequence[BoostingPath], most: int) -> tuple[int, Floats]: ...
def pruning_sequence(tree: Structure, nodes: FittedNodes) -> tuple[Floats, Floats]: ...
def pruning_order(
    tree: Structure, nodes: FittedNodes, least_gain: float = 0.0
) -> tuple[Floats, Floats]: ...
def row_counts(tree: Structure) -> Floats: ...
def collapse_tree(
    tree: Structure,
    nodes: FittedNodes,
    rank: Floats,
    lowest: Floats,
    shares: Floats,
) -> dict[str, Any]: ...
def held_out_gains(
    tree: Structure,
    nodes: FittedNodes,
    rank: Floats,
    lowest: Floats,
    shares: Floats,
    n_attributes: int,
) -> Floats: ...
def fit_logitboost(
    matrix: Floats,
    n_categories: Indices,
    labels: Labels,
    n_classes: int,
    n_iterations: int,
    max_depth: int | None,
) -> dict[str, Any]: ...
def predict_logitboost(
    matrix: Floats,
    n_categories: Indices,
    n_classes: int,
    attribute: Indices,
    category: Indices,
    cut: Floats,
    first_child: Indices,
    n_children: Indices,
    share: Floats,
    value: Floats,
    roots: Indices,
) -> Floats: ...
