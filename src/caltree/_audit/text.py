"""An audit as plain text."""

from __future__ import annotations

from collections.abc import Sequence

from .._fitted.names import SPACE, format_count, percent
from . import words
from .result import Audit, Finding

_LONGEST_NAME = 60


def to_text(audit: Audit) -> str:
    """The whole audit in words."""
    blocks = [
        [f"Audit of {words.subject(audit)}", words.headline(audit)],
        words.whole_sentences(audit),
        *(_parts(audit, name) for name in words.LOSSES),
        ["Groups:", *_table(audit, audit.groups)],
        _regions(audit),
        words.measures(audit),
        [words.adjusted_text(audit), *words.notes(audit)],
    ]
    return "\n\n".join("\n".join(block) for block in blocks).replace(SPACE, " ")


def _parts(audit: Audit, name: str) -> list[str]:
    parts = audit.parts[name]
    lines = [f"{words.LOSSES[name]} {words.part_text(parts.total)}, in three parts:"]
    for part, meaning in words.PARTS.items():
        lines.append(f"  {part:<11}  {words.part_text(getattr(parts, part)):<28}  {meaning}")
    return [*lines, f"  {words.verdict_of_parts(parts)}"]


def _regions(audit: Audit) -> list[str]:
    table = _table(audit, audit.regions) if audit.regions else []
    return [f"Regions: {words.regions_sentence(audit)}", *table]


def _table(audit: Audit, findings: Sequence[Finding]) -> list[str]:
    several = audit.event is None
    rows = [
        [
            f"{each.label}: {each.name}" if several else each.name,
            format_count(each.n_rows),
            percent(each.predicted),
            words.observed_text(each),
            words.shift_text(each),
            words.p_text(each.adjusted_p_value),
            words.halves_text(each),
            words.verdict_of(each),
        ]
        for each in findings
    ]
    # A longer name has a line of its own, above its numbers.
    lines = [line for row in (words.COLUMNS, *rows) for line in _divided(row)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    widths[0] = min(widths[0], _LONGEST_NAME)
    return ["  " + _line(cells, widths) for cells in lines]


def _divided(row: Sequence[str]) -> list[Sequence[str]]:
    name, *numbers = row
    if len(name) <= _LONGEST_NAME:
        return [row]
    return [[name, *("" for _ in numbers)], ["", *numbers]]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    name, *numbers = cells
    first, *others = widths
    texts = [f"{cell:>{width}}" for cell, width in zip(numbers[:3], others[:3], strict=True)]
    texts += [f"{cell:<{width}}" for cell, width in zip(numbers[3:], others[3:], strict=True)]
    return "  ".join([f"{name:<{first}}", *texts]).rstrip()
