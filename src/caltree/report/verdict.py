"""The verdict of a report: whether calibration helped, and by what."""

from __future__ import annotations

from collections.abc import Mapping

from .._audit.parts import LOSSES
from .measures import Measure

# A part of a gain with a larger share is most of it.
_MOST = 2.0 / 3.0


def judge(measures: Mapping[str, Measure]) -> dict[str, str | None]:
    """Say whether the losses fell for certain, and which part of a loss did.

    The status is helped, harmed, mixed, unclear or unchanged. If calibration helped, the gain is
    one of "calibration", "refinement", "both" and "unknown"; if both fell, the larger part may be
    "mostly calibration" or "mostly refinement".
    """
    verdicts = {name: measures[name].verdict for name in LOSSES}
    found = set(verdicts.values())
    if found == {"unchanged"}:
        return {"status": "unchanged", "gain": None}
    if {"better", "worse"} <= found:
        return {"status": "mixed", "gain": None}
    if "worse" in found:
        return {"status": "harmed", "gain": None}
    if "better" not in found:
        return {"status": "unclear", "gain": None}
    loss = next(name for name, verdict in verdicts.items() if verdict == "better")
    return {"status": "helped", "gain": _gain(measures, loss)}


def _gain(measures: Mapping[str, Measure], loss: str) -> str:
    """The part of a loss that fell."""
    names = {part: f"{loss}_{part}" for part in ("calibration", "refinement")}
    if not all(name in measures for name in names.values()):
        return "unknown"
    fell = [part for part, name in names.items() if measures[name].verdict == "better"]
    if len(fell) < 2:
        return fell[0] if fell else "unknown"
    gains = {part: -measures[name].estimate.change for part, name in names.items()}
    for part, gain in gains.items():
        if gain >= _MOST * sum(gains.values()):
            return f"mostly {part}"
    return "both"
