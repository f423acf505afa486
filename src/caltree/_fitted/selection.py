"""The choice that held-out rows led to, in one form for trees, forests and boosted trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .json_values import is_number

UNCALIBRATED, GLOBAL, LOCAL, BOOSTED = "uncalibrated", "global", "local", "boosted"
# So little weight is only a hedge against certainties that are wrong.
_SMALL_WEIGHT = 0.01 + 1e-9
SCORINGS = ("rmse", "log_loss")


@dataclass(frozen=True)
class Candidate:
    """A candidate: one way to predict.

    Parameters
    ----------
    name : str
        "uncalibrated", "global" (the model of the root, for all rows), "8 regions" (a tree cut back
        to at most so many leaves) or, in a forest, "regions of 60 rows" (smaller nodes are not
        split), ...
        Boosted trees have "boosted", and "global" is the curve they start from. Beside these, the
        roots of a forest are "global, forest".
    loss : float
        Its loss on held-out rows.
    weight : float
        Its weight in the probabilities.
    """

    name: str
    loss: float
    weight: float


@dataclass(frozen=True)
class Selection:
    """Candidates, their losses on rows that they were not fitted to, and their weights.

    Parameters
    ----------
    scoring : str
        The loss: "rmse" or "log_loss".
    candidates : tuple of Candidate
        The weights are those in the probabilities; their sum is 1.
    calibrated_loss : float
        The loss of the best average of candidates, whether or not it was chosen.
    loss : float
        The loss of the choice.
    """

    scoring: str
    candidates: tuple[Candidate, ...]
    calibrated_loss: float
    loss: float

    @property
    def chosen(self) -> str:
        """The most specific candidate that has a weight: "uncalibrated", "global" or "local"."""
        weighted = [each.name for each in self.candidates if each.weight > _SMALL_WEIGHT]
        for name in (UNCALIBRATED, GLOBAL):
            if all(each.startswith((UNCALIBRATED, name)) for each in weighted):
                return name
        return LOCAL

    @property
    def choice(self) -> str:
        """What was chosen, in words."""
        if self.chosen == UNCALIBRATED:
            return f"{UNCALIBRATED}, since calibration did not clearly help"
        if self.chosen == GLOBAL:
            return f"{GLOBAL}, one curve for all rows"
        is_boosted = any(each.name == BOOSTED for each in self.candidates)
        return f"{LOCAL}, {'with boosted trees' if is_boosted else 'a model for each region'}"

    @property
    def uncalibrated_weight(self) -> float:
        """The weight of the uncalibrated probabilities."""
        return sum(each.weight for each in self.candidates if each.name == UNCALIBRATED)

    def to_text(self) -> str:
        """Return a table of the candidates, with the choice."""
        measure = "RMSE" if self.scoring == "rmse" else "log loss"
        rows = [
            (each.name, f"{each.loss:.4f}", f"{each.weight:.2f}" if each.weight > 0.0 else "")
            for each in self.candidates
        ]
        rows.append(("average", f"{self.calibrated_loss:.4f}", ""))
        width = max(len(name) for name, _, _ in rows)
        lines = [f"    {name:<{width}}  {loss}  {weight}".rstrip() for name, loss, weight in rows]
        return "\n".join([f"Held-out {measure}, and weight (chosen: {self.choice}):", *lines])

    def to_dict(self) -> dict[str, Any]:
        """Return the selection as plain values."""
        return {**asdict(self), "candidates": [asdict(each) for each in self.candidates]}

    @classmethod
    def from_dict(cls, stored: Any) -> Selection:
        """Rebuild a selection from :meth:`to_dict`; ValueError on anything malformed."""
        keys = {"scoring", "candidates", "calibrated_loss", "loss"}
        if not isinstance(stored, dict) or set(stored) != keys:
            raise ValueError(f"a stored selection must have exactly the keys {sorted(keys)}")
        if stored["scoring"] not in SCORINGS:
            raise ValueError(f"scoring of a stored selection must be one of {SCORINGS}")
        if not (is_number(stored["calibrated_loss"]) and is_number(stored["loss"])):
            raise ValueError("the losses of a stored selection must be numbers")
        candidates = _read_candidates(stored["candidates"])
        return cls(stored["scoring"], candidates, stored["calibrated_loss"], stored["loss"])


def _read_candidates(stored: Any) -> tuple[Candidate, ...]:
    rows: Sequence[Any] = stored if isinstance(stored, list) and stored else [None]
    for row in rows:
        if (
            not isinstance(row, dict)
            or set(row) != {"name", "loss", "weight"}
            or not isinstance(row["name"], str)
            or not is_number(row["loss"])
            or not (is_number(row["weight"]) and 0.0 <= row["weight"] <= 1.0)
        ):
            raise ValueError(
                "a stored selection must list candidates with names, losses and weights from 0 to 1"
            )
    if abs(sum(row["weight"] for row in rows) - 1.0) > 1e-9:
        raise ValueError("the weights of a stored selection must sum to 1")
    return tuple(Candidate(**row) for row in rows)
