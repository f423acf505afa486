"""Options of commands that list names, all of them alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

ABOUT_NAMES = """\
NAMES are one or more names, separated by commas. The option may be repeated. Put a name that
contains a comma in double quotes: 'age,"income, total"'.
"""

_NAME = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^",\s][^,]*)|)\s*(?:,|$)')
"""A name in quotes, in which a quote is doubled, or without; and the comma behind it."""


def names_option(
    name: str, text: str, *, default: Sequence[str] | None = None, **more: Any
) -> Decorator:
    """An option of names, given to the command as a tuple; None if it is not used."""
    return click.option(
        name,
        multiple=True,
        default=default,
        show_default=default is not None,
        callback=_join_names,
        metavar="NAMES",
        help=text,
        **more,
    )


def split_names(text: str) -> list[str]:
    """The names in a text, which stand between commas; ValueError where a quote is open."""
    names, place = [], 0
    while place < len(text):
        found = _NAME.match(text, place)
        if found is None:
            raise ValueError(
                f"cannot read {text!r}: a quote is not closed, or stands within a name; put the "
                "whole name in double quotes and double those within it"
            )
        quoted, plain = found.groups()
        if quoted is not None:
            names.append(quoted.replace('""', '"'))
        elif plain is not None and plain.strip():
            names.append(plain.strip())
        place = found.end()
    return names


def list_names(names: Sequence[str], between: str = ", ") -> str:
    """Names as such an option takes them."""
    return between.join(map(_quote, names))


def _quote(name: str) -> str:
    plain = name == name.strip() and name and "," not in name and not name.startswith('"')
    doubled = name.replace('"', '""')
    return name if plain else f'"{doubled}"'


def _join_names(
    context: click.Context, option: click.Parameter, given: Sequence[str]
) -> tuple[str, ...] | None:
    if not given:
        return None
    try:
        names = [name for text in given for name in split_names(text)]
    except ValueError as error:
        raise click.BadParameter(str(error), context, option) from None
    if not names:
        raise click.BadParameter("it is empty; give names separated by commas", context, option)
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise click.BadParameter(f"it names {twice[0]} twice; name it once", context, option)
    return tuple(names)
