"""The result of an audit, as data."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import Any

from ..metrics import MulticalibrationError
from .effects import Direction, Effect
from .parts import LossParts
from .whole import Whole

SCHEMA = "urn:caltree:audit:1"


@dataclass(frozen=True)
class Finding(Effect):
    """Predicted probability and observed frequency of a group or a region.

    Attributes
    ----------
    conditions : list of str
        The conditions that its rows meet; none for all rows.
    label : str
        The class that the probabilities are about: with two classes the event, with more the one
        that is farthest off.
    n_rows : int
        The number of rows; for a region, of the half that it was tested on.
    share : float
        Their share of the weight.
    predicted, observed : float
        The mean probability, and the frequency of the class.
    low, high : float
        The interval of the frequency, by Wilson; of a region, adjusted for alternatives to it.
    shift, shift_low, shift_high : float
        What must be added to the log-odds of the scores, and its interval; infinite where the
        class has all rows or none.
    direction : int
        The error that is tested: 1 if it is that the scores are too low, -1 if too high, as the
        rows say on which a region was found; 0 of a group, which is tested for both.
    p_value : float or None
        The p-value of the claim that the scores have no such error here, for a region adjusted for
        alternatives to it; None if there are too few rows to test.
    adjusted_p_value : float or None
        The same, adjusted for all groups and regions that were tested.
    is_off : bool
        Whether the scores are off here: the adjusted p-value is at most `Audit.alpha`.
    shifts_in_halves : tuple of float, or None
        The shift in two halves of these rows.
    same_in_halves : bool or None
        Whether these differ by no more than chance; None if that is not known.
    """

    conditions: list[str]
    label: str
    direction: Direction
    adjusted_p_value: float | None
    is_off: bool
    shifts_in_halves: tuple[float, float] | None
    same_in_halves: bool | None

    @property
    def is_opposite(self) -> bool:
        """Whether the error here is opposite to the one that is tested."""
        return self.direction * (self.observed - self.predicted) < 0.0

    @property
    def name(self) -> str:
        """The conditions as one text."""
        return " and ".join(self.conditions) or "all rows"

    @classmethod
    def of(
        cls,
        conditions: list[str],
        label: str,
        direction: Direction,
        effect: Effect,
        adjusted: float | None,
        alpha: float,
        shifts: tuple[float, float] | None,
        same: bool | None,
    ) -> Finding:
        """Put a finding together."""
        return cls(
            conditions=conditions,
            label=label,
            direction=direction,
            adjusted_p_value=adjusted,
            is_off=adjusted is not None and adjusted <= alpha,
            shifts_in_halves=shifts,
            same_in_halves=same,
            **asdict(effect),
        )


@dataclass(frozen=True, repr=False)
class Audit:
    """Whether scores are calibrated, overall and for whom.

    Attributes
    ----------
    p_value : float
        The p-value of the claim that the scores are calibrated everywhere.
    whole : Whole
        The same test, with its parts: a curve for all rows, and regions.
    parts : dict of str to LossParts
        The ``"log_loss"`` and the ``"squared_error"`` in three parts.
    groups : list of Finding
        All rows, and the groups that the user named.
    regions : list of Finding
        At most a dozen regions, each found on one half of the rows and tested on the other; those
        that are off come first.
    mce : MulticalibrationError
        The multicalibration error, as MCGrad defines it.
    smooth_ece : float
        The smooth calibration error.
    n_rows : int
        The number of rows.
    classes : list of str
        The classes.
    event : str or None
        With two classes, the one that the probabilities are about.
    n_tests : int
        The number of tests of groups and regions that p-values are adjusted for. Of regions that
        are nearly the same, as both halves of the rows may suggest, all are tested, and one is
        listed.
    alpha : float
        The level at which errors are claimed. With Holm's method, at most this share of audits of
        calibrated scores claim any.
    adjustment : str
        How p-values of groups and regions are adjusted.
    weighted, grouped : bool
        Whether there were weights, and groups of rows that belong together.
    """

    p_value: float
    whole: Whole
    parts: dict[str, LossParts]
    groups: list[Finding]
    regions: list[Finding]
    mce: MulticalibrationError
    smooth_ece: float
    n_rows: int
    classes: list[str]
    event: str | None
    n_tests: int
    alpha: float
    adjustment: str
    weighted: bool
    grouped: bool

    @property
    def is_calibrated(self) -> bool:
        """Whether no test found an error, neither of the whole nor of a group or region."""
        claims = [*self.groups, *self.regions]
        return self.p_value > self.alpha and not any(each.is_off for each in claims)

    def to_dict(self) -> dict[str, Any]:
        """The audit as dicts, lists, strings and numbers; infinite numbers are None."""
        plain: dict[str, Any] = _finite({"schema": SCHEMA, **asdict(self)})
        plain["is_calibrated"] = self.is_calibrated
        return plain

    def to_json(self) -> str:
        """The audit as JSON, by the schema ``caltree/schema/audit.schema.json``."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False, ensure_ascii=False)

    def to_text(self) -> str:
        """The audit in words."""
        from .text import to_text

        return to_text(self)

    def to_html(self) -> str:
        """The audit as a page that needs no other file."""
        from .html import to_page

        return to_page(self)

    def save(self, path: Any) -> None:
        """Write the page to a file, which appears whole or not at all."""
        from pathlib import Path

        from .._fitted.files import write_atomically

        write_atomically(Path(path), self.to_html().encode("utf-8"))

    def __repr__(self) -> str:
        from .words import headline, subject

        return f"<Audit of {subject(self)}: {headline(self)}>"

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        from .html import to_fragment

        return to_fragment(self)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
