"""The base of estimators that are stored as JSON."""

from __future__ import annotations

from typing import Any, Self

import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ._fitted import storage
from ._fitted.fingerprint import Fingerprint
from ._fitted.made import Made
from ._fitted.spread import Spread


class StoredEstimator(BaseEstimator):
    """Base of the estimators that are stored as JSON: calibrators, and logistic model trees."""

    classes_: npt.NDArray[Any]
    fingerprint_: Fingerprint
    made_: Made
    spread_: Spread | None = None
    """How wide intervals are; None without them."""

    def to_dict(self) -> dict[str, Any]:
        """The fitted estimator as dicts, lists, strings and numbers, every float exact."""
        check_is_fitted(self)
        return storage.StoredCalibrator(
            name=type(self).__name__,
            made=self.made_,
            params=self.get_params(),
            classes=self.classes_,
            fingerprint=self.fingerprint_,
            spread=self.spread_,
            state=self._state(),
        ).to_dict()

    @classmethod
    def from_dict(cls, stored: Any) -> Self:
        """Rebuild an estimator from `to_dict`; anything malformed is a ValueError."""
        read = storage.StoredCalibrator.from_dict(cls.__name__, cls._get_param_names(), stored)
        estimator = cls(**read.params)
        estimator.classes_, estimator.fingerprint_ = read.classes, read.fingerprint
        estimator.made_, estimator.spread_ = read.made, read.spread
        estimator._restore(read.state)
        return estimator

    def save(self, path: Any, *, fingerprint: bool = True) -> None:
        """Write the estimator to a JSON file, which appears whole or not at all.

        Parameters
        ----------
        path : str or path
            The file to write; an existing one is replaced.
        fingerprint : bool, default True
            Whether to store up to 256 hashes of training rows. Without them, a report cannot warn
            of rows that the estimator was fitted to.

        Notes
        -----
        The file says when it was written, unless the estimator was read from one: then it keeps its
        time. The environment variable SOURCE_DATE_EPOCH sets another time. `caltree.load` reads
        files of all classes of estimators.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> from caltree import PlattScaling
        >>> platt = PlattScaling().fit(None, [0, 1] * 10, scores=[0.2, 0.6] * 10)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "platt.json"
        ...     platt.save(path)
        ...     again = PlattScaling.load(path)
        >>> again.classes_
        array([0, 1])
        """
        stored = {**self.to_dict(), "made": self.made_.with_time()}
        if not fingerprint:
            stored["fingerprint"] = None
        storage.write_json(stored, path)

    @classmethod
    def load(cls, path: Any) -> Self:
        """Read an estimator that `save` wrote. Nothing in the file is executed."""
        return cls.from_dict(storage.read_json(path))

    def _state(self) -> dict[str, Any]:
        """Return everything that was fitted, apart from the classes, as plain values."""
        raise NotImplementedError

    def _restore(self, state: dict[str, Any]) -> None:
        """Take over the values of `_state`, or raise a ValueError; `classes_` is there already."""
        raise NotImplementedError
