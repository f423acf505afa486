"""The sentences of a report."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from .._fitted.names import SPACE, format_count, percent
from .._fitted.selection import BOOSTED, GLOBAL, LOCAL, UNCALIBRATED

_MOST = 0.9
_WORDS = {
    "uncalibrated": "the uncalibrated scores",
    "global": "one model for all rows",
    "local": "a model for each region",
    "boosted": "boosted trees",
    "blended": "a forest and boosted trees, blended",
}
_CUT_BACK = re.compile(r"\d+ regions")
_OF_FOREST = re.compile("regions of ")
_TYPES = {"probability": "probabilities", "logit": "logits", "margin": "margins"}
_VERDICTS = {
    "helped": "Calibration helped.",
    "harmed": "Calibration did harm.",
    "mixed": "Calibration helped by one measure and did harm by the other.",
    "unclear": "No clear difference.",
    "unchanged": "The probabilities are unchanged.",
}
_ON_SEEN_ROWS = {
    "helped": "On rows it has already seen, calibration seems to help.",
    "unclear": "No clear difference, even on rows it has already seen.",
}


def count_rows(number: float) -> str:
    """A number of rows with the word."""
    return f"{format_count(number)}{SPACE}{'row' if number == 1 else 'rows'}"


def scores_taken_as(data: Mapping[str, Any]) -> str:
    """The type that the scores were taken for, and of which class if there is one column."""
    of = "" if data["pos_label"] is None else f" of {data['pos_label']}"
    return f"scores taken as {_TYPES[data['score_type']]}{of}"


def verdict(data: Mapping[str, Any]) -> str:
    """Whether calibration helped."""
    found = data["verdict"]
    if data["backwards"] and found == "helped":
        return "The gain is from scores that are backwards, and says little about calibration."
    if data["training_rows"]["status"] == "seen":
        return _ON_SEEN_ROWS.get(found, _VERDICTS[found])
    return _VERDICTS[found]


def lead(data: Mapping[str, Any]) -> list[str]:
    """The change of both losses, with intervals."""
    if data["verdict"] == "unchanged":
        return [
            f"On these {count_rows(data['rows'])} the calibrated probabilities are those of the "
            "scores."
        ]
    first = f"On these {count_rows(data['rows'])} the error of the probabilities (RMSE)"
    sentences = [
        _change(first, data["gains"]["rmse"]),
        _change("Log loss", data["gains"]["log_loss"]),
    ]
    if data["verdict"] == "unclear":
        sentences.append("Differences as small as these may be chance.")
    if data["score_type"] == "margin":
        sentences.append(
            "The scores are margins and no probabilities; for comparison they are read as "
            "log-odds, which flatters calibration."
        )
    return sentences


def _change(what: str, gain: Mapping[str, Any]) -> str:
    before, after = gain["before"], gain["after"]
    if before == after:
        return f"{what} stays at {before:.4f}."
    verb, sign = ("falls", 1.0) if after < before else ("rises", -1.0)
    text = f"{what} {verb} from {before:.4f} to {after:.4f}"
    if before > 0.0:
        text += f", by {percent(sign * gain['gain'] / before)}"
        if gain["low"] is not None:
            ends = sorted(sign * gain[end] / before for end in ("low", "high"))
            text += f" (95{SPACE}% interval: {percent(ends[0])} to {percent(ends[1])})"
    return f"{text}."


def heading_of_seen_rows(data: Mapping[str, Any]) -> str:
    """The heading of the warning that rows were used for training."""
    most = data["training_rows"]["share"] > _MOST
    return f"It was fitted to {'these very' if most else 'some of these'} rows"


def training_rows(data: Mapping[str, Any]) -> str:
    """Whether these rows were used for training, as far as it is known."""
    found, what = data["training_rows"], "model" if data["is_model"] else "calibrator"
    if found["status"] == "seen":
        return (
            f"About {percent(found['share'])} of these rows are rows that the {what} was fitted "
            f"to ({found['found']} of {found['checked']} that could be checked have the contents "
            "of a training row). On rows it has seen, it looks better than it is: no number below "
            "says how it will do on others."
        )
    if found["status"] == "not seen":
        return (
            f"Of {found['checked']} rows that could be checked, {found['found'] or 'none'} "
            f"had the contents of a row that the {what} was fitted to"
            + (", no more than chance explains." if found["found"] else ".")
        )
    if found["by_chance"] is None:
        return f"The rows could not be compared with those that the {what} was fitted to."
    if found["by_chance"] > 0.5:
        return (
            f"It cannot be told whether the {what} was fitted to these rows. So many of its "
            f"training rows are alike that {percent(found['by_chance'])} of fresh rows would look "
            "familiar, too. Make sure that these rows were held out."
        )
    return (
        f"Too few rows to tell whether the {what} was fitted to some of them "
        f"({found['checked']} could be checked, {found['found']} had the contents of a training "
        "row). Make sure that these rows were held out."
    )


def remedy() -> str:
    """Advice on rows that were used for training."""
    return (
        "Hold rows out before fitting (for instance with scikit-learn's train_test_split), fit on "
        "the others, and make this report on the rows held out."
    )


def choice(data: Mapping[str, Any]) -> list[str]:
    """The choice of the fit, and the reason for it."""
    name, selection = data["calibrator"].lower(), data["choice"]["selection"]
    if selection is None:
        if not data["choice"]["has_model"]:
            return [
                f"{data['calibrator']} has nothing to choose from: it looks at the scores alone."
            ]
        return [f"The {name} was fitted without comparing it with the uncalibrated scores."]
    losses = {row["name"]: row["loss"] for row in selection["candidates"]}
    compared = {each: losses[each] for each in (UNCALIBRATED, GLOBAL) if each in losses}
    local = _local(losses)
    compared[local] = selection["calibrated_loss"]
    *first, last = [f"{candidate(each)} ({loss:.4f})" for each, loss in compared.items()]
    measure = "RMSE" if selection["scoring"] == "rmse" else "log loss"
    chosen = local if selection["chosen"] == LOCAL else selection["chosen"]
    sentences = [
        f"When it was fitted, the {name} compared {', '.join(first)} and {last} by the {measure} "
        f"on rows that were held out, and chose {candidate(chosen)}."
    ]
    weighted = [row["name"] for row in selection["candidates"] if row["weight"] > 0.0]
    if chosen == local and len(weighted) == 1:
        sentences.append(f"All weight is on {candidate(weighted[0])}.")
    lowest = min(compared, key=lambda each: compared[each])
    if compared[lowest] < compared[chosen]:
        sentences.append(f"The loss of {candidate(lowest)} is lower, but not by enough to be sure.")
    return sentences


def _local(names: Collection[str]) -> str:
    """The candidates that are more than one model for all rows, as one."""
    if BOOSTED not in names:
        return LOCAL
    return "blended" if any(_OF_FOREST.match(name) for name in names) else BOOSTED


def candidate(name: str) -> str:
    """The name of a candidate in a sentence."""
    if _CUT_BACK.fullmatch(name):
        return f"the tree cut back to at most {name}"
    if _OF_FOREST.match(name):
        return f"trees with {name}"
    return _WORDS.get(name, name)


def region_sentence(found: Mapping[str, Any], several_classes: bool) -> str:
    """The predicted and the observed frequency in a region."""
    if not found["rows"]:
        return "no rows here"
    of_class = f"{found['class']}: " if several_classes else ""
    text = f"{of_class}says {percent(found['says'])}, is {percent(found['observed'])}"
    return f"{text}, {count_rows(found['rows'])}"


def interval_sentence(found: Mapping[str, Any]) -> str:
    """The interval of the observed frequency beside the scores."""
    if not found["rows"]:
        return "None of these rows is here, so nothing can be said."
    ends = f"{percent(found['low'])} to {percent(found['high'])}"
    if found["few"]:
        return f"Too few rows to judge: the frequency may be anything from {ends}."
    if found["off"]:
        side = "above" if found["says"] > found["high"] else "below"
        return f"The scores are {side} the interval of the observed frequency, {ends}."
    return f"The scores are within the interval of the observed frequency, {ends}."
