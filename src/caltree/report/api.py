"""`report`: a page on a fitted calibrator and rows."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._fitted.files import write_atomically
from .._fitted.names import printable
from .._inputs.parameters import check_count
from .evidence import gather
from .inputs import Given, check_parts, check_rows

_TITLE = "Calibration report"
_MOST_REGIONS = 200


@dataclass(frozen=True, eq=False)
class Report:
    """The effect of calibration on the probabilities of some rows.

    Attributes
    ----------
    data : dict
        The content of the page as dicts, lists, strings and numbers. ``data["training_rows"]``
        says whether the calibrator has seen the rows before: then it looks better than it is.
    """

    data: dict[str, Any]

    def to_html(self) -> str:
        """The page: it needs no other file and no network."""
        from .html import render

        return render(self.data)

    def save(self, path: Any) -> None:
        """Write the page to a file, which appears whole or not at all.

        Parameters
        ----------
        path : str or path
            Where to; a file that is there already is replaced.
        """
        write_atomically(Path(path), self.to_html().encode("utf-8"))


def report(
    calibrator_or_model: Any,
    X: Any,
    y: Any,
    scores: Any = None,
    *,
    sample_weight: Any = None,
    title: str | None = None,
    max_regions: int = _MOST_REGIONS,
) -> Report:
    """Say what calibration did, where, and how sure that is.

    Give rows that neither the classifier nor the calibrator has seen. On others, both look better
    than they are; the report says so at its top if it recognises the calibrator's training rows.

    Parameters
    ----------
    calibrator_or_model : calibrator or CalibratedClassifier
        A fitted one.
    X : table of shape (n, d)
        The attributes, as for `fit`. Calibrators that ignore them take None; then the report has
        no regions.
    y : array-like of shape (n,)
        The labels, of two classes at least; all must be among `classes_`.
    scores : array-like, optional
        The scores of the classifier for these rows, as for the calibrator's `fit`. A
        `CalibratedClassifier` has its own.
    sample_weight : array-like of shape (n,), optional
        How many rows each row counts for.
    title : str, optional
        The title of the page.
    max_regions : int, default=200
        A tree with more leaves is cut back to its largest nodes.

    Returns
    -------
    Report
        With `save`, `to_html` and `data`.

    Examples
    --------
    >>> import numpy as np
    >>> from caltree import CalibrationTree
    >>> from caltree.report import report
    >>> random = np.random.default_rng(0)
    >>> X = random.integers(0, 3, (3000, 1))
    >>> scores = random.random(3000)
    >>> y = random.random(3000) < np.where(X[:, 0] == 2, scores / 2, scores)
    >>> tree = CalibrationTree().fit(X[:2000], y[:2000], scores=scores[:2000])
    >>> made = report(tree, X[2000:], y[2000:], scores=scores[2000:], title="An example")
    >>> made.data["verdict"], made.data["training_rows"]["status"]
    ('helped', 'not seen')
    >>> made.data["regions"][0]["words"]
    'x0 > 1.5'
    >>> made.to_html()[:15]
    '<!doctype html>'
    """
    _require_jinja()
    if title is not None and not isinstance(title, str):
        raise TypeError(f"title must be a string or None, got {type(title).__name__}")
    check_count("max_regions", max_regions, 1)
    rows = check_rows(calibrator_or_model, X, y, scores, sample_weight)
    return Report(gather(rows, printable(title or _TITLE), max_regions))


def report_on_parts(calibrator: Any, parts: Iterable[Given], title: str) -> Report:
    """The same report on rows that come in parts, whose attributes are never all in memory."""
    _require_jinja()
    with tempfile.TemporaryDirectory(prefix="caltree-", ignore_cleanup_errors=True) as folder:
        rows = check_parts(calibrator, parts, Path(folder) / "attributes")
        return Report(gather(rows, printable(title), _MOST_REGIONS))


def _require_jinja() -> None:
    """Refuse to begin without jinja2, and say how to install it."""
    try:
        import jinja2  # noqa: F401  # only to see whether it is there
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            'jinja2 is not installed; run: pip install "caltree[report]"', name="jinja2"
        ) from None
