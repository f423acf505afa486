"""`to_sql`: a fitted calibrator as SQL, one expression per class."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..._base import Calibrator
from ..._inputs.attributes import Attributes
from ..._inputs.parameters import check_choice
from ..._inputs.score_columns import place_columns
from ..._model_base import AttributeCalibrator
from ...curves import CurveScaling
from ...scaling import IsotonicScaling, PlattScaling
from .dialects import DIALECTS
from .layers import Layers
from .models import model_bodies
from .scaling import curve, identity, isotonic, platt
from .scores import Scores
from .text import Lines


class SqlColumns(Mapping[Any, str]):
    """Calibrated probabilities as SQL: a mapping from the classes to expressions.

    As a string it can stand between SELECT and FROM: all expressions, each with a name.

    Parameters
    ----------
    dialect : str
        The database that the expressions are for.
    names : dict
        The name of the column of every class, in quotes.
    layers : Layers
        The parts that the classes share.
    bodies : dict
        The expression of every class in terms of these.

    Examples
    --------
    >>> from caltree import IdentityCalibrator
    >>> identity = IdentityCalibrator().fit(None, ["no", "yes"], scores=[0.2, 0.9])
    >>> columns = identity.to_sql("sqlite", scores="p_yes")
    >>> list(columns)
    ['no', 'yes']
    >>> columns.names["yes"]
    '"calibrated_yes"'
    >>> import sqlite3
    >>> database = sqlite3.connect(":memory:")
    >>> database.execute(f"SELECT {columns} FROM (SELECT 0.25 AS p_yes)").fetchall()
    [(0.75, 0.25)]
    """

    def __init__(
        self,
        dialect: str,
        names: dict[Any, str],
        layers: Layers,
        bodies: dict[Any, Lines],
    ) -> None:
        self.dialect = dialect
        self.names = names
        self._layers = layers
        self._bodies = bodies

    def __getitem__(self, label: Any) -> str:
        try:
            body = self._bodies[label]
        except (KeyError, TypeError):  # TypeError: a slice, as of a string
            raise KeyError(f"{label!r} is not a class; the classes are {list(self)}") from None
        return self._check_length(self._layers.expression(body))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __str__(self) -> str:
        return ",\n".join(f"{self[label]} AS {name}" for label, name in self.names.items())

    def __repr__(self) -> str:
        return f"SqlColumns({self.dialect!r}, classes={reprlib.repr(list(self))})"

    def select(self, table: str | Sequence[str], columns: Sequence[str] | None = None) -> str:
        """Return a whole query, in which the classes share what they have in common.

        With more than two classes it is much shorter and faster than their expressions.

        Parameters
        ----------
        table : str or list of str
            The name of the table; a list for a schema and a table. All are put into quotes.
        columns : list of str, optional
            The columns of the table to keep; all of them by default. In SQLite nothing can be
            shared unless these are given.

        Returns
        -------
        str
            A SELECT statement.
        """
        dialect = DIALECTS[self.dialect]
        parts = [table] if isinstance(table, str) else table
        origin = ".".join(dialect.column(part, "table") for part in parts)
        kept = None if columns is None else [dialect.column(c, "columns") for c in columns]
        bodies = list(self._bodies.values())
        return self._check_length(
            self._layers.query(origin, kept, bodies, list(self.names.values()))
        )

    def _check_length(self, lines: Lines) -> str:
        text, longest = "\n".join(lines), DIALECTS[self.dialect].longest_query
        if longest is not None and len(text.encode()) > longest:
            raise ValueError(
                f"the SQL has {len(text.encode())} bytes, but {self.dialect} takes queries of "
                f"at most {longest}; fit a smaller calibrator, e.g. with max_depth, "
                "path_averaging=False or fewer trees"
            )
        return text


def to_sql(calibrator: Calibrator, dialect: str, scores: Any, attributes: Any) -> SqlColumns:
    """Return a fitted calibrator as SQL; see `Calibrator.to_sql`."""
    database = DIALECTS[check_choice("dialect", dialect, tuple(DIALECTS))]
    labels = calibrator.classes_.tolist()
    names: list[str] = []
    if isinstance(calibrator, AttributeCalibrator):
        names = _attribute_names(calibrator.model_.attributes, attributes)
    score_names, is_turned = _score_names(calibrator, labels, scores)
    columns = [database.column(name, "scores") for name in score_names]
    given = Scores(
        dialect=database,
        columns=[database.cast(column, database.number) for column in columns],
        labels=labels,
        score_type=calibrator.score_type_,
        limits=calibrator.score_limits_,
        taken=[*names, *score_names],
        is_turned=is_turned,
    )
    bodies = _bodies(calibrator, given, names)
    aliases = database.aliases(f"calibrated_{label}" for label in labels)
    return SqlColumns(
        dialect,
        dict(zip(labels, aliases, strict=True)),
        given.layers,
        dict(zip(labels, bodies, strict=True)),
    )


def _bodies(calibrator: Calibrator, given: Scores, names: Sequence[str]) -> list[Lines]:
    """Return the probability of every class, in terms of the given scores."""
    if isinstance(calibrator, AttributeCalibrator):
        return model_bodies(calibrator.model_, calibrator.scores_are_published, given, names)
    if isinstance(calibrator, PlattScaling):
        return platt(given, calibrator)
    if isinstance(calibrator, CurveScaling):
        return curve(given, calibrator)
    if isinstance(calibrator, IsotonicScaling):
        return isotonic(given, calibrator)
    return identity(given)


def _attribute_names(known: Attributes, given: Any) -> list[str]:
    """Return the names of the attributes' columns in the database."""
    names = [column.name for column in known.columns]
    if given is None:
        return names
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in names]
        if unknown:
            raise ValueError(
                f"attributes renames {reprlib.repr(unknown)}, but the calibrator has "
                f"{reprlib.repr(names)}"
            )
        return _check_names("attributes", [given.get(name, name) for name in names])
    found = _check_names("attributes", given)
    if len(found) != len(names):
        raise ValueError(
            f"attributes names {len(found)} columns, but the calibrator was fitted with "
            f"{len(names)}; give one name per attribute, or a dict of those that differ"
        )
    return found


