"""The evidence of a report: its content as plain dicts, lists and numbers."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from .. import __version__
from .._audit.axes import attribute_axes
from .._audit.effects import CONFIDENCE
from .._audit.rows import FEWEST_ROWS
from .._audit.whole import examine_whole
from .._fitted.blended import Model
from .._fitted.conditions import short
from .._fitted.made import now
from .._model_base import AttributeCalibrator, TreeCalibrator
from .diagrams import class_diagrams
from .inputs import Rows
from .lookup import look_up
from .measures import ALPHA, measure
from .places import find_places
from .sums import RowSums
from .tree import outline_tree
from .verdict import judge

SCHEMA = "urn:caltree:report:1"
# Decides how rows are dealt into halves, and which labels are drawn; as in an audit.
_SEED = 0
# Among more attributes, regions are not looked for.
_MOST_SEARCHED = 40


def gather(rows: Rows, title: str, n_jobs: int | None) -> dict[str, Any]:
    """The whole content of the page."""
    before, after = rows.audited
    random = np.random.default_rng(_SEED)
    searched = _searched(rows)
    axes = attribute_axes(before, searched)
    measured = measure(before, after, n_jobs)
    whole: dict[str, Any] = {"before": None, "after": None}
    if len(before) >= FEWEST_ROWS:
        # As an audit of either would say, which begins with the same random numbers.
        whole["after"] = asdict(examine_whole(after, axes, np.random.default_rng(_SEED)))
        whole["before"] = asdict(examine_whole(before, axes, random))
    places = find_places(before, after, axes, rows.by, random)
    sums = RowSums(before, after)
    potential = measured.potential
    return {
        "schema": SCHEMA,
        "title": title,
        "made": {"caltree": __version__, "at": now()},
        "calibrator": _calibrator(rows),
        "rows": len(before),
        "weighted": before.weights is not None,
        "groups_of_rows": None if rows.groups is None else int(rows.groups.max()) + 1,
        "classes": rows.classes,
        "event": None if rows.event is None else rows.classes[rows.event],
        "alpha": ALPHA,
        "confidence": CONFIDENCE,
        "verdict": judge(measured.measures),
        "measures": [each.to_dict() for each in measured.measures.values()],
        "split_rows": measured.split_rows,
        "potential": potential and {name: asdict(parts) for name, parts in potential.items()},
        "whole": whole,
        "groups": [each.to_dict(f"group-{i}") for i, each in enumerate(places.groups)],
        "regions": [each.to_dict(f"region-{i}") for i, each in enumerate(places.regions)],
        "n_tests": places.n_tests,
        "choice": _choice(rows.calibrator),
        "reliability": class_diagrams(before, after),
        "attributes": [] if rows.attributes is None else look_up(before, sums),
        "importances": _importances(rows),
        "tree": _tree(rows, sums),
        "data": _data(rows, len(searched)),
    }


def _searched(rows: Rows) -> set[int]:
    """The attributes among which regions are looked for.

    Of many, these are those that the user names and those that contribute most: time grows with
    the number of pairs. Neither depends on the labels of these rows.
    """
    if rows.attributes is None:
        return set()
    used = [number for number, each in enumerate(rows.attributes.columns) if each.is_used]
    shares = np.zeros(len(rows.attributes.columns))
    if isinstance(rows.calibrator, AttributeCalibrator):
        shares[: rows.n_own] = np.nan_to_num(rows.calibrator.feature_importances_)
    shares[rows.by] = np.inf
    return set(sorted(used, key=lambda number: -shares[number])[:_MOST_SEARCHED])


def _calibrator(rows: Rows) -> dict[str, Any]:
    made = rows.calibrator.made_
    return {
        "name": rows.calibrator.title,
        "is_model": rows.is_model,
        "caltree": made.caltree,
        "rows": made.n_rows,
        "stored": made.at,
    }


def _choice(calibrator: Any) -> dict[str, Any]:
    """The candidates that were compared when the calibrator was fitted, and the choice."""
    has_model = isinstance(calibrator, AttributeCalibrator)
    selection = calibrator.selection_ if has_model else None
    if selection is None:
        return {"has_model": has_model, "selection": None}
    return {"has_model": True, "selection": {**selection.to_dict(), "chosen": selection.chosen}}


def _tree(rows: Rows, sums: RowSums) -> dict[str, Any] | None:
    if not isinstance(rows.calibrator, TreeCalibrator) or rows.matrix is None:
        return None
    return outline_tree(rows.calibrator, rows.matrix[:, : rows.n_own], sums)


def _importances(rows: Rows) -> dict[str, Any]:
    """The importances of the attributes, the largest first, or why there are none."""
    if rows.attributes is None or not isinstance(rows.calibrator, AttributeCalibrator):
        return {"shares": [], "reason": "The calibrator looks at the scores alone."}
    importances = rows.calibrator.feature_importances_
    if not (importances > 0.0).any():
        return {"shares": [], "reason": _why_unimportant(rows.calibrator.model_)}
    pairs = zip(rows.attributes.columns, importances.tolist(), strict=False)
    named = [{"name": short(column.name), "share": share} for column, share in pairs]
    return {"shares": sorted(named, key=lambda each: -each["share"]), "reason": None}


def _why_unimportant(model: Model) -> str:
    """Say why no attribute is known to contribute anything."""
    if model.uncalibrated_weight == 1.0:
        return "The scores are left uncalibrated, so no attribute contributes anything."
    if not model.splits_attributes:
        return "The scores are calibrated by the same model everywhere: nothing is split."
    if np.isnan(model.importances).any():
        return "No rows were held out, so what an attribute contributes is not measured."
    return "On rows that were held out, the splits gained nothing."


def _data(rows: Rows, n_searched: int) -> dict[str, Any]:
    """Facts about the rows that this report was made of."""
    counts = np.bincount(rows.labels, minlength=len(rows.classes)).tolist()
    columns = () if rows.attributes is None else rows.attributes.columns
    return {
        "classes": [
            {"name": name, "rows": count} for name, count in zip(rows.classes, counts, strict=True)
        ],
        "score_type": rows.score_type,
        "pos_label": None if rows.positive is None else rows.classes[rows.positive],
        "backwards": rows.backwards,
        "training_rows": _training_rows(rows),
        "unseen": {"attributes": rows.unseen.to_list(), "message": rows.unseen.message()},
        "attributes": sum(each.is_used for each in columns),
        "searched": n_searched,
        "missing": _missing(rows),
        "unreadable": rows.unreadable,
    }


def _missing(rows: Rows) -> list[dict[str, Any]]:
    """The attributes of which values are missing, those first that miss the most."""
    if rows.attributes is None or rows.matrix is None:
        return []
    found = []
    for number, attribute in enumerate(rows.attributes.columns):
        n_missing = int(np.count_nonzero(np.isnan(rows.matrix[:, number])))
        if n_missing and attribute.is_used:
            found.append({"name": short(attribute.name), "rows": n_missing})
    return sorted(found, key=lambda each: -each["rows"])


def _training_rows(rows: Rows) -> dict[str, Any]:
    """Whether the calibrator has seen these rows; the share is None where that is not known."""
    if rows.overlap is None:
        nothing = {"checked": 0, "found": 0, "by_chance": None, "share": None}
        return {"status": "cannot tell", **nothing}
    return rows.overlap.to_dict()
