"""The sentences of a report on groups, regions and nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._audit.words import tests_text
from .._fitted.names import SPACE, format_count
from .places import share_of_rows


def count_rows(number: float) -> str:
    """A number of rows with the word."""
    return f"{format_count(number)}{SPACE}{'row' if number == 1 else 'rows'}"


def all_places(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """All groups and regions."""
    return [*data["groups"], *data["regions"]]


def worse_places(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The groups and regions that calibration has made worse."""
    return [each for each in all_places(data) if each["tests"]["change"]["verdict"] == "worse"]


def place_sentence(found: Mapping[str, Any], several_classes: bool) -> str:
    """Predicted and observed in a group, a region or a node."""
    rows = count_rows(found["rows"])
    if found["predicted"] is None:
        return f"{rows}: too few to judge" if found["rows"] else "no rows here"
    of_class = f"{found['class']}: " if several_classes else ""
    predicted, observed, calibrated = shares(found)
    return f"{of_class}predicted {predicted}, observed {observed}, calibrated {calibrated}; {rows}"


def shares(found: Mapping[str, Any]) -> tuple[str, str, str]:
    """Predicted, observed with its interval, and predicted after calibration."""
    predicted, observed, low, high, calibrated = (
        share_of_rows(found[name], found["rows"])
        for name in ("predicted", "observed", "low", "high", "calibrated")
    )
    return predicted, f"{observed} ({low.removesuffix(f'{SPACE}%')}–{high})", calibrated


def verdict_text(question: str, verdict: str) -> str:
    """The verdict of one of the three tests of a group or region, in words."""
    if verdict in ("too high", "too low"):
        return f"{question} {verdict}"
    if verdict in ("better", "worse", "hardly changed"):
        return verdict
    if verdict == "too few rows":
        # Of 500 rows with one expected event, the rows are not what is missing.
        verdict = "too few rows or events"
    return f"{question}: {verdict}"


def adjusted_text(data: Mapping[str, Any]) -> str:
    """How p-values of groups and regions are adjusted."""
    if not data["n_tests"]:
        return f"{tests_text(0, 'Holm')}."
    return (
        f"{tests_text(data['n_tests'], 'Holm')}. "
        f"Differences with p above {data['alpha']:g} may be chance."
    )


def is_shown(place: Mapping[str, Any]) -> bool:
    """Whether anything about a group or region is more than chance."""
    claims = ("too high", "too low", "better", "worse")
    return any(test["verdict"] in claims for test in place["tests"].values())


def regions_text(data: Mapping[str, Any]) -> str:
    """How many regions were tested, and in how many the scores are off."""
    regions = data["regions"]
    off = [
        sum(each["tests"][question]["verdict"] in ("too high", "too low") for each in regions)
        for question in ("scores", "calibrated")
    ]
    looked = max(each["n_regions"] for each in data["whole"].values())
    return (
        f"{len(regions)} of {looked:,} regions of one or two conditions were tested, those with "
        f"the most evidence. The scores are off in {off[0] or 'none'} of them, and the calibrated "
        f"probabilities in {off[1] or 'none'}."
    )


def tree_text(tree: Mapping[str, Any]) -> str:
    """The size of a tree, and whether all of it is shown."""
    shown = sum(node["children"] == 0 for node in tree["nodes"])
    if shown == tree["leaves"]:
        return f"{len(tree['nodes'])} nodes, {shown} of them leaves."
    return f"The tree has {tree['leaves']:,} leaves. It is cut back to its {shown} largest nodes."
