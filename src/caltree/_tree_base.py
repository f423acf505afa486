"""The bases of estimators that split on attributes, whatever their node models look at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

from ._fitted.blended import Model
from ._fitted.formulas import Formulas
from ._fitted.model import FittedModel
from ._fitted.names import printable
from ._fitted.text import tree_text
from ._inputs import attributes
from ._inputs.arrays import Floats, Mask
from ._inputs.attributes import Attributes, Identifiers
from ._inputs.parameters import check_count, check_depth
from ._running import progress
from ._training.settings import READING


class AttributeEstimator:
    """Base of the estimators whose trees split on attributes."""

    model_: Model
    n_features_in_: int
    feature_names_in_: npt.NDArray[Any]
    drop_identifiers: bool

    @property
    def feature_importances_(self) -> Floats:
        """The share of every attribute in the gain of the splits; NaN if it is not measured."""
        check_is_fitted(self)
        return self.model_.importances

    def _identifiers(self) -> Identifiers:
        """What to do with attributes that look like identifiers."""
        return "drop" if self.drop_identifiers else "keep"

    def _learn_attributes(
        self, X: Any, keep: Mask | None, weights: Floats | None, categorical_features: Any
    ) -> tuple[Attributes, Floats]:
        """Learn the attributes of a table, and encode the rows that are kept."""
        with progress.stage(READING) as reading:
            known, matrix = attributes.learn(
                X,
                categorical_features=categorical_features,
                keep=keep,
                sample_weight=weights,
                identifiers=self._identifiers(),
            )
            reading.say(f"read {matrix.shape[1]} attributes of {len(matrix):,} rows")
        return known, matrix

    def _set_features(self) -> None:
        known = self.model_.attributes
        self.n_features_in_ = len(known.columns)
        if known.names is not None:
            self.feature_names_in_ = np.array(known.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_


class TreeEstimator(AttributeEstimator):
    """Base of the estimators of one tree."""

    model_: FittedModel

    def apply(self, X: Any) -> npt.NDArray[np.int32]:
        """The leaf that each row falls into.

        Parameters
        ----------
        X : table of shape (n, d)
            The attributes, as for `fit`.

        Returns
        -------
        ndarray of shape (n,)
            The number of the leaf, an index into the arrays of `model_`.
        """
        check_is_fitted(self)
        return self.model_.apply(self.model_.attributes.encode(X))[:, 0]

    def decision_path(self, X: Any) -> csr_array:
        """The nodes on the path of each row, from the root to its leaf.

        Parameters
        ----------
        X : table of shape (n, d)
            The attributes, as for `fit`.

        Returns
        -------
        csr_array of shape (n, n_nodes)
            1 where the path of the row has the node, an index into the arrays of `model_`.
        """
        leaves, parent = self.apply(X), self.model_.parent
        ways = {leaf: _way_to(leaf, parent) for leaf in np.unique(leaves).tolist()}
        columns = [ways[leaf] for leaf in leaves.tolist()]
        starts = np.cumsum([0, *map(len, columns)])
        passed = np.concatenate([np.empty(0, dtype=np.intp), *columns])
        return csr_array(
            (np.ones(len(passed), dtype=np.int64), passed, starts),
            shape=(len(leaves), self.model_.n_nodes),
        )

    def get_n_leaves(self) -> int:
        """The number of leaves."""
        check_is_fitted(self)
        return self.model_.n_leaves

    def get_depth(self) -> int:
        """The number of splits on the longest path from the root to a leaf."""
        check_is_fitted(self)
        return self.model_.depth

    def formulas(self, decimals: int, spell: Callable[[Any], str] = printable) -> Formulas:
        """The writer of the tree's formulas; `spell` writes the names of classes."""
        raise NotImplementedError

    def _tree_text(self, max_depth: int | None, decimals: int) -> str:
        check_is_fitted(self)
        check_depth(max_depth)
        check_count("decimals", decimals, 0)
        return tree_text(self.formulas(decimals), max_depth)

    def _check_one_tree(self) -> None:
        """Refuse a restored model that is not one tree over attributes."""
        model = self.model_
        if model.n_trees != 1 or model.attribute.max() >= len(model.attributes.columns):
            raise ValueError("a stored tree must have one root, and split on attributes alone")


def _way_to(leaf: int, parent: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """The nodes from the root down to a leaf."""
    way = [leaf]
    while (above := int(parent[way[-1]])) >= 0:
        way.append(above)
    return np.array(way[::-1], dtype=np.intp)
