"""The sentences of a report on the rows and on the calibrator."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from .._fitted.names import format_count, percent
from .._fitted.selection import BOOSTED, GLOBAL, LOCAL, UNCALIBRATED
from .wording import by_name
from .wording_places import count_rows

# So large a share of the rows is all of them, for a heading.
_MOST = 0.9
# Of more names, only the first are listed.
_MOST_NAMES = 8
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


def scores_taken_as(data: Mapping[str, Any]) -> str:
    """The type of the scores as it was used, and the class of a single column."""
    facts = data["data"]
    of = "" if facts["pos_label"] is None else f" of {facts['pos_label']}"
    return f"{_TYPES[facts['score_type']]}{of}"


def heading_of_seen_rows(data: Mapping[str, Any]) -> str:
    """The heading of the warning that rows were used for training."""
    most = data["data"]["training_rows"]["share"] > _MOST
    what = "model" if data["calibrator"]["is_model"] else "calibrator"
    return f"The {what} was fitted to {'these' if most else 'some of these'} rows"


def training_rows(data: Mapping[str, Any]) -> str:
    """Whether these rows were used for training, as far as it is known."""
    found = data["data"]["training_rows"]
    what = "model" if data["calibrator"]["is_model"] else "calibrator"
    if found["status"] == "seen":
        return (
            f"About {percent(found['share'])} of these rows are rows that the {what} was fitted "
            f"to ({found['found']} of {found['checked']} that could be checked have the contents "
            "of a training row). On rows it has seen, it looks better than it is: no number below "
            "shows how good it is on other rows."
        )
    if found["status"] == "not seen":
        return (
            f"{found['found'] or 'None'} of {found['checked']} rows that could be checked "
            f"had the contents of a row that the {what} was fitted to"
            + (", no more than chance explains." if found["found"] else ".")
        )
    if found["by_chance"] is None:
        return f"The rows could not be compared with those that the {what} was fitted to."
    if found["by_chance"] > 0.5:
        return (
            f"There is no way to tell whether the {what} was fitted to these rows. So many of its "
            f"training rows are alike that {percent(found['by_chance'])} of new rows would match "
            "one of them, too. Make sure that these rows were held out."
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
    title = data["calibrator"]["name"]
    name, selection = title.lower(), data["choice"]["selection"]
    if selection is None:
        if not data["choice"]["has_model"]:
            return [f"{title} has nothing to choose from: it looks at the scores alone."]
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


def without_share(data: Mapping[str, Any]) -> str:
    """The attributes that contribute nothing."""
    names = [each["name"] for each in data["importances"]["shares"] if not each["share"]]
    return f"No contribution: {', '.join(_first(names))}." if names else ""


def facts(data: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """The section on the data: what was given, and what is odd about it."""
    found, made = data["data"], data["calibrator"]
    counts = [f"{each['name']}: {format_count(each['rows'])}" for each in found["classes"]]
    stored = f"; stored {made['stored']}" if made["stored"] else ""
    lines = [
        ("Rows", [_rows(data)]),
        ("Labels", [", ".join(_first(counts))]),
        ("Scores", [f"Taken as {scores_taken_as(data)}.", _orientation(data)]),
        (
            "Calibrator",
            [
                f"{made['name']}, fitted to {count_rows(made['rows'])} with caltree "
                f"{made['caltree']}{stored}."
            ],
        ),
        ("Training rows", [training_rows(data)]),
        ("Attributes", [_attributes(found)]),
        ("Missing values", [_missing(data)]),
    ]
    new = [
        f"{each['attribute']}: {count_rows(each['new_category'])}, such as {each['example']}"
        for each in found["unseen"]["attributes"]
        if each["new_category"]
    ]
    lines.append(("New categories", _first(new) if new else ["None."]))
    lines.append(("This report", [f"caltree {data['made']['caltree']}, {data['made']['at']}."]))
    return lines


def _rows(data: Mapping[str, Any]) -> str:
    """How many rows there are, and how they count."""
    text = count_rows(data["rows"]) + (", weighted" if data["weighted"] else "")
    n_groups = data["groups_of_rows"]
    if n_groups is None:
        return text
    return f"{text}, in {format_count(n_groups)} groups, each of which counts as one observation"


def _orientation(data: Mapping[str, Any]) -> str:
    if data["data"]["backwards"]:
        return "They rank a class backwards; see the top of the page."
    auc = by_name(data).get("auc")
    return "" if auc is None else f"No class is ranked backwards: AUC {auc['before']:.3f}."


def _attributes(found: Mapping[str, Any]) -> str:
    total, searched = found["attributes"], found["searched"]
    if searched == total:
        return f"{total}."
    return f"{total}; regions were looked for among the {searched} that contribute most."


def _missing(data: Mapping[str, Any]) -> str:
    missing = data["data"]["missing"]
    if not missing:
        return "None."
    share = [f"{each['name']} {percent(each['rows'] / data['rows'])}" for each in missing]
    return f"{', '.join(_first(share))}."


def _first(texts: list[str]) -> list[str]:
    """The first few of many texts, and how many are left."""
    shown = texts[:_MOST_NAMES]
    return shown if len(shown) == len(texts) else [*shown, f"{len(texts) - len(shown)} more"]
