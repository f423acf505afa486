"""`report`: a page on a fitted calibrator and rows."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._fitted.files import write_atomically
from .._fitted.names import printable
from .._inputs.parameters import check_jobs
from . import wording
from .evidence import gather
from .inputs import Given, check_parts, check_rows
from .wording_places import count_rows

_TITLE = "Calibration report"


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """The effect of calibration on the probabilities of some rows.

    Attributes
    ----------
    data : dict
        The content of the page as dicts, lists, strings and numbers, by the schema
        ``caltree/schema/report.schema.json``. ``data["data"]["training_rows"]`` says whether the
        calibrator has seen the rows before: then it looks better than it is.
    """

    data: dict[str, Any]

    def __repr__(self) -> str:
        return f"<Report on {count_rows(self.data['rows'])}: {wording.verdict(self.data)}>"

    def __str__(self) -> str:
        heading = f"{self.data['title']}, {count_rows(self.data['rows'])}"
        return "\n".join([heading, wording.verdict(self.data), *wording.lead(self.data)])

    def to_html(self) -> str:
        """The page: it needs no other file and no network."""
        from .html import render

        return render(self.data)

    def to_json(self) -> str:
        """The content of the page as JSON."""
        return json.dumps(self.data, indent=2, allow_nan=False, ensure_ascii=False)

    def save(self, path: Any) -> None:
        """Write the page to a file, which appears whole or not at all.

        Parameters
        ----------
        path : str or path
            The file to write; an existing one is replaced.
        """
        write_atomically(Path(path), self.to_html().encode("utf-8"))

    def _repr_html_(self) -> str:
        from .fragment import to_fragment

        return to_fragment(self.data)


def report(
    calibrator_or_model: Any,
    X: Any,
    y: Any,
    scores: Any = None,
    *,
    by: Sequence[str | int] | str | None = None,
    sample_weight: Any = None,
    groups: Any = None,
    title: str | None = None,
    n_jobs: int | None = None,
) -> Report:
    """Say what calibration did, for whom, and how sure that is.

    Give rows that neither the classifier nor the calibrator has seen. On others, both look better
    than they are; the report says so at its top if it recognises the calibrator's training rows.

    Parameters
    ----------
    calibrator_or_model : calibrator or CalibratedClassifier
        A fitted calibrator or classifier.
    X : table of shape (n, d)
        The attributes, as for `fit`. Calibrators that ignore them take None; then the report has
        no regions.
    y : array-like of shape (n,)
        The labels, of two classes at least; all must be among `classes_`.
    scores : array-like, optional
        The scores of the classifier for these rows, as for the calibrator's `fit`. A
        `CalibratedClassifier` has its own.
    by : str, or list of names or indices, optional
        Columns of `X` whose groups are to be tested, such as ``["sex", "education"]``. They need
        not be attributes of the calibrator. Whole numbers of at most 20 values may be codes, and
        each value is a group; other numbers are divided into five parts.
    sample_weight : array-like of shape (n,), optional
        How much each row counts. A row is one observation, whatever its weight.
    groups : array-like of shape (n,), optional
        Which rows belong together, such as those of one customer: their labels may depend on each
        other. They stay together in halves and folds, and each group counts as one observation.
    title : str, optional
        The title of the page.
    n_jobs : int, optional
        Threads to grow trees with; the result does not depend on it.

    Returns
    -------
    Report
        With `save`, `to_html`, `to_json` and `data`; in a notebook it is a table.

    See Also
    --------
    caltree.audit : The same tests of scores alone.

    Notes
    -----
    Groups and regions are those of `caltree.audit`: regions are found on one half of the rows,
    where the scores are off and where the calibrated probabilities are, and tested on the other. In
    each, three questions are asked: are the scores off, are the calibrated probabilities off, and
    are these nearer to what happens? The last test uses the midpoint between both. P-values are
    adjusted for all of these tests (Holm). Differences with p above 0.05 may be chance.

    A loss has two parts: what a curve for all rows would correct (calibration), and what is left
    then (refinement, which is how well rows are told apart). The curve is fitted to some rows and
    judged by others.

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
    >>> made.data["verdict"], made.data["data"]["training_rows"]["status"]
    ({'status': 'helped', 'gain': 'both'}, 'not seen')
    >>> made.data["regions"][0]["conditions"], made.data["regions"][0]["tests"]["change"]["verdict"]
    (['x0 > 1.5'], 'better')
    >>> made.to_html()[:15]
    '<!doctype html>'
    """
    _require_jinja()
    if title is not None and not isinstance(title, str):
        raise TypeError(f"title must be a string or None, got {type(title).__name__}")
    check_jobs(n_jobs)
    rows = check_rows(calibrator_or_model, X, y, scores, sample_weight, by, groups)
    return Report(gather(rows, printable(title or _TITLE), n_jobs))


def report_on_parts(
    calibrator: Any,
    parts: Iterable[Given],
    title: str,
    by: Sequence[int] = (),
    further: Callable[[], Any] | None = None,
    groups: Callable[[], Any] = lambda: None,
) -> Report:
    """The same report on rows that come in parts, whose attributes are never all in memory.

    `by` are attributes, by their number, whose groups are to be tested. Once all parts were read,
    `further` returns a table of further columns whose groups are, and `groups` those of rows that
    belong together.
    """
    _require_jinja()
    with tempfile.TemporaryDirectory(prefix="caltree-", ignore_cleanup_errors=True) as folder:
        rows = check_parts(calibrator, parts, by, further, groups, Path(folder))
        return Report(gather(rows, printable(title), -1))


def _require_jinja() -> None:
    """Refuse to begin without jinja2, and say how to install it."""
    try:
        import jinja2  # noqa: F401  # only to see whether it is there
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            'jinja2 is not installed; run: pip install "caltree[report]"', name="jinja2"
        ) from None
