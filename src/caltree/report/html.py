"""The page of a report: one HTML file with its style and script inside."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

from .._audit.words import p_text
from .._fitted.names import format_count, percent
from . import wording, wording_data, wording_places
from .measures import plain_number
from .places import QUESTIONS

# So many regions are shown at once; of more, only the first ones until the reader asks for all.
_MOST_AT_ONCE = 12
_FIRST = 8
# A tree with more nodes begins folded below this level.
_MOST_OPEN_NODES = 31
_OPEN_LEVELS = 3
_WIDTH = 120.0
_AXES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 1.0)
_MARKS = ("predicted", "observed", "low", "high", "calibrated")
_LINE = ("words", "class", "rows", "share", *_MARKS)


def render(data: Mapping[str, Any]) -> str:
    """The page of some evidence."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters.update(
        percent=percent, count=format_count, p_text=p_text, plain=plain_number
    )
    source = files(__package__)
    several = len(data["classes"]) > 2
    nodes = [] if data["tree"] is None else data["tree"]["nodes"]
    places = [*wording_places.all_places(data), *nodes]
    end = _common_axis(places)
    page = environment.from_string(source.joinpath("page.html.j2").read_text("utf-8")).render(
        data=data,
        facts=data["data"],
        measures=wording.by_name(data),
        words=wording,
        place_words=wording_places,
        data_words=wording_data,
        several=several,
        end=end,
        style=source.joinpath("page.css").read_text("utf-8"),
        script=source.joinpath("page.js").read_text("utf-8"),
        embedded=embed_json(_embedded(data, places, end, several)),
        first_regions=_first_regions(len(data["regions"])),
        open_levels=_OPEN_LEVELS if len(nodes) > _MOST_OPEN_NODES else 10**6,
        picture=lambda found: _picture(found, end),
        interval=_interval,
        potential=_with_bars(wording.potential(data)),
    )
    return f"{page}\n"


def embed_json(value: Any) -> str:
    """JSON that can stand inside a script element: ASCII, and nothing that looks like markup."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _embedded(
    data: Mapping[str, Any], places: Iterable[Mapping[str, Any]], end: float, several: bool
) -> dict[str, Any]:
    """All that the script shows."""
    curves = ("class", "before", "after")
    regions = {each["id"] for each in data["regions"]}
    return {
        "places": {each["id"]: _panel(each, several, each["id"] in regions) for each in places},
        "classes": [{name: each[name] for name in curves} for each in data["reliability"]],
        "attributes": [
            [[line[name] for name in _LINE] for line in each["lines"]]
            for each in data["attributes"]
        ],
        "end": end,
        "several": several,
    }


def _first_regions(n_regions: int) -> int:
    return n_regions if n_regions <= _MOST_AT_ONCE else _FIRST


def _panel(found: Mapping[str, Any], several: bool, in_half: bool) -> dict[str, Any]:
    """The content of the panel of a group, a region or a node.

    A region is tested on one half of the rows, and its share is of that half.
    """
    say = found.get("weight", 0.0)
    notes = []
    if 0.0 < say < 1.0:
        notes.append(f"This node's own model has {percent(say)} of the weight on its rows.")
    if found.get("children") == 0 and found["leaves"] > 1:
        notes.append(f"Divided further into {found['leaves']} leaves.")
    return {
        "conditions": found["conditions"],
        "sentence": _headline(found, several),
        "numbers": _numbers(found, several, in_half),
        "formulas": found.get("formulas", []),
        "notes": notes,
        "before": found.get("before", []),
        "after": found.get("after", []),
    }


def _headline(found: Mapping[str, Any], several: bool) -> str:
    """The shortest thing to say about a place."""
    if found["predicted"] is None:
        return wording_places.place_sentence(found, several)
    predicted, observed, calibrated = (
        percent(found[name]) for name in ("predicted", "observed", "calibrated")
    )
    return f"Predicted {predicted}, observed {observed}, calibrated {calibrated}"


def _numbers(found: Mapping[str, Any], several: bool, in_half: bool) -> list[list[str]]:
    of = " of its half" if in_half else ""
    rows = f"{format_count(found['rows'])} ({percent(found['share'])}{of})"
    lines = [["Rows", rows]]
    if "training_rows" in found:
        lines.append(["Training rows", format_count(found["training_rows"])])
    if found["predicted"] is not None:
        predicted, observed, calibrated = wording_places.shares(found)
        lines += [["Predicted", predicted], ["Observed", observed], ["Calibrated", calibrated]]
        lines += [["Class", found["class"]]] if several else []
    for question in QUESTIONS if "tests" in found else ():
        test = found["tests"][question]
        text = wording_places.verdict_text(question, test["verdict"])
        p_value = test["adjusted_p_value"]
        lines.append([text, "not tested" if p_value is None else p_text(p_value)])
    if found.get("outcome"):
        lines.append(["A score becomes", found["outcome"]])
    return lines


def _common_axis(places: Iterable[Mapping[str, Any]]) -> float:
    """Where the axis of all small pictures ends."""
    shown = (place for place in places if place["predicted"] is not None)
    largest = max((place[name] for place in shown for name in _MARKS), default=1.0)
    return next((end for end in _AXES if largest <= end), 1.0)


def _picture(found: Mapping[str, Any], end: float) -> dict[str, float]:
    """The positions of the marks in the small picture of a place."""

    def at(probability: float) -> float:
        return round(4.0 + (_WIDTH - 8.0) * min(probability / end, 1.0), 1)

    return {name: at(found[name]) for name in _MARKS}


def _interval(found: Mapping[str, Any]) -> dict[str, float] | None:
    """The positions of the interval of a change and of zero, in hundredths of the width."""
    if found["low"] is None or found["low"] == found["high"]:
        return None
    low, high = min(found["low"], 0.0), max(found["high"], 0.0)
    marks = {"low": found["low"], "high": found["high"], "change": found["change"], "zero": 0.0}
    return _positions(marks, low, high)


def _with_bars(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What there was to gain, each with the positions of its interval on a common axis."""
    low = min((line["low"] for line in lines), default=0.0)
    high = max((line["high"] for line in lines), default=0.0)
    names = ("low", "mean", "high")
    return [
        {**line, "at": _positions({**{n: line[n] for n in names}, "zero": 0.0}, low, high)}
        for line in lines
    ]


def _positions(marks: Mapping[str, float], low: float, high: float) -> dict[str, float]:
    low, high = min(low, 0.0), max(high, 0.0)
    width = high - low or 1.0
    return {name: round(4.0 + 92.0 * (value - low) / width, 2) for name, value in marks.items()}
