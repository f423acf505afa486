"""Segments of rows by one attribute, with mean probabilities before and after calibration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._inputs.arrays import Floats, Mask
from .._inputs.attributes import Attribute, Attributes
from .names import format_number, printable


def segment_table(
    known: Attributes,
    matrix: Floats,
    truth: Floats,
    before: Floats,
    after: Floats,
    weights: Floats,
    classes: list[Any],
    max_segments: int,
) -> list[dict[str, Any]]:
    """Compare probabilities with observed frequencies, in every segment of every attribute.

    The truth and the probabilities before and after calibration have one column per class. Returns
    one dict a segment, the most harmful first.
    """
    table = []
    for column, attribute in enumerate(known.columns):
        for condition, rows in segments(attribute, matrix[:, column], max_segments):
            share = weights[rows]
            if not share.any():
                continue
            means = [np.average(part[rows], axis=0, weights=share) for part in (truth, before)]
            worst = int(np.abs(means[1] - means[0]).argmax())
            if len(classes) == 2:
                worst = 1
            gap = float(means[1][worst] - means[0][worst])
            table.append(
                {
                    "attribute": attribute.name,
                    "segment": condition,
                    "rows": float(share.sum()),
                    "class": classes[worst],
                    "uncalibrated": float(means[1][worst]),
                    "observed": float(means[0][worst]),
                    "calibrated": float(np.average(after[rows, worst], weights=share)),
                    "harm": float(share.sum() * gap**2),
                }
            )
    return sorted(table, key=lambda row: -row["harm"])


def segments(attribute: Attribute, values: Floats, max_segments: int) -> Iterator[tuple[str, Mask]]:
    """Yield conditions that divide rows by one attribute, and the rows of each; none is empty.

    There are none of an attribute that is not used.
    """
    if not attribute.is_used:
        return
    name = printable(attribute.name)
    missing = np.isnan(values)
    if attribute.categories:
        for code, category in enumerate(attribute.categories):
            rows = values == code
            if rows.any():
                yield f"{name} = {printable(category)}", rows
    elif not missing.all():
        yield from _intervals(name, values, max_segments)
    if missing.any():
        yield f"{name} is missing", missing


def _intervals(name: str, values: Floats, max_segments: int) -> Iterator[tuple[str, Mask]]:
    distinct = np.unique(values[~np.isnan(values)])
    if len(distinct) <= max_segments:
        for value in distinct:
            yield f"{name} = {format_number(value)}", values == value
        return
    shares = np.arange(1, max_segments) / max_segments
    # A cut is one of the values, so that no row lies between two segments.
    cuts = np.unique(np.nanquantile(values, shares, method="lower"))
    cuts = cuts[cuts < distinct[-1]]
    for low, high in zip([-np.inf, *cuts], [*cuts, np.inf], strict=True):
        rows = (values > low) & (values <= high)
        if low == -np.inf:
            yield f"{name} <= {format_number(high)}", rows
        elif high == np.inf:
            yield f"{name} > {format_number(low)}", rows
        else:
            yield f"{format_number(low)} < {name} <= {format_number(high)}", rows
