"""Differences of databases: names, texts, numbers, missing values."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from ..shared import is_unicode

# Whole numbers up to this are exact, whoever reads them, and so are these powers of ten.
LARGEST_EXACT = 2**53
_LARGEST_EXACT_EXPONENT = 22
_ESCAPES = {"\\": "\\\\", "`": "\\`", "'": "\\'", "\n": "\\n", "\r": "\\r", "\0": "\\x00"}


@dataclass(frozen=True)
class Dialect:
    """The SQL of one database."""

    name: str
    number: str
    """The type of a double."""
    text: str
    """The type of a text of any length."""
    boolean: str | None
    """The type of a boolean; None where those are numbers."""
    binary: str
    """The collation by which texts equal only themselves, whatever that of their column."""
    quote_mark: str = '"'
    """The mark before and after a name."""
    is_nan: str = ""
    """A condition on a double; empty where there is no NaN."""
    not_nan: str = ""
    """Its opposite; empty where NaN compares as false, too."""
    least: str = "least"
    greatest: str = "greatest"
    """Like `least` a function of several numbers, of which none of ours is ever missing."""
    deepest: int = 25
    """How many splits may be nested."""
    most_columns: int = 1500
    longest_name: int = 255
    """In bytes."""
    longest_query: int | None = None
    """In bytes; None where there is no limit."""

    @property
    def escapes(self) -> bool:
        """Whether a backslash in a text or a name means something."""
        return self.name == "bigquery"

    def column(self, name: str, argument: str) -> str:
        """Return a column by its name; ValueError if no column can have it."""
        if (not name and self.name != "sqlite") or "\0" in name or not is_unicode(name):
            raise ValueError(
                f"{argument}: no column of {self.name} can be called {name!r}; "
                f"give another name with to_sql({argument}=...)"
            )
        if self.name == "sqlite":
            # In double quotes, the name of a column that is not there would be a text.
            return f"`{name.replace('`', '``')}`"
        return self.quote(name)

    def quote(self, name: str) -> str:
        """Put a name into quotes."""
        inner = _escape(name) if self.escapes else name.replace('"', '""')
        return f"{self.quote_mark}{inner}{self.quote_mark}"

    def string(self, text: str) -> str:
        """Return a text as a literal."""
        if self.escapes:
            return f"'{_escape(text)}'"
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
        return is_unicode(text) and not (self.name == "postgresql" and "\0" in text)

    def double(self, value: float) -> str:
        """Return a double that reads back exactly, but for SQLite, whose last digit may differ."""
        digits = repr(float(value))
        # Without an exponent DuckDB makes a decimal of it.
        return f"{digits}e0" if self.name == "duckdb" and "e" not in digits else digits

    def exact(self, value: float) -> str:
        """Return a double that reads back exactly in every database."""
        return _exact_ratio(float(value)) if self.name == "sqlite" else self.double(value)

    def cast(self, column: str, to: str) -> str:
        """Convert a column to another type."""
        return f"CAST({column} AS {to})"

    def is_missing(self, column: str, double: str = "") -> str:
        """Whether a column has no value, or as a double NaN."""
        nan = f" OR {self.is_nan.format(double)}" if double and self.is_nan else ""
        return f"{column} IS NULL{nan}"

    def is_known(self, column: str, double: str = "") -> str:
        """Whether a column has a value, and as a double not NaN."""
        nan = f" AND NOT {self.is_nan.format(double)}" if double and self.is_nan else ""
        return f"{column} IS NOT NULL{nan}"

    def is_above(self, value: str, threshold: str) -> str:
        """Whether a double is above a number; NaN is not."""
        nan = f" AND {self.not_nan.format(value)}" if self.not_nan else ""
        return f"{value} > {threshold}{nan}"

    def clip(self, value: str, low: float, high: float) -> str:
        """Clip a double at two numbers."""
        return f"{self.least}({self.clip_below(value, low)}, {self.double(high)})"

    def clip_below(self, value: str, low: float) -> str:
        """Clip a double at a number from below."""
        return f"{self.greatest}({value}, {self.double(low)})"

    def aliases(self, names: Iterable[str]) -> list[str]:
        """Return names for results, all different even if shortened and whatever their case."""
        found: list[str] = []
        for name in names:
            if self.escapes:
                name = re.sub("[^0-9A-Za-z_]", "_", name)
            found.append(unused_name(name, found, self.longest_name))
        return [self.quote(name) for name in found]


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
            quote_mark="`",
            is_nan="IS_NAN({})",
            longest_name=300,
            longest_query=2**20,
        ),
    )
}


def unused_name(name: str, others: Iterable[str], longest: int = 63) -> str:
    """Change a name, if needed, so that it differs from others whatever the case."""
    taken = {other.lower() for other in others}
    number, found = 1, _cut(name, longest)
    while found.lower() in taken:
        number += 1
        ending = f"_{number}"
        found = _cut(name, longest - len(ending)) + ending
    return found


def _cut(name: str, longest: int) -> str:
    return name.encode("utf-8", "replace")[:longest].decode("utf-8", "ignore").replace("\0", "?")


def _escape(text: str) -> str:
    return "".join(_ESCAPES.get(character, character) for character in text)


def _exact_ratio(value: float) -> str:
    """Write a number as a ratio or a product of two exact ones, so that it is rounded once."""
    mantissa, _, exponent = f"{value!r}".partition("e")
    whole, _, decimals = mantissa.partition(".")
    decimals = "" if decimals == "0" else decimals
    digits, power = int(whole + decimals), int(exponent or 0) - len(decimals)
    if abs(digits) <= LARGEST_EXACT and abs(power) <= _LARGEST_EXACT_EXPONENT:
        if Fraction(digits) * Fraction(10) ** power == Fraction(value):
            return repr(value)
        return f"{digits} / {float(10**-power)!r}" if power < 0 else f"{digits} * {10.0**power!r}"
    fraction, shift = math.frexp(value)
    parts = [str(int(fraction * LARGEST_EXACT))]
    shift -= 53
    while shift:
        step = max(-52, min(52, shift))
        parts.append(f"{'*' if step > 0 else '/'} {float(2 ** abs(step))!r}")
        shift -= step
    return " ".join(parts)
