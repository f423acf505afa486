"""Short names for long expressions, in layers: each is made of the ones before."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from .dialects import Dialect, unused_name
from .text import Lines, indent, separate, separate_blocks


@dataclass
class Layers:
    """The named parts of the probabilities of all classes."""

    dialect: Dialect
    taken: list[str]
    """The names of columns, which no part may have."""
    valid: str
    """The condition under which there are probabilities; they are NULL otherwise."""
    layers: list[dict[str, str]] = field(default_factory=list)
    _name_of: dict[tuple[int, str], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Few tables have columns that begin like this.
        self.source = unused_name("_s", self.taken)

    def name(self, layer: int, wanted: str, value: str) -> str:
        """Give a short name to an expression of names in the layers before; equal ones share it."""
        while len(self.layers) <= layer:
            self.layers.append({})
        known = self._name_of.get((layer, value))
        if known is not None:
            return known
        cleaned = "_" + re.sub("[^0-9A-Za-z_]", "_", wanted)
        others = [*self.taken, *(name for names in self.layers for name in names)]
        name = unused_name(cleaned, others)
        self.layers[layer][name] = value
        self._name_of[layer, value] = f"{self.source}.{name}"
        return self._name_of[layer, value]

    def expression(self, body: Lines) -> Lines:
        """Return an expression of the names as one that stands alone."""
        layers = self._needed_layers([body])
        if not layers:
            return [f"CASE WHEN {self.valid} THEN", *indent(body), "END"]
        if self.dialect.name == "duckdb":
            return self._as_lambdas(layers, body)
        first, *others = self._subqueries(layers)
        lines = ["SELECT", *indent(body), f"FROM {first}", *others, f"WHERE {self.valid}"]
        return ["(", *indent(lines), ")"]

    def query(
        self, table: str, columns: Sequence[str] | None, bodies: Sequence[Lines], names: Lines
    ) -> Lines:
        """Return a whole query, in which all classes share the layers."""
        layers = self._needed_layers(bodies)
        if not layers or (self.dialect.name == "sqlite" and columns is None):
            # SQLite cannot drop the shared columns from the result again.
            listed = [self.expression(body) for body in bodies]
            before: Lines = []
            after = [f"FROM {table}"]
            kept = ["*"] if columns is None else list(columns)
        else:
            guard = f"CASE WHEN {self.valid} THEN"
            listed = [[guard, *indent(body), "END"] for body in bodies]
            before, after = self._shared_sources(layers, table)
            kept = self._kept(layers, columns)
        blocks = [[column] for column in kept]
        blocks += [_with_name(lines, name) for lines, name in zip(listed, names, strict=True)]
        return [*before, "SELECT", *indent(separate_blocks(blocks)), *after]

    def _needed_layers(self, bodies: Sequence[Lines]) -> list[dict[str, str]]:
        """Return the layers without the names that nothing needs."""
        pattern = re.compile(rf"\b{self.source}\.(\w+)")
        needed = {name for body in bodies for line in body for name in pattern.findall(line)}
        used: list[dict[str, str]] = []
        for layer in reversed(self.layers):
            kept = {name: value for name, value in layer.items() if name in needed}
            needed |= {name for value in kept.values() for name in pattern.findall(value)}
            if kept:
                used.insert(0, kept)
        return used

    def _subqueries(self, layers: Sequence[dict[str, str]]) -> Lines:
        """Return the layers as subqueries of nothing but the row at hand."""
        # PostgreSQL would put the long expressions back for their names.
        barrier = ["OFFSET 0"] if self.dialect.name == "postgresql" else []
        lines: Lines = []
        for layer in layers:
            before = [f"{self.source}.*"] if lines else []
            inner = [f"FROM {lines[0]}", *lines[1:]] if lines else []
            fields = separate([*before, *_with_names(layer)])
            select = ["SELECT", *indent(fields), *inner, *barrier]
            lines = ["(", *indent(select), f") AS {self.source}"]
        return lines

    def _as_lambdas(self, layers: Sequence[dict[str, str]], body: Lines) -> Lines:
        """Return the layers as lists of one struct: of subqueries DuckDB would make joins."""
        first = separate([f"'{name}': {value}" for name, value in layers[0].items()])
        lines = [f"CASE WHEN {self.valid} THEN [{{", *indent(first), "}] END"]
        for layer in layers[1:]:
            fields = separate([self.source, *(f"{n} := {value}" for n, value in layer.items())])
            lines = self._transform(lines, ["struct_insert(", *indent(fields), ")"])
        *lines, last = self._transform(lines, body)
        return [*lines, f"{last}[1]"]

    def _transform(self, given: Lines, body: Lines) -> Lines:
        *start, end = given
        inner = [*start, f"{end},", f"lambda {self.source}:", *indent(body)]
        return ["list_transform(", *indent(inner), ")"]

    def _shared_sources(self, layers: Sequence[dict[str, str]], table: str) -> tuple[Lines, Lines]:
        """Return the lines before and after the SELECT of a query."""
        if self.dialect.name == "postgresql":
            lines = self._subqueries(layers)
            return [], [
                f"FROM {table} AS {self._row}",
                f"CROSS JOIN LATERAL {lines[0]}",
                *lines[1:],
            ]
        if self.dialect.name == "sqlite":
            return self._common_tables(layers, table)
        lines = [table]
        for layer in layers:
            fields = indent(separate(["*", *_with_names(layer)]))
            select = ["SELECT", *fields, f"FROM {lines[0]}", *lines[1:]]
            lines = ["(", *indent(select), f") AS {self.source}"]
        return [], [f"FROM {lines[0]}", *lines[1:]]

    def _common_tables(self, layers: Sequence[dict[str, str]], table: str) -> tuple[Lines, Lines]:
        blocks, origin = [], table
        for number, layer in enumerate(layers, start=1):
            name = unused_name(f"_layer_{number}", [table.strip('"')])
            fields = separate(["*", *_with_names(layer)])
            select = ["SELECT", *indent(fields), f"FROM {origin}"]
            blocks.append([f"{name} AS MATERIALIZED (", *indent(select), ")"])
            origin = f"{name} AS {self.source}"
        first, *others = separate_blocks(blocks)
        return [f"WITH {first}", *others], [f"FROM {origin}"]

    @property
    def _row(self) -> str:
        return unused_name("_t", [*self.taken, self.source])

    def _kept(self, layers: Sequence[dict[str, str]], columns: Sequence[str] | None) -> Lines:
        """Return the columns of the table that stay."""
        if self.dialect.name == "postgresql":
            return [f"{self._row}.{column}" for column in columns or ["*"]]
        if columns is not None:
            return list(columns)
        names = ", ".join(name for layer in layers for name in layer)
        word = "EXCLUDE" if self.dialect.name == "duckdb" else "EXCEPT"
        return [f"{self.source}.* {word} ({names})"]


def _with_names(layer: dict[str, str]) -> Lines:
    return [f"{value} AS {name}" for name, value in layer.items()]


def _with_name(lines: Lines, name: str) -> Lines:
    return [*lines[:-1], f"{lines[-1]} AS {name}"]
