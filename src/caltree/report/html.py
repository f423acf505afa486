"""The page of a report: one HTML file with its style and script inside."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from .._fitted.names import format_count, percent
from . import wording
from .intervals import axis_end

# So many regions are shown at once; of more, only the first ones until the reader asks for all.
_MOST_REGIONS_AT_ONCE = 16
_FIRST_REGIONS = 10
# A tree with more nodes begins folded below this level.
_MOST_OPEN_NODES = 31
_OPEN_LEVELS = 3
_WIDTH = 120.0
_CURVES = ("before", "after")
_BIN = ("predicted", "observed", "low", "high", "rows")


def render(data: Mapping[str, Any]) -> str:
    """The page of some evidence."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters.update(percent=percent, count=format_count)
    source = files(__package__)
    several = len(data["classes"]) > 2
    places = _places(data)
    end = _common_axis(places.values())
    page = environment.from_string(source.joinpath("page.html.j2").read_text("utf-8")).render(
        data=data,
        words=wording,
        several=several,
        end=end,
        style=source.joinpath("page.css").read_text("utf-8"),
        script=source.joinpath("page.js").read_text("utf-8"),
        embedded=embed_json({"places": _panels(places, several), "classes": _class_curves(data)}),
        first_regions=_first_regions(len(data["regions"])),
        largest_harm=max((region["harm"] for region in data["regions"]), default=0.0) or 1.0,
        open_levels=_OPEN_LEVELS if len(data["tree"] or ()) > _MOST_OPEN_NODES else 10**6,
        picture=lambda found: _picture(found, end),
        interval=_interval,
    )
    return f"{page}\n"


def embed_json(value: Any) -> str:
    """JSON that can stand inside a script element: ASCII, and nothing that looks like markup."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _first_regions(n_regions: int) -> int:
    return n_regions if n_regions <= _MOST_REGIONS_AT_ONCE else _FIRST_REGIONS


def _places(data: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Every node and region, by its id."""
    return {place["id"]: place for place in [*(data["tree"] or ()), *data["regions"]]}


def _panels(places: Mapping[str, Mapping[str, Any]], several: bool) -> dict[str, Any]:
    """The content of the panel of each node and region, by its id."""
    return {
        key: {
            "conditions": found["conditions"],
            "sentence": wording.region_sentence(found, several),
            "doubt": wording.interval_sentence(found),
            "few": found["few"],
            "say": found.get("share", 0.0),
            "formulas": found.get("formulas", []),
            "further": found["leaves"] if found.get("children") == 0 else 1,
            "numbers": _numbers(found),
            **{name: _points(found[name]) for name in _CURVES},
        }
        for key, found in places.items()
    }


def _numbers(found: Mapping[str, Any]) -> list[list[str]]:
    if not found["rows"]:
        return []
    interval = f"{percent(found['low'])} to {percent(found['high'])}"
    rows = format_count(found["rows"])
    if "training_rows" in found:
        rows = f"{rows} ({format_count(found['training_rows'])} in training)"
    outcome = found.get("outcome")
    return [
        ["Class", found["class"]],
        ["Scores say", percent(found["says"])],
        ["Observed", f"{percent(found['observed'])} ({interval})"],
        ["Calibrated", percent(found["calibrated"])],
        ["Rows", rows],
        *([["A score becomes", outcome]] if outcome else []),
    ]


def _points(bins: list[dict[str, float]]) -> list[list[float]]:
    return [[each[name] for name in _BIN] for each in bins]


def _class_curves(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The reliability curves of all rows, by class."""
    return [
        {"class": each["class"], **{name: _points(each[name]) for name in _CURVES}}
        for each in data["reliability"]
    ]


def _common_axis(places: Any) -> float:
    """Where the axis of all small pictures ends."""
    names = ("says", "observed", "calibrated")
    values = [place[name] for place in places if place["rows"] for name in names]
    return axis_end(max(values, default=1.0))


def _picture(found: Mapping[str, Any], end: float) -> dict[str, float]:
    """The positions of the marks in the small picture of a region."""

    def at(probability: float) -> float:
        return round(4.0 + (_WIDTH - 8.0) * min(probability / end, 1.0), 1)

    return {name: at(found[name]) for name in ("says", "observed", "low", "high", "calibrated")}


def _interval(gain: Mapping[str, Any]) -> dict[str, float] | None:
    """The positions of the interval of a gain and of zero, in hundredths of the width."""
    if gain["low"] is None or gain["low"] == gain["high"]:
        return None
    low, high = min(gain["low"], 0.0), max(gain["high"], 0.0)

    def at(value: float) -> float:
        return float(round(4.0 + 92.0 * (value - low) / (high - low), 2))

    return {name: at(gain[name]) for name in ("low", "high", "gain")} | {"zero": at(0.0)}
