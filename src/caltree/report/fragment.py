"""A report as one element, for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from .._audit.html import STYLE, bullet_list, table_row
from .._audit.words import p_text
from .._fitted.names import format_count
from . import wording, wording_data, wording_places
from .measures import plain_number

_PLACES = ("", "rows", "predicted", "observed", "calibrated", "scores", "calibrated", "change")
_MEASURES = ("", "before", "after", "change", "adjusted", "")


def to_fragment(data: Mapping[str, Any]) -> str:
    """The verdict, the measures, and groups and regions."""
    parts = [
        f"<style>{STYLE}</style>",
        f"<h1>{escape(wording.verdict(data))}</h1>",
        f"<p>{escape(data['title'])}: {escape(wording_places.count_rows(data['rows']))}</p>",
        bullet_list(wording.lead(data)),
        _table(_MEASURES, [_measure(each) for each in data["measures"]]),
        "<h2>Groups and regions</h2>",
        _table(_PLACES, [_place(data, each) for each in wording_places.all_places(data)]),
        '<div class="soft">',
        bullet_list([wording_places.adjusted_text(data), wording_data.training_rows(data)]),
        "</div>",
    ]
    return '<div class="caltree-audit">\n' + "\n".join(parts) + "\n</div>"


def _table(head: tuple[str, ...], rows: list[str]) -> str:
    names = "".join(f"<th>{escape(each)}</th>" for each in head)
    return f"<table><tr>{names}</tr>{''.join(rows)}</table>"


def _measure(found: Mapping[str, Any]) -> str:
    has_interval = found["low"] is not None and found["low"] != found["high"]
    change = wording.signed(found["change"])
    return table_row(
        [
            wording.measure_name(found["name"]),
            plain_number(found["before"]),
            plain_number(found["after"]),
            f"{change} ({wording.interval(found)})" if has_interval else change,
            p_text(found["adjusted_p_value"]),
            found["verdict"],
        ],
        off=found["verdict"] == "worse",
    )


def _place(data: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    name = " and ".join(found["conditions"]) or "all rows"
    predicted, observed, calibrated = wording_places.shares(found)
    return table_row(
        [
            name if data["event"] is not None else f"{found['class']}: {name}",
            format_count(found["rows"]),
            predicted,
            observed,
            calibrated,
            *(test["verdict"] for test in found["tests"].values()),
        ],
        off=found["tests"]["change"]["verdict"] == "worse",
    )
