"""The sentences of a report: its verdict and its measures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._audit.words import p_text
from .._fitted.names import SPACE, percent
from .wording_places import all_places

_VERDICTS = {
    "harmed": "Calibration did harm.",
    "mixed": "Better by one loss, and worse by the other.",
    "unclear": "No change that is more than chance.",
    "unchanged": "The probabilities are unchanged.",
}
_GAINS = {
    "calibration": "Better probabilities, by better calibration",
    "mostly calibration": "Better probabilities, mostly by better calibration",
    "refinement": "Better probabilities, by telling rows apart",
    "mostly refinement": "Better probabilities, mostly by telling rows apart",
    "both": "Better probabilities: better calibrated, and rows are better told apart",
    "unknown": "Better probabilities",
}
_ERRORS = {"better": "fell", "worse": "rose"}
_ON_SEEN_ROWS = "Calibration seems to help, but on rows that the calibrator has already seen."
_MEASURES = {
    "log_loss": ("Log loss", "mean of −ln(probability of what happened)"),
    "log_loss_calibration": ("– calibration", "what a curve for all rows would correct"),
    "log_loss_refinement": ("– refinement", "the rest: how well rows are told apart"),
    "squared_error": ("Squared error", "with two classes, the Brier score"),
    "squared_error_calibration": ("– calibration", "what a curve for all rows would correct"),
    "squared_error_refinement": ("– refinement", "the rest: how well rows are told apart"),
    "calibration_error": (
        "Calibration error",
        "mean distance between probability and frequency",
    ),
    "auc": ("AUC", "the ranking; higher is better"),
}


def measure_name(name: str) -> str:
    """The name of a measure."""
    return _MEASURES[name][0]


def measure_words(name: str) -> str:
    """A measure in words."""
    return _MEASURES[name][1]


def by_name(data: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The measures by their names."""
    return {each["name"]: each for each in data["measures"]}


def verdict(data: Mapping[str, Any]) -> str:
    """Whether calibration helped, and by what."""
    found = data["verdict"]
    if found["status"] != "helped":
        return _VERDICTS[found["status"]]
    if data["data"]["backwards"]:
        return "The scores are backwards, so the gain says little about calibration."
    if data["data"]["training_rows"]["status"] == "seen":
        return _ON_SEEN_ROWS
    error = _ERRORS.get(by_name(data)["calibration_error"]["verdict"], "may be unchanged")
    gain = _GAINS[found["gain"]]
    if found["gain"] in ("refinement", "mostly refinement") or error == "rose":
        return f"{gain}; calibration error {error}."
    return f"{gain}."


def tone(data: Mapping[str, Any]) -> str:
    """The colour of the verdict: good only if no measure is worse."""
    status = data["verdict"]["status"]
    if data["data"]["training_rows"]["status"] == "seen" or data["data"]["backwards"]:
        return "doubted"
    if any(each["verdict"] == "worse" for each in data["measures"]):
        return "bad" if status in ("harmed", "mixed") else "doubted"
    return "good" if status == "helped" else "neutral"


def lead(data: Mapping[str, Any]) -> list[str]:
    """What changed, with intervals, and what is more than chance."""
    if data["verdict"]["status"] == "unchanged":
        return ["The calibrated probabilities are those of the scores.", *_places(data)]
    measures = by_name(data)
    sentences = [_change("Log loss", measures["log_loss"])]
    parts = [measures.get(f"log_loss_{part}") for part in ("calibration", "refinement")]
    if parts[0] is not None and parts[1] is not None:
        sentences.append(_in_parts(parts[0], parts[1]))
    sentences.append(_change("The calibration error", measures["calibration_error"]))
    if "auc" in measures:
        sentences.append(_ranking(measures["auc"]))
    sentences += [*_places(data), *_whole(data)]
    if data["data"]["score_type"] == "margin":
        sentences.append(
            "The scores are margins, not probabilities. Here they are read as log-odds, so "
            "calibration looks better than it is."
        )
    return sentences


def _change(what: str, found: Mapping[str, Any]) -> str:
    before, after = found["before"], found["after"]
    if before == after:
        return f"{what} stays at {before:.4f}."
    verb = "falls" if after < before else "rises"
    text = f"{what} {verb} from {before:.4f} to {after:.4f}"
    if before > 0.0:
        text += f", by {percent(abs(found['change']) / before)}"
        if found["low"] is not None:
            text += f"; change {signed(found['change'])} (95{SPACE}% interval: {interval(found)})"
    return f"{text}{_doubt(found)}."


def _doubt(found: Mapping[str, Any]) -> str:
    if found["verdict"] == "may be chance":
        return "; that may be chance"
    return "; too few rows to tell whether that is chance" if found["p_value"] is None else ""


def _in_parts(calibration: Mapping[str, Any], refinement: Mapping[str, Any]) -> str:
    texts = [f"{signed(each['change'])}{_chance(each)}" for each in (calibration, refinement)]
    return (
        f"Of this change, {texts[0]} is in calibration and {texts[1]} in refinement: how well "
        "rows are told apart."
    )


def _chance(found: Mapping[str, Any]) -> str:
    return " (may be chance)" if found["verdict"] == "may be chance" else ""


def _ranking(found: Mapping[str, Any]) -> str:
    starts = {"better": "The ranking is better", "worse": "The ranking is worse"}
    start = starts.get(found["verdict"], "The ranking may be unchanged")
    text = f"{start}: AUC {found['before']:.4f} before, {found['after']:.4f} after"
    if found["low"] is None or found["low"] == found["high"]:
        return f"{text}."
    return f"{text}; change {signed(found['change'])} ({interval(found)})."


def _places(data: Mapping[str, Any]) -> list[str]:
    """How many groups and regions became better and worse."""
    found = [each["tests"]["change"]["verdict"] for each in all_places(data)]
    if not any(verdict in ("better", "worse", "may be chance") for verdict in found):
        return []
    n_better, n_worse = found.count("better"), found.count("worse")
    if not n_better and not n_worse:
        return [f"The change is more than chance in none of {len(found)} groups and regions."]
    better = f"{n_better or 'None'} of {len(found)} groups and regions became better"
    return [f"{better}, and {n_worse or 'none'} became worse, by more than chance."]


def _whole(data: Mapping[str, Any]) -> list[str]:
    """The test of the whole, before and after."""
    before, after = data["whole"]["before"], data["whole"]["after"]
    if before is None or after is None:
        return []
    texts = [p_text(each["p_value"]) for each in (before, after)]
    ending = "no error is found" if after["p_value"] > data["alpha"] else "some error is left"
    return [f"Test for errors anywhere: {texts[0]} before, {texts[1]} after; {ending}."]


def signed(number: float) -> str:
    """A change with its sign."""
    return f"{round(number, 4) + 0.0:+.4f}".replace("-", "−")


def interval(found: Mapping[str, Any]) -> str:
    """The ends of an interval of a change."""
    return f"{signed(found['low'])} to {signed(found['high'])}"


def potential(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What there was to gain in log loss, and what was gained; each with its interval."""
    parts = data["potential"]
    if parts is None:
        return []
    gained = by_name(data)["log_loss"]
    found = {name: parts["log_loss"][name] for name in ("calibration", "grouping")}
    lines = [
        {"words": "a curve for all rows", **found["calibration"]},
        {"words": "regions, beyond a curve", **found["grouping"]},
    ]
    if gained["low"] is not None:
        own = {"mean": -gained["change"], "low": -gained["high"], "high": -gained["low"]}
        lines.append({"words": "this calibrator", **own})
    return lines
