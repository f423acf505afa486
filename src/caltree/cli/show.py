"""`caltree show`: a model in words or as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from .. import (
    BetaScaling,
    CalibrationBoosting,
    CalibrationEnsemble,
    CalibrationForest,
    CalibrationTree,
    IsotonicScaling,
    PlattScaling,
    PublishedCalibrationTree,
    TemperatureScaling,
)
from .._fitted.names import printable
from . import options
from .command import Command
from .io.formats import STANDARD

if TYPE_CHECKING:
    from .._base import Calibrator
    from .._model_base import AttributeCalibrator
    from .models import Model

_MOST_NAMES = 8


@click.command(cls=Command)
@options.model_argument
@click.option(
    "--max-depth",
    type=click.IntRange(min=0),
    metavar="N",
    help="Show this many levels of the splits of a tree.",
)
@options.as_json
def show(model: str, max_depth: int | None, as_json: bool) -> None:
    """Describe a model and its choices, and show its tree.

    A line such as "logit p = 0.02 + 1.01 logit s" is the model of a node, and "0.2 -> 0.15" says
    what a score of 0.2 becomes in a leaf. A node with a weight has that weight in the average
    over the path from the root to a leaf.
    """
    from .io.targets import check_target
    from .models import read_model

    check_target(STANDARD)
    known = read_model(model)
    found = describe(known)
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    click.echo("\n".join(_in_words(found)))
    match known.calibrator:
        case CalibrationTree() | PublishedCalibrationTree() as tree:
            click.echo(f"\n{tree.to_text(max_depth=max_depth)}")
        case CalibrationForest() | CalibrationBoosting() | CalibrationEnsemble() as many:
            if many.selection_ is not None:
                click.echo(f"\n{many.selection_.to_text()}")


def describe(model: Model) -> dict[str, Any]:
    """A model as plain values."""
    calibrator = model.calibrator
    return {
        "kind": type(calibrator).__name__,
        "made": asdict(calibrator.made_),
        "classes": model.classes,
        "score_type": calibrator.score_type_,
        "n_scores": calibrator.n_scores_,
        "pos_label": calibrator.pos_label_,
        "columns": None if model.columns is None else model.columns.to_dict(),
        "params": {name: v for name, v in calibrator.get_params().items() if _is_plain(v)},
        **_describe_fit(calibrator),
    }


def _describe_fit(calibrator: Calibrator) -> dict[str, Any]:
    """The choices and the size of a fitted calibrator, by its kind."""
    match calibrator:
        case CalibrationTree():
            return _describe_tree(calibrator)
        case PublishedCalibrationTree():
            iterations, alpha = calibrator.boosting_iterations_, calibrator.ccp_alpha_
            chosen = {"boosting_iterations": iterations, "ccp_alpha": alpha}
            return {**_describe_tree(calibrator), **chosen}
        case CalibrationForest() | CalibrationBoosting() | CalibrationEnsemble():
            return {**_describe_model(calibrator), "n_trees": calibrator.model_.n_trees}
        case TemperatureScaling():
            return {"slopes": [calibrator.slope_]}
        case PlattScaling() | BetaScaling():
            slopes, intercepts = calibrator.slopes_.tolist(), calibrator.intercepts_.tolist()
            return {"slopes": slopes, "intercepts": intercepts}
        case IsotonicScaling():
            return {"corners": [len(corners) for corners in calibrator.thresholds_]}
        case _:
            return {}


def _describe_tree(tree: CalibrationTree | PublishedCalibrationTree) -> dict[str, Any]:
    return {
        **_describe_model(tree),
        "n_leaves": tree.get_n_leaves(),
        "depth": tree.get_depth(),
    }


def _describe_model(calibrator: AttributeCalibrator) -> dict[str, Any]:
    selection = calibrator.selection_
    importances = calibrator.feature_importances_.tolist()
    attributes = [
        {
            "name": attribute.name,
            "categories": None if attribute.categories is None else list(attribute.categories),
            "importance": None if math.isnan(importance) else importance,
        }
        for attribute, importance in zip(
            calibrator.model_.attributes.columns, importances, strict=True
        )
    ]
    return {
        "attributes": attributes,
        "selection": None if selection is None else selection.to_dict(),
    }


def _in_words(found: dict[str, Any]) -> list[str]:
    columns = found["columns"] or {}
    names = columns.get("scores", [])
    kind, label = found["score_type"], found["pos_label"]
    kind = kind if label is None else f"{kind} of {label}"
    scores = f"{', '.join(names)} ({kind})" if names else kind
    lines = [
        f"kind        {found['kind']}",
        f"made        {_made_in_words(found['made'])}",
        f"label       {columns.get('label') or 'not known'}",
        f"classes     {', '.join(map(str, found['classes']))}",
        f"scores      {scores}",
    ]
    lines += [f"weight      {columns['weight']}"] if columns.get("weight") else []
    lines += [f"groups      {columns['groups']}"] if columns.get("groups") else []
    lines += [
        f"{'attributes' if not place else '':<10}  {_attribute_in_words(attribute)}"
        for place, attribute in enumerate(found.get("attributes", []))
    ]
    if any(attribute["importance"] is None for attribute in found.get("attributes", [])):
        lines.append("importance  not measured, since no rows were held out")
    sizes = ("n_leaves", "depth", "n_trees", "slopes", "intercepts", "corners")
    titles = {"n_leaves": "leaves", "n_trees": "trees"}
    for name in sizes:
        if name in found:
            lines.append(f"{titles.get(name, name):<10}  {_numbers_in_words(found[name])}")
    return lines


def _made_in_words(made: dict[str, Any]) -> str:
    at = "" if made["at"] is None else f"{made['at']} "
    return f"{at}with caltree {printable(made['caltree'])}, from {made['n_rows']:,} rows"


def _attribute_in_words(attribute: dict[str, Any]) -> str:
    categories = attribute["categories"]
    if categories == []:
        return f"{attribute['name']}: not used"
    importance = attribute["importance"]
    share = "" if importance is None else f"; importance {importance:.2f}"
    if categories is None:
        return f"{attribute['name']}: numbers{share}"
    shown = ", ".join(map(str, categories[:_MOST_NAMES]))
    more = len(categories) - _MOST_NAMES
    return f"{attribute['name']}: {shown}{f' and {more} more' if more > 0 else ''}{share}"


def _numbers_in_words(value: Any) -> str:
    if isinstance(value, list):
        return ("; " if isinstance(value[0], list) else ", ").join(map(_numbers_in_words, value))
    return f"{value:.6g}"


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str | list)
