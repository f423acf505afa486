"""An audit as HTML: a fragment for notebooks, and a page of its own."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from .._fitted.names import format_count, percent
from . import words
from .result import Audit, Finding

STYLE = """\
.caltree-audit { font: 15px/1.5 system-ui, sans-serif; max-width: 1080px; \
font-variant-numeric: tabular-nums; }
.caltree-audit table { border-collapse: collapse; margin: 6px 0 18px; }
.caltree-audit th, .caltree-audit td { padding: 3px 10px; text-align: right; \
border-bottom: 1px solid #8884; white-space: nowrap; }
.caltree-audit th:first-child, .caltree-audit td:first-child, .caltree-audit td.words { \
text-align: left; white-space: normal; }
.caltree-audit h2 { font-size: 1.15em; margin: 18px 0 4px; }
.caltree-audit .wide { overflow-x: auto; }
.caltree-audit th:first-child, .caltree-audit td:first-child { min-width: 7em; }
.caltree-audit td.words { min-width: 13em; }
.caltree-audit .off { color: #b3261e; font-weight: 600; }
.caltree-audit .soft { opacity: 0.75; font-size: 0.9em; }
"""


def to_page(audit: Audit) -> str:
    """A page that needs no other file and no network."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<title>Calibration audit</title>\n"
        "<style>:root { color-scheme: light dark; } body { margin: 24px; }</style>\n"
        f"</head>\n<body>\n{to_fragment(audit)}\n</body>\n</html>\n"
    )


def to_fragment(audit: Audit) -> str:
    """The audit as one element, with its style."""
    parts = [
        f"<style>{STYLE}</style>",
        f"<h1>{escape(words.headline(audit))}</h1>",
        f"<p>{escape(words.subject(audit))}</p>",
        bullet_list(words.whole_sentences(audit)),
        "<h2>The loss in three parts</h2>",
        *(_parts(audit, name) for name in words.LOSSES),
        "<h2>Groups</h2>",
        _table(audit, audit.groups),
        "<h2>Regions</h2>",
        f"<p>{escape(words.regions_sentence(audit))}</p>",
        _table(audit, audit.regions) if audit.regions else "",
        "<h2>Measures</h2>",
        bullet_list(words.measures(audit)),
        '<div class="soft">',
        bullet_list([words.adjusted_text(audit), *words.notes(audit)]),
        "</div>",
    ]
    return '<div class="caltree-audit">\n' + "\n".join(parts) + "\n</div>"


def bullet_list(sentences: Sequence[str]) -> str:
    """Sentences as a list."""
    return "<ul>" + "".join(f"<li>{escape(each)}</li>" for each in sentences) + "</ul>"


def _parts(audit: Audit, name: str) -> str:
    parts = audit.parts[name]
    rows = [
        table_row([part, words.part_text(getattr(parts, part)), meaning], words_at=2)
        for part, meaning in words.PARTS.items()
    ]
    title = f"{words.LOSSES[name]} {words.part_text(parts.total)}. {words.verdict_of_parts(parts)}"
    return f"<p>{escape(title)}</p>{_scrolled(rows)}"


def _table(audit: Audit, findings: Sequence[Finding]) -> str:
    several = audit.event is None
    head = "".join(f"<th>{escape(each)}</th>" for each in words.COLUMNS)
    rows = [
        table_row(
            [
                f"{each.label}: {each.name}" if several else each.name,
                format_count(each.n_rows),
                percent(each.predicted),
                words.observed_text(each),
                words.shift_text(each),
                words.p_text(each.adjusted_p_value),
                words.halves_text(each),
                words.verdict_of(each),
            ],
            off=each.is_off,
        )
        for each in findings
    ]
    return _scrolled([f"<tr>{head}</tr>", *rows])


def _scrolled(rows: Sequence[str]) -> str:
    """A table that scrolls by itself on a narrow screen."""
    return f'<div class="wide"><table>{"".join(rows)}</table></div>'


def table_row(cells: Sequence[str], *, off: bool = False, words_at: int | None = None) -> str:
    """A row of a table; its last cell stands out if something is off."""
    texts = []
    for place, cell in enumerate(cells):
        kind = ' class="words"' if place == words_at else ""
        kind = ' class="off"' if off and place == len(cells) - 1 else kind
        texts.append(f"<td{kind}>{escape(cell)}</td>")
    return f"<tr>{''.join(texts)}</tr>"
