"""The sentences of a report."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from .._audit.words import p_text
from .._fitted.names import SPACE, format_count, percent
from .._fitted.selection import BOOSTED, GLOBAL, LOCAL, UNCALIBRATED

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
_ON_SEEN_ROWS = "On rows it has already seen, calibration seems to help."
_MEASURES = {
    "log_loss": ("Log loss", "how surprised the probabilities are by what happens"),
    "log_loss_calibration": ("– calibration", "what a curve for all rows would put right"),
    "log_loss_refinement": ("– refinement", "what is left: how well rows are told apart"),
    "squared_error": ("Squared error", "of the probabilities; of two classes, the Brier score"),
    "squared_error_calibration": ("– calibration", "what a curve for all rows would put right"),
    "squared_error_refinement": ("– refinement", "what is left: how well rows are told apart"),
    "calibration_error": ("Calibration error", "mean distance of probability and frequency"),
    "auc": ("AUC", "the ranking: how often the likelier row is placed above"),
}


def count_rows(number: float) -> str:
    """A number of rows with the word."""
    return f"{format_count(number)}{SPACE}{'row' if number == 1 else 'rows'}"


def scores_taken_as(data: Mapping[str, Any]) -> str:
    """The type that the scores were taken for, and of which class if there is one column."""
    facts = data["data"]
    of = "" if facts["pos_label"] is None else f" of {facts['pos_label']}"
    return f"{_TYPES[facts['score_type']]}{of}"


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
        return "The gain is from scores that are backwards, and says little about calibration."
    if data["data"]["training_rows"]["status"] == "seen":
        return _ON_SEEN_ROWS
    error = _ERRORS.get(by_name(data)["calibration_error"]["verdict"], "unchanged")
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
            "The scores are margins, no probabilities: they are read as log-odds, which flatters "
            "calibration."
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
            sign = -1.0 if after < before else 1.0
            ends = sorted(sign * found[end] / before for end in ("low", "high"))
            text += f" (95{SPACE}% interval: {percent(ends[0])} to {percent(ends[1])})"
    return f"{text}{_doubt(found)}."


def _doubt(found: Mapping[str, Any]) -> str:
    if found["verdict"] == "may be chance":
        return "; that may be chance"
    return "; too few rows to tell whether that is chance" if found["p_value"] is None else ""


def _in_parts(calibration: Mapping[str, Any], refinement: Mapping[str, Any]) -> str:
    texts = [f"{signed(each['change'])}{_chance(each)}" for each in (calibration, refinement)]
    return f"Of this change, calibration is {texts[0]} and telling rows apart is {texts[1]}."


def _chance(found: Mapping[str, Any]) -> str:
    return " (may be chance)" if found["verdict"] == "may be chance" else ""


def _ranking(found: Mapping[str, Any]) -> str:
    said = {"better": "The ranking is better", "worse": "The ranking suffers"}
    start = said.get(found["verdict"], "The ranking is not shown to change")
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
        return [f"None of {len(found)} groups and regions is shown to be better or worse."]
    better = f"Of {len(found)} groups and regions, {n_better} are shown to be better"
    return [f"{better}, and {n_worse or 'none'} to be worse."]


def _whole(data: Mapping[str, Any]) -> list[str]:
    """The test of the whole, before and after."""
    before, after = data["whole"]["before"], data["whole"]["after"]
    if before is None or after is None:
        return []
    texts = [p_text(each["p_value"]) for each in (before, after)]
    if after["p_value"] > data["alpha"]:
        ending = f"nothing speaks against the calibrated probabilities ({texts[1]})"
    else:
        ending = f"something is left after calibration ({texts[1]})"
    return [f"Calibrated everywhere? The scores: {texts[0]}; {ending}."]


def all_places(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """All groups and regions."""
    return [*data["groups"], *data["regions"]]


def worse_places(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The groups and regions that calibration has made worse."""
    return [each for each in all_places(data) if each["tests"]["change"]["verdict"] == "worse"]


