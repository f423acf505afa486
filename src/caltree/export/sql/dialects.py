"""What databases write differently: names, texts, numbers, missing values."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

Lines: TypeAlias = list[str]

# Whole numbers up to this are exact, whoever reads them, and so are these powers of ten.
_LARGEST_EXACT = 2**53
_LARGEST_EXACT_EXPONENT = 22
_ESCAPES = {"\\": "\\\\", "`": "\\`", "'": "\\'", "\n": "\\n", "\r": "\\r", "\0": "\\x00"}


@dataclass(frozen=True)
class Dialect:
    """How one database writes what all of them know.

    Parameters
    ----------
    name : str
        What users call it.
    number : str
        The type of a double.
    text : str
        The type of a text of any length.
    boolean : str or None
        The type of a boolean; None where those are numbers.
    binary : str
        What makes texts equal only to themselves, whatever the collation of their column.
    quote : str
        What stands around a name.
    is_nan, not_nan : str
        Conditions on a double; empty where there is no NaN, or where NaN compares as false.
    least, greatest : str
        The functions of several numbers; none of ours is ever missing.
    deepest : int
        How many splits may be nested.
    most_columns : int
        The most columns of a query.
    longest_name : int
        The most bytes of a name.
    longest_query : int or None
        The most bytes of a query, if there is such a limit.
    """

    name: str
    number: str
    text: str
    boolean: str | None
    binary: str
    quote: str = '"'
    is_nan: str = ""
    not_nan: str = ""
    least: str = "least"
    greatest: str = "greatest"
    deepest: int = 25
    most_columns: int = 1500
    longest_name: int = 255
    longest_query: int | None = None

    @property
    def escapes(self) -> bool:
        """Whether a backslash in a text or a name means something."""
        return self.name == "bigquery"

    def column(self, name: str, argument: str) -> str:
        """A column by its name; ValueError if no column can be called so."""
        if (not name and self.name != "sqlite") or "\0" in name or not _is_unicode(name):
            raise ValueError(
                f"{argument}: no column of {self.name} can be called {name!r}; "
                f"say what it is called there, as to_sql({argument}=...)"
            )
        return self.quoted(name)

    def quoted(self, name: str) -> str:
        """A name in quotes."""
        inner = _escaped(name) if self.escapes else name.replace('"', '""')
        return f"{self.quote}{inner}{self.quote}"

    def string(self, text: str) -> str:
        """A text as a literal."""
        if self.escapes:
            return f"'{_escaped(text)}'"
        if self.name == "sqlite" and "\0" in text:
            # Its statements end where a zero is.
            parts = [f"'{part}'" for part in text.replace("'", "''").split("\0")]
            return f"({' || char(0) || '.join(parts)})"
        doubled = text.replace("'", "''")
        if self.name == "postgresql" and "\\" in text:
            # An ordinary literal means another thing where standard_conforming_strings is off.
            return "E'" + doubled.replace("\\", "\\\\") + "'"
        return f"'{doubled}'"

    def can_hold(self, text: str) -> bool:
        """Whether a row can hold this text."""
        return _is_unicode(text) and not (self.name == "postgresql" and "\0" in text)

    def double(self, value: float) -> str:
        """A double that reads back as it was, but for SQLite, whose last digit may differ."""
        digits = repr(float(value))
        # Without an exponent DuckDB makes a decimal of it.
        return f"{digits}e0" if self.name == "duckdb" and "e" not in digits else digits

    def exact(self, value: float) -> str:
        """A double that reads back as it was, everywhere."""
        return _exact_ratio(float(value)) if self.name == "sqlite" else self.double(value)

    def cast(self, column: str, to: str) -> str:
        """A column as another type."""
        return f"CAST({column} AS {to})"

    def missing(self, column: str, double: str = "") -> str:
        """Whether a column has no value, or as a double NaN."""
        nan = f" OR {self.is_nan.format(double)}" if double and self.is_nan else ""
        return f"{column} IS NULL{nan}"

    def known(self, column: str, double: str = "") -> str:
        """The opposite."""
        nan = f" AND NOT {self.is_nan.format(double)}" if double and self.is_nan else ""
        return f"{column} IS NOT NULL{nan}"

    def above(self, value: str, threshold: str) -> str:
        """Whether a double is above a number; NaN is not."""
        nan = f" AND {self.not_nan.format(value)}" if self.not_nan else ""
        return f"{value} > {threshold}{nan}"

    def between(self, value: str, low: float, high: float) -> str:
        """A double cut off at two numbers."""
        return f"{self.least}({self.at_least(value, low)}, {self.double(high)})"

    def at_least(self, value: str, low: float) -> str:
        """A double cut off at a number."""
        return f"{self.greatest}({value}, {self.double(low)})"

    def aliases(self, names: Iterable[str]) -> list[str]:
        """Names for results, all different even if cut to length and whatever their case."""
        found: list[str] = []
        for name in names:
            if self.escapes:
                name = re.sub("[^0-9A-Za-z_]", "_", name)
            found.append(unused(name, found, self.longest_name))
        return [self.quoted(name) for name in found]


DIALECTS = {
    dialect.name: dialect
    for dialect in (
        Dialect(
            "duckdb",
            "DOUBLE",
            "VARCHAR",
            "BOOLEAN",
            ' COLLATE "binary"',
            is_nan="isnan({})",
            not_nan="NOT isnan({})",
        ),
        Dialect(
            "postgresql",
            "double precision",
            "text",
            "boolean",
            ' COLLATE "C"',
            is_nan="{} = 'NaN'",
            not_nan="{} < 'NaN'",
            longest_name=63,
        ),
        # Its parser has a stack of 100 things, of which a split takes seven.
        Dialect(
            "sqlite",
            "REAL",
            "TEXT",
            None,
            " COLLATE BINARY",
            least="min",
            greatest="max",
            deepest=7,
        ),
        Dialect(
            "bigquery",
            "FLOAT64",
            "STRING",
            "BOOL",
            "",
            quote="`",
            is_nan="IS_NAN({})",
            longest_name=300,
            longest_query=2**20,
        ),
    )
}


def indented(lines: Lines, steps: int = 1) -> Lines:
    """Lines moved to the right; what looks like another line within one belongs to a name."""
    return ["  " * steps + line for line in lines]


def separated(lines: Lines) -> Lines:
    """Lines with commas between them."""
    return [*(f"{line}," for line in lines[:-1]), *lines[-1:]]


def unused(name: str, others: Iterable[str], longest: int = 63) -> str:
    """The name, changed if needed to differ from others whatever the case."""
    taken = {other.lower() for other in others}
    number, found = 1, _cut(name, longest)
    while found.lower() in taken:
        number += 1
        ending = f"_{number}"
        found = _cut(name, longest - len(ending)) + ending
    return found


def _cut(name: str, longest: int) -> str:
    return name.encode("utf-8", "replace")[:longest].decode("utf-8", "ignore").replace("\0", "?")


def _escaped(text: str) -> str:
    return "".join(_ESCAPES.get(character, character) for character in text)


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _exact_ratio(value: float) -> str:
    """A number as a ratio or a product of two that are exact, for they round it once."""
    mantissa, _, exponent = f"{value!r}".partition("e")
    whole, _, decimals = mantissa.partition(".")
    decimals = "" if decimals == "0" else decimals
    digits, power = int(whole + decimals), int(exponent or 0) - len(decimals)
    if abs(digits) <= _LARGEST_EXACT and abs(power) <= _LARGEST_EXACT_EXPONENT:
        if Fraction(digits) * Fraction(10) ** power == Fraction(value):
            return repr(value)
        return f"{digits} / {float(10**-power)!r}" if power < 0 else f"{digits} * {10.0**power!r}"
    fraction, shift = math.frexp(value)
    parts = [str(int(fraction * _LARGEST_EXACT))]
    shift -= 53
    while shift:
        step = max(-52, min(52, shift))
        parts.append(f"{'*' if step > 0 else '/'} {float(2 ** abs(step))!r}")
        shift -= step
    return " ".join(parts)