def _score_names(
    calibrator: Calibrator, labels: Sequence[Any], given: Any
) -> tuple[list[str], bool]:
    """Return the columns of the scores in the order of the classes, and whether one is turned."""
    names, fitted = _columns_of_scores(calibrator, labels, given), calibrator.score_columns_
    if given is None:
        return names, fitted.is_turned
    order = place_columns(tuple(names), len(names), calibrator.classes_, fitted)
    if len(names) == 1 or order is None:
        return names, order == [0]
    return [names[order.index(j)] for j in range(len(names))], False


def _columns_of_scores(calibrator: Calibrator, labels: Sequence[Any], given: Any) -> list[str]:
    """Return the names of the scores' columns in the database, as they are given."""
    n_scores, m = calibrator.n_scores_, len(labels)
    if given is None:
        if n_scores == 1:
            return ["score"]
        names = [f"score_{label}" for label in labels]
        if n_scores == m:
            return names
        return [f"{name}_{k + 1}" for k in range(n_scores // m) for name in names]
    found = _check_names("scores", [given] if isinstance(given, str) else given)
    # One column of two says it all, unless the node models were fitted to both.
    may_differ = m == 2 and calibrator.score_type_ == "probability"
    may_differ &= not calibrator.scores_are_published
    if len(found) != n_scores and not (may_differ and {len(found), n_scores} == {1, 2}):
        raise ValueError(
            f"scores names {len(found)} columns, but the calibrator was fitted with {n_scores}"
        )
    return found


def _check_names(argument: str, names: Any) -> list[str]:
    found = list(names) if isinstance(names, list | tuple | np.ndarray) else [names]
    for name in found:
        if not isinstance(name, str):
            raise TypeError(
                f"{argument} must be names of columns, got {reprlib.repr(name)}; "
                "give a list of strings"
            )
    return [str(name) for name in found]
