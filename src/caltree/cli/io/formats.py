"""Which format a file has, by its ending or by its first bytes."""

from __future__ import annotations

from typing import NamedTuple

from ..errors import CommandError

CHOICES = ("csv", "parquet", "arrow", "jsonl")
"""The values of `--format`; an Arrow file may be of either kind."""

STREAM = "arrow stream"
"""Arrow without the table of contents at the end."""

STANDARD = "-"

_ENDINGS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".arrows": STREAM,
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
_TAB = "\t"
_GZIP = b"\x1f\x8b"


class Format(NamedTuple):
    """A format, whether it is compressed as a whole, and what stands between fields of CSV."""

    name: str
    compressed: bool = False
    delimiter: str = ","


def format_of_path(path: str, given: str | None, option: str) -> Format:
    """The format of a file: the given one, or that of its ending."""
    lower = path.lower()
    compressed = lower.endswith(".gz")
    plain = lower.removesuffix(".gz")
    found = next((name for end, name in _ENDINGS.items() if plain.endswith(end)), None)
    if given is not None:
        # Both kinds of Arrow files go by one name.
        name = found if found is not None and found.startswith(given) else given
    elif found is not None:
        name = found
    else:
        raise CommandError(
            f"cannot tell the format of {path}: its name should end in "
            f"{', '.join(_ENDINGS)} (those of text may be followed by .gz); rename it or use "
            f"{option}"
        )
    if compressed and name not in ("csv", "jsonl"):
        raise CommandError(f"{path} cannot be {name} and compressed as a whole; decompress it")
    return Format(name, compressed, _TAB if plain.endswith(".tsv") else ",")


def is_table_name(path: str) -> bool:
    """Whether the ending of a name is that of a table."""
    return path.lower().removesuffix(".gz").endswith(tuple(_ENDINGS))


def format_of_bytes(start: bytes) -> str:
    """The format by the first bytes; CSV if they are of no other."""
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith(b"ARROW1"):
        return "arrow"
    if start.startswith(b"\xff\xff\xff\xff"):
        return STREAM
    return "jsonl" if start.lstrip().startswith(b"{") else "csv"


def is_compressed(start: bytes) -> bool:
    """Whether bytes are the beginning of a gzip file."""
    return start.startswith(_GZIP)
