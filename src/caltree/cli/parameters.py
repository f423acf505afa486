"""Parameters of calibrators on the command line: `--param name=value`."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import click

from .._base import Calibrator
from .._calibrators import SHORTCUTS
from .._global_base import GlobalCalibrator
from .errors import in_one_line, usage_error

# A model that changes nothing is no use to a command.
CALIBRATORS = {name: kind for name, kind in SHORTCUTS.items() if name != "none"}
_OPTIONS = {
    "categorical_features": "--categorical",
    "n_jobs": "--n-jobs",
    "pos_label": "--positive",
    "random_state": "--random-state",
    "score_type": "--score-type",
    "scoring": "--scoring",
    "verbose": "--quiet",
}
"""Parameters that have an option of their own."""
_WORDS = {"none": None, "true": True, "false": False}


def is_global(kind: str) -> bool:
    """Whether a calibrator uses the scores alone."""
    return issubclass(CALIBRATORS[kind], GlobalCalibrator)


def make_calibrator(kind: str, options: dict[str, Any], given: Sequence[str]) -> Calibrator:
    """An unfitted calibrator, its parameters checked.

    `options` are the parameters that have an option of their own, `given` the values of --param.
    """
    known = _defaults(kind)
    parameters = {name: value for name, value in options.items() if name in known}
    for text in given:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            raise usage_error(f"--param {text} has no value; give --param NAME=VALUE")
        if name not in known or name in _OPTIONS:
            raise _unknown(kind, name)
        if name in parameters:
            raise usage_error(f"--param {name} is given twice; give it once")
        parameters[name] = _parse(name, value, known[name])
    calibrator = CALIBRATORS[kind](**parameters)
    try:
        calibrator._check_parameters()
    except (ValueError, TypeError) as error:
        raise usage_error(f"--param: {in_one_line(error)}") from None
    return calibrator


def describe_parameters() -> str:
    """The parameters of every calibrator and their defaults, for the help."""
    lines = ["\b", "Parameters for --param and their defaults, as in Python:"]
    width = max(map(len, CALIBRATORS))
    for kind in CALIBRATORS:
        own = [f"{name}={_in_words(value)}" for name, value in _settable(kind).items()]
        lines += textwrap.wrap(
            ", ".join(own) or "none",
            78,
            initial_indent=f"  {kind:<{width}} ",
            subsequent_indent=" " * (width + 3),
        )
    return "\n".join(lines)


def _defaults(kind: str) -> dict[str, Any]:
    return dict(CALIBRATORS[kind]().get_params())


def _settable(kind: str) -> dict[str, Any]:
    return {name: value for name, value in _defaults(kind).items() if name not in _OPTIONS}


def _unknown(kind: str, name: str) -> click.UsageError:
    if name in _OPTIONS and name in _defaults(kind):
        return usage_error(f"--param {name} has an option of its own; use {_OPTIONS[name]}")
    known = ", ".join(_settable(kind)) or "none at all"
    return usage_error(f"--param {name}: --calibrator {kind} has no such parameter; it has {known}")


def _parse(name: str, text: str, default: Any) -> Any:
    """A value as none, true, false, a number, or a word where the parameter takes words."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            pass
    if not isinstance(default, str):
        raise usage_error(
            f"--param {name}={text}: the value must be a number, true, false or none, such as "
            f"{name}={_in_words(default)}"
        )
    return text


def _in_words(value: Any) -> str:
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)