def signed(number: float) -> str:
    """A change with its sign."""
    return f"{number:+.4f}".replace("-", "−")


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


def heading_of_seen_rows(data: Mapping[str, Any]) -> str:
    """The heading of the warning that rows were used for training."""
    most = data["data"]["training_rows"]["share"] > _MOST
    return f"It was fitted to {'these very' if most else 'some of these'} rows"


def training_rows(data: Mapping[str, Any]) -> str:
    """Whether these rows were used for training, as far as it is known."""
    found = data["data"]["training_rows"]
    what = "model" if data["calibrator"]["is_model"] else "calibrator"
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
    title = data["calibrator"]["name"]
    name, selection = title.lower(), data["choice"]["selection"]
    if selection is None:
        if not data["choice"]["has_model"]:
            return [
                f"{title} has nothing to choose from: it looks at the scores alone."
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


def place_sentence(found: Mapping[str, Any], several_classes: bool) -> str:
    """What was said and what happened in a group, a region or a node."""
    rows = count_rows(found["rows"])
    if found["said"] is None:
        return f"{rows}: too few to judge" if found["rows"] else "no rows here"
    of_class = f"{found['class']}: " if several_classes else ""
    happened = f"{percent(found['happened'])} ({percent(found['low'])} to {percent(found['high'])})"
    return (
        f"{of_class}said {percent(found['said'])}, happened {happened}, "
        f"calibrated {percent(found['calibrated'])}; {rows}"
    )


def verdict_text(question: str, verdict: str) -> str:
    """The verdict of one of the three tests of a group or region, in words."""
    if verdict in ("too high", "too low"):
        return f"{question} {verdict}"
    if verdict in ("better", "worse", "hardly changed"):
        return verdict
    subject = "change" if question == "change" else f"{question} off"
    return f"{subject}: {verdict}"


def adjusted_text(data: Mapping[str, Any]) -> str:
    """How p-values of groups and regions are adjusted."""
    return (
        f"P-values are adjusted for all {data['n_tests']} tests of groups and regions (Holm); "
        f"what is not shown at {data['alpha']:g} may be chance."
    )


def is_shown(place: Mapping[str, Any]) -> bool:
    """Whether anything about a group or region is more than chance."""
    claims = ("too high", "too low", "better", "worse")
    return any(test["verdict"] in claims for test in place["tests"].values())


def regions_text(data: Mapping[str, Any]) -> str:
    """How many regions were looked at, and how many are shown to be off."""
    regions = data["regions"]
    off = [
        sum(each["tests"][question]["verdict"] in ("too high", "too low") for each in regions)
        for question in ("scores", "calibrated")
    ]
    looked = max(each["n_regions"] for each in data["whole"].values())
    return (
        f"Of {looked:,} regions of one or two conditions, the {len(regions)} with most evidence "
        f"were tested: in {off[0] or 'none'} the scores are off, in {off[1] or 'none'} the "
        "calibrated probabilities."
    )


def tree_text(tree: Mapping[str, Any]) -> str:
    """The size of a tree, and whether all of it is shown."""
    shown = sum(node["children"] == 0 for node in tree["nodes"])
    if shown == tree["leaves"]:
        return f"{len(tree['nodes'])} nodes, {shown} of them leaves."
    return f"The tree has {tree['leaves']:,} leaves. It is cut back to its {shown} largest nodes."


def facts(data: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """The section on the data: what was given, and what is odd about it."""
    found, made = data["data"], data["calibrator"]
    counts = [f"{each['name']}: {format_count(each['rows'])}" for each in found["classes"]]
    stored = f"; stored {made['stored']}" if made["stored"] else ""
    lines = [
        ("Rows", [count_rows(data["rows"]) + (", weighted" if data["weighted"] else "")]),
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


def _orientation(data: Mapping[str, Any]) -> str:
    if data["data"]["backwards"]:
        return "They rank a class backwards; see the top of the page."
    auc = by_name(data).get("auc")
    return "" if auc is None else f"They rank the right way round: AUC {auc['before']:.3f}."


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
