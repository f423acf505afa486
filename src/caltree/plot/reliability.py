"""`ReliabilityDisplay`: predicted probabilities beside observed frequencies."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from .._base import Calibrator
from .._classifier_base import CalibratedClassifierBase
from .._inputs.arrays import Floats
from .._inputs.indexing import column_positions, take_columns
from .._inputs.parameters import check_flag
from .._inputs.probabilities import Kind
from .._inputs.tables import read_table
from ..reliability import ReliabilityCurve, Strategy, reliability_curve, wilson_interval
from .panels import Style, finish_panels, make_panels
from .reliability_data import cases_of, check_kind, divide_cases
from .style import check_axes, require_matplotlib

_N_BARS = 20


class ReliabilityDisplay:
    """Reliability diagram: predicted probabilities against observed frequencies.

    Use `from_estimator` or `from_predictions` to make one. A perfectly calibrated classifier is on
    the diagonal, apart from chance. The bands show how large chance is.

    Parameters
    ----------
    curves : dict
        A `caltree.reliability.ReliabilityCurve` for each class or group; each has its own panel.
    histograms : dict
        By class, or by group, the number of rows (the sum of their weights) whose predicted
        probability lies in each of some equally wide parts of the interval from 0 to 1.
    kind : {"classwise", "top_label"}, default="classwise"
        Whether the probabilities are those of classes or the largest ones of each row.
    name : str, optional
        The name of the model in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes, or ndarray of them
        The diagram; one for each class if there are several panels.
    figure_ : matplotlib Figure
        The figure of the diagram.
    line_ : matplotlib Line2D, or list of them
        The curve of each panel.
    band_ : matplotlib artist, or list of them, or None
        The confidence band of each panel, if there are any.
    histogram_ax_ : matplotlib Axes, or ndarray of them, or None
        Where the histogram of the predictions is, if there is one.

    See Also
    --------
    caltree.reliability.reliability_curve : The points, without a picture.
    caltree.metrics.expected_calibration_error : The distance from the diagonal, in a number.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from caltree import CalibratedClassifier
    >>> from caltree.plot import ReliabilityDisplay
    >>> X, y = make_classification(2000, random_state=0)
    >>> bayes = GaussianNB().fit(X[:1000], y[:1000])
    >>> model = CalibratedClassifier(GaussianNB()).fit(X[:1000], y[:1000])
    >>> before = ReliabilityDisplay.from_estimator(bayes, X[1000:], y[1000:])
    >>> after = ReliabilityDisplay.from_estimator(model, X[1000:], y[1000:], ax=before.ax_)
    >>> [text.get_text() for text in after.ax_.get_legend().get_texts()]
    ['perfectly calibrated', 'GaussianNB', 'GaussianNB + CalibrationTree']
    """

    ax_: Any
    figure_: Any
    line_: Any
    band_: Any
    histogram_ax_: Any

    def __init__(
        self,
        curves: Mapping[Any, ReliabilityCurve],
        histograms: Mapping[Any, Floats],
        *,
        kind: Kind = "classwise",
        name: str | None = None,
    ) -> None:
        self.curves = curves
        self.histograms = histograms
        self.kind = kind
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        kind: Kind = "classwise",
        pos_label: Any = None,
        n_bins: int = 30,
        strategy: Strategy = "quantile",
        sample_weight: Any = None,
        by: Any = None,
        name: str | None = None,
        ax: Any = None,
        confidence: float | None = 0.95,
        histogram: bool = True,
        ref_line: bool = True,
        **kwargs: Any,
    ) -> Self:
        """Draw the reliability diagram of a classifier on rows it has not seen.

        Parameters
        ----------
        estimator : classifier
            A fitted `CalibratedClassifier` or any other classifier with ``predict_proba``.
        X : table of shape (n, d)
            The rows, as the classifier takes them.
        y : array-like of shape (n,)
            Their labels.
        name : str, optional
            The name of the model in the legend; by default those of its Python classes.
        by : str, int or array-like of shape (n,), optional
            A column of `X`, or the group of every row, as for `from_predictions`.
        kind, pos_label, n_bins, strategy, sample_weight, ax, confidence, histogram, ref_line
            As for `from_predictions`.
        **kwargs
            Anything else for the curve, as for matplotlib's ``plot``, e.g. ``color="black"``.

        Returns
        -------
        ReliabilityDisplay
            The display, drawn.
        """
        require_matplotlib()
        _check_estimator(estimator)
        if isinstance(by, str | int):
            by = take_columns(X, column_positions([by], read_table(X, "X"), "by"))
        check_kind(kind, pos_label, np.asarray(estimator.classes_))
        return cls.from_predictions(
            y,
            estimator.predict_proba(X),
            labels=estimator.classes_,
            kind=kind,
            pos_label=pos_label,
            n_bins=n_bins,
            strategy=strategy,
            sample_weight=sample_weight,
            by=by,
            name=_name_of(estimator) if name is None else name,
            ax=ax,
            confidence=confidence,
            histogram=histogram,
            ref_line=ref_line,
            **kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        labels: Any = None,
        kind: Kind = "classwise",
        pos_label: Any = None,
        n_bins: int = 30,
        strategy: Strategy = "quantile",
        sample_weight: Any = None,
        by: Any = None,
        name: str | None = None,
        ax: Any = None,
        confidence: float | None = 0.95,
        histogram: bool = True,
        ref_line: bool = True,
        **kwargs: Any,
    ) -> Self:
        """Draw the reliability diagram of stored probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            The labels.
        y_prob : array-like of shape (n, m) or (n,)
            The probabilities, one column per class; or one column, that of `pos_label`, by default
            the second of two classes.
        labels : array-like of shape (m,), optional
            The class of each column, e.g. ``tree.classes_``; by default the sorted labels of
            `y_true`.
        kind : {"classwise", "top_label"}, default="classwise"
            ``"classwise"`` compares the probability of a class with how often it happens. With two
            classes it shows the second; with more, all of them, in one panel each. ``"top_label"``
            compares the largest probability of each row with how often its class is the true one.
        pos_label : label, optional
            The one class to look at, against the rest.
        n_bins : int, default=30
            The maximum number of bins; equal probabilities share one.
        strategy : {"quantile", "uniform"}, default="quantile"
            Bins of equally many rows or of equal width.
        sample_weight : array-like of shape (n,), optional
            How many rows each row counts for.
        by : array-like of shape (n,), optional
            The group of every row, such as a column of a table; each group has a panel. A column of
            many numbers is divided into four groups of about equally many rows.
        name : str, optional
            The name of the model in the legend; without a name there is no legend.
        ax : matplotlib Axes, or one per panel, optional
            Where to draw; a new figure by default. The `ax_` of another display puts several
            models into one figure.
        confidence : float or None, default=0.95
            The confidence of the bands: Wilson's interval of the frequency in each bin, where
            weights count as rows. None draws no bands.
        histogram : bool, default=True
            Also draw the distribution of the predictions, below the diagram.
        ref_line : bool, default=True
            Draw the diagonal.
        **kwargs
            Anything else for the curve, as for matplotlib's ``plot``, e.g. ``color="black"``.

        Returns
        -------
        ReliabilityDisplay
            The display, drawn.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("agg")
        >>> from caltree.plot import ReliabilityDisplay
        >>> display = ReliabilityDisplay.from_predictions(
        ...     ["no", "no", "yes", "yes"], [0.125, 0.375, 0.5, 1.0], n_bins=2
        ... )
        >>> display.line_.get_xydata().tolist()
        [[0.25, 0.0], [0.75, 1.0]]
        """
        require_matplotlib()
        cases, weights = cases_of(y_true, y_prob, labels, kind, pos_label, sample_weight)
        curves, histograms = {}, {}
        for label, (happened, probability, share) in divide_cases(cases, weights, by).items():
            curves[label] = reliability_curve(
                happened, probability, n_bins=n_bins, strategy=strategy, sample_weight=share
            )
            parts = np.histogram(probability, _N_BARS, (0.0, 1.0), weights=share)
            histograms[label] = parts[0].astype(np.float64)
        return cls(curves, histograms, kind=kind, name=name).plot(
            ax=ax, confidence=confidence, histogram=histogram, ref_line=ref_line, **kwargs
        )

    def plot(
        self,
        *,
        ax: Any = None,
        name: str | None = None,
        confidence: float | None = 0.95,
        histogram: bool = True,
        ref_line: bool = True,
        **kwargs: Any,
    ) -> Self:
        """Draw the diagram again, or on other axes.

        Parameters
        ----------
        ax, name, confidence, histogram, ref_line, **kwargs
            As for `from_predictions`.

        Returns
        -------
        ReliabilityDisplay
            The display itself.
        """
        require_matplotlib()
        if not self.curves or set(self.curves) != set(self.histograms):
            raise ValueError(
                "curves and histograms must have the same classes, at least one; use "
                "from_predictions or from_estimator"
            )
        several = len(self.curves) > 1
        axes = check_axes(
            ax,
            len(self.curves),
            "leave ax out, pass the ax_ of another display, or choose one class with pos_label"
            if several
            else "pass one",
        )
        check_flag("histogram", histogram)
        check_flag("ref_line", ref_line)
        _check_confidence(confidence)
        style = Style.from_kwargs(_check_name(self.name if name is None else name), kwargs)
        panels = make_panels(axes, list(self.curves), self.kind, histogram)
        drawn = []
        for panel, (label, curve) in zip(panels, self.curves.items(), strict=True):
            band = None
            if confidence is not None:
                band = wilson_interval(curve.observed, curve.weight, confidence)
            drawn.append(panel.draw(curve, band, self.histograms[label], ref_line, style))
        finish_panels(panels, several)
        self.figure_ = panels[0].axes.figure
        lines, artists = (list(part) for part in zip(*drawn, strict=True))
        self.line_ = lines if several else lines[0]
        self.band_ = None if confidence is None else artists if several else artists[0]
        diagrams = [panel.axes for panel in panels]
        below = [panel.histogram for panel in panels]
        self.ax_ = np.array(diagrams, dtype=object) if several else diagrams[0]
        self.histogram_ax_ = None
        if histogram:
            self.histogram_ax_ = np.array(below, dtype=object) if several else below[0]
        return self


def _check_confidence(confidence: Any) -> None:
    if confidence is None:
        return
    is_number = isinstance(confidence, Real) and not isinstance(confidence, bool)
    if not is_number or not 0.0 < float(confidence) < 1.0:
        raise ValueError(
            f"confidence must be None or a number between 0 and 1, got {confidence!r}; "
            "use e.g. 0.95"
        )


def _check_name(name: Any) -> str | None:
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name must be a string or None, got {name!r}")
    return name or None


def _check_estimator(estimator: Any) -> None:
    called = type(estimator).__name__
    if isinstance(estimator, Calibrator):
        raise TypeError(
            f"estimator is a {called}, which needs scores; use "
            "from_predictions(y, calibrator.predict_proba(X, scores))"
        )
    if isinstance(estimator, type) or not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"estimator must be a fitted classifier with predict_proba, got {estimator!r}; "
            "a CalibratedClassifier gives any classifier one"
        )
    if hasattr(estimator, "__sklearn_tags__"):
        check_is_fitted(estimator)
    if not hasattr(estimator, "classes_"):
        raise TypeError(
            f"estimator {called} does not say its classes (classes_); use "
            "from_predictions(y, y_prob, labels=...)"
        )


def _name_of(estimator: Any) -> str:
    """The name of the Python class; of a calibrated classifier, those of its parts."""
    if isinstance(estimator, CalibratedClassifierBase):
        pair = getattr(estimator, "calibrated_classifiers_", [estimator])[0]
        trained = pair.estimator_
        parts = [*(trained if isinstance(trained, list) else [trained]), pair.calibrator_]
        return " + ".join(map(_name_of, parts))
    if isinstance(estimator, FrozenEstimator):
        return _name_of(estimator.estimator)
    return type(estimator).__name__
