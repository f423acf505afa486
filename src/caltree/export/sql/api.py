"""A fitted calibrator as SQL, one expression a class; made by `to_sql` of every calibrator."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..._fitted.forest_model import ForestModel
from ..._fitted.model import TreeModel, weight_so_far
from ..._inputs.attributes import Attributes
from ..._inputs.parameters import check_choice
from ..._inputs.scores import is_offset
from .dialects import DIALECTS, Lines, indented
from .layers import Layers
from .routes import Routes
from .scaling import identity, isotonic, platt
from .scores import Scores
from .sums import added_blocks
from .trees import NodeModels, sums_of_many, sums_of_two


class SqlColumns(Mapping[Any, str]):
    """Calibrated probabilities as SQL: a mapping from the classes to expressions.

    As a string it is what stands between SELECT and FROM: all expressions, each with a name.

    Parameters
    ----------
    dialect : str
        The database that the expressions are for.
    names : dict
        The name of the column of every class, in quotes.
    layers : Layers
        What the classes share.
    bodies : dict
        The expression of every class in terms of it.

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
        return self._checked(self._layers.alone(self._bodies[label]))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __str__(self) -> str:
        return ",\n".join(f"{self[label]} AS {name}" for label, name in self.names.items())

    def __repr__(self) -> str:
        return f"SqlColumns({self.dialect!r}, classes={reprlib.repr(list(self))})"

    def select(self, table: str | Sequence[str], columns: Sequence[str] | None = None) -> str:
        """A whole query, in which the classes share what they have in common.

        With more than two classes it is much shorter and quicker than their expressions.

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
        return self._checked(self._layers.query(origin, kept, bodies, list(self.names.values())))

    def _checked(self, lines: Lines) -> str:
        text, longest = "\n".join(lines), DIALECTS[self.dialect].longest_query
        if longest is not None and len(text.encode()) > longest:
            raise ValueError(
                f"the SQL has {len(text.encode())} bytes, but {self.dialect} takes no query of "
                f"more than {longest}; fit a smaller calibrator, e.g. with max_depth, "
                "path_averaging=False or fewer trees"
            )
        return text


def to_sql(calibrator: Any, dialect: str, scores: Any, attributes: Any) -> SqlColumns:
    """The SQL of a fitted calibrator; its method says what goes in."""
    database = DIALECTS[check_choice("dialect", dialect, tuple(DIALECTS))]
    labels = calibrator.classes_.tolist()
    has_attributes = hasattr(calibrator, "_attributes")
    names = _attribute_names(calibrator._attributes(), attributes) if has_attributes else []
    score_names = _score_names(calibrator, labels, scores)
    columns = [database.column(name, "scores") for name in score_names]
    given = Scores(
        dialect=database,
        columns=[database.cast(column, database.number) for column in columns],
        labels=labels,
        score_type=calibrator.score_type_,
        taken=[*names, *score_names],
    )
    bodies = _bodies(calibrator, given, names)
    aliases = database.aliases(f"calibrated_{label}" for label in labels)
    return SqlColumns(
        dialect,
        dict(zip(labels, aliases, strict=True)),
        given.layers,
        dict(zip(labels, bodies, strict=True)),
    )


def _bodies(calibrator: Any, given: Scores, names: Sequence[str]) -> list[Lines]:
    """The probability of every class, in terms of what is given."""
    if hasattr(calibrator, "tree_"):
        return _model_bodies(calibrator.tree_, calibrator.extremes_, given, names)
    if hasattr(calibrator, "forest_"):
        return _model_bodies(calibrator.forest_, "clip", given, names)
    if hasattr(calibrator, "slopes_"):
        return platt(given, calibrator)
    if hasattr(calibrator, "thresholds_"):
        return isotonic(given, calibrator)
    return identity(given)


def _model_bodies(
    model: TreeModel | ForestModel, extremes: str, given: Scores, names: Sequence[str]
) -> list[Lines]:
    share = model.share_of_scores
    if share == 1.0:
        return identity(given)
    sums = _sums_of_nodes(model, extremes, given, names)
    if share == 0.0 and isinstance(model, TreeModel) and _leaves_decide(model):
        return sums
    dialect = given.dialect
    if share > 0.0:
        raw = given.named("raw", given.uncalibrated())
        part = dialect.double(share)
        sums = [
            added_blocks([lines, [f"{part} * {name}"]])
            for lines, name in zip(sums, raw, strict=True)
        ]
    # A sum of shares may be rounded to beyond a certainty.
    low, high = dialect.double(0.0), dialect.double(1.0)
    return [
        [f"{dialect.least}({high}, {dialect.greatest}({low},", *indented(lines), "))"]
        for lines in sums
    ]


def _sums_of_nodes(
    model: TreeModel | ForestModel, extremes: str, given: Scores, names: Sequence[str]
) -> list[Lines]:
    """What the nodes say of each class."""
    dialect = given.dialect
    values, largest = given.regressors(extremes)
    factors = [given.for_products(value) for value in values]
    scores = given.named("score", factors)
    corrects = model.offset if isinstance(model, TreeModel) else given.score_type != "margin"
    offsets = scores if corrects else []
    if corrects and not is_offset(given.n_classes, len(values)):
        offsets = given.named("offset", given.offsets())
    splits_on_scores = int(model.attribute.max()) >= len(names)
    split_on = given.named("split", values) if splits_on_scores and factors != values else scores
    routes = Routes(dialect, model, [dialect.column(n, "attributes") for n in names], split_on)
    if isinstance(model, TreeModel):
        # Of two classes the difference is all that counts.
        rows, roots = model.coefficients, [0]
        states = rows if given.n_classes > 2 else rows[:, 1:] - rows[:, :1]
        of_states = [scores] * states.shape[1]
    else:
        states, roots = model.parameters, model.roots.tolist()
        of_states = [scores[k :: model.n_states] for k in range(model.n_states)]
    vector = ""
    if dialect.name == "duckdb" and isinstance(model, TreeModel) and given.n_classes > 2:
        vector = given.layers.name(0, "scores", f"[{', '.join(factors)}]")
    models = NodeModels(dialect, model.weight, states, of_states, offsets, largest, vector)
    if given.n_classes > 2:
        return sums_of_many(given.layers, routes, models, roots)
    second = sums_of_two(routes, models, roots, 1)
    if isinstance(model, TreeModel):
        return [sums_of_two(routes, models, roots, 0), second]
    whole = dialect.double(_weight_of_trees(model))
    return [[f"{whole} - (", *indented(second), ")"], second]


def _weight_of_trees(forest: ForestModel) -> float:
    # The last node of a tree has no children.
    last = np.append(forest.roots[1:], len(forest.attribute)) - 1
    return float(weight_so_far(forest)[last].sum())


def _leaves_decide(tree: TreeModel) -> bool:
    return not tree.weight[tree.attribute >= 0].any()


def _attribute_names(known: Attributes, given: Any) -> list[str]:
    """What the columns of the attributes are called in the database."""
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
        return _checked_names("attributes", [given.get(name, name) for name in names])
    found = _checked_names("attributes", given)
    if len(found) != len(names):
        raise ValueError(
            f"attributes names {len(found)} columns, but the calibrator was fitted with "
            f"{len(names)}; give one name an attribute, or a dict of those that differ"
        )
    return found


def _score_names(calibrator: Any, labels: Sequence[Any], given: Any) -> list[str]:
    """What the columns of the scores are called in the database."""
    n_scores, m = calibrator.n_scores_, len(labels)
    if given is None:
        if n_scores == 1:
            return ["score"]
        names = [f"score_{label}" for label in labels]
        if n_scores == m:
            return names
        return [f"{name}_{k + 1}" for k in range(n_scores // m) for name in names]
    found = _checked_names("scores", [given] if isinstance(given, str) else given)
    # One column of two says it all, unless the node models were fitted to both.
    may_differ = m == 2 and calibrator.score_type_ == "probability"
    may_differ &= getattr(calibrator, "extremes_", "clip") == "clip"
    if len(found) != n_scores and not (may_differ and {len(found), n_scores} == {1, 2}):
        raise ValueError(
            f"scores names {len(found)} columns, but the calibrator was fitted with {n_scores}"
        )
    return found


def _checked_names(argument: str, names: Any) -> list[str]:
    found = list(names) if isinstance(names, list | tuple | np.ndarray) else [names]
    for name in found:
        if not isinstance(name, str):
            raise TypeError(
                f"{argument} must be names of columns, got {reprlib.repr(name)}; "
                "give a list of strings"
            )
    return [str(name) for name in found]
