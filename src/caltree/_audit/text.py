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
    off = [each for each in audit.regions if each.is_off]
    return [f"Regions: {words.regions_sentence(audit)}", *(_table(audit, off) if off else [])]


def _table(audit: Audit, findings: Sequence[Finding]) -> list[str]:
    several = audit.event is None
    rows = [
        [
            _cut(f"{each.label}: {each.name}" if several else each.name),
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
    widths = [max(map(len, column)) for column in zip(words.COLUMNS, *rows, strict=True)]
    return ["  " + _line(row, widths) for row in (words.COLUMNS, *rows)]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    name, *numbers = cells
    first, *others = widths
    texts = [f"{cell:>{width}}" for cell, width in zip(numbers[:3], others[:3], strict=True)]
    texts += [f"{cell:<{width}}" for cell, width in zip(numbers[3:], others[3:], strict=True)]
    return "  ".join([f"{name:<{first}}", *texts]).rstrip()


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
