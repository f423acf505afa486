"""The 32 data sets of the paper: from a folder of ARFF files, or from OpenML; and other files."""

from __future__ import annotations

import gzip
import os
import warnings
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from http.client import HTTPException
from pathlib import Path
from typing import Any, TextIO
from urllib.error import URLError

import numpy as np

from .._inputs.parameters import check_choice
from .data import DataSet, Table, require, to_data_set
from .generators import led24
from .published import sizes

NAMES = tuple(sizes())
"""The names of the data sets, in the order of the paper."""

_NUMERIC = ("NUMERIC", "REAL", "INTEGER")
_MOST_CLASSES = 50


@dataclass(frozen=True)
class _Source:
    """The source of a data set, and how its columns are used."""

    openml: int | None = None
    openml_name: str = ""
    uci: str = ""
    """The title in the UCI repository, where we know of no copy on OpenML."""
    class_attribute: str = ""
    """If it is not the last in files of the data set."""
    drop: tuple[str, ...] = ()
    """Columns that only identify the rows."""
    threshold: int | None = None
    """Two classes are made of a number: below it, and the rest."""
    note: str = ""


_SOURCES = {
    "audiology": _Source(7, "audiology"),
    "bankruptcy": _Source(uci="Polish Companies Bankruptcy (the file 3year.arff)"),
    "colposcopy": _Source(uci="Quality Assessment of Digital Colposcopies (all three files)"),
    "credit-rating": _Source(29, "credit-approval"),
    "cylinder-bands": _Source(6332, "cylinder-bands"),
    "german-credit": _Source(31, "credit-g"),
    "hand-postures": _Source(uci="MoCap Hand Postures", class_attribute="Class"),
    "htru2": _Source(45558, "Pulsar-Dataset-HTRU2"),
    "kr-vs-kp": _Source(3, "kr-vs-kp"),
    "led24": _Source(note="The rows are generated; those of the paper were others."),
    "mfeat-factors": _Source(12, "mfeat-factors"),
    "mfeat-fourier": _Source(14, "mfeat-fourier"),
    "mfeat-karhunen": _Source(16, "mfeat-karhunen"),
    "mfeat-morph": _Source(18, "mfeat-morphological"),
    "mfeat-pixel": _Source(20, "mfeat-pixel"),
    "mice-protein": _Source(40966, "MiceProtein", drop=("MouseID",)),
    "news-popularity": _Source(42724, "OnlineNewsPopularity", drop=("url",), threshold=1400),
    "nursery": _Source(26, "nursery"),
    "optdigits": _Source(28, "optdigits"),
    "page-blocks": _Source(30, "page-blocks"),
    "pendigits": _Source(32, "pendigits"),
    "phishing": _Source(46963, "website_phishing"),
    "pima-diabetes": _Source(37, "diabetes"),
    "segment": _Source(36, "segment"),
    "shuttle": _Source(40685, "shuttle"),
    "sick": _Source(38, "sick"),
    "spambase": _Source(44, "spambase"),
    "taiwan-credit": _Source(42477, "default-of-credit-card-clients", drop=("ID", "id")),
    "tic-tac-toe": _Source(50, "tic-tac-toe"),
    "vote": _Source(56, "vote"),
    "vowel": _Source(307, "vowel"),
    "yeast": _Source(181, "yeast"),
}


def load(name: str, data_dir: str | os.PathLike[str] | None = None) -> DataSet:
    """Load a data set of the paper, or any other of a folder.

    Copies of the data sets differ, and not all are exactly the paper's; what is known to differ
    is in the `notes` of the result.

    The folder `data_dir` has the file ``<name>.arff`` or ``<name>.arff.gz``, the class as its last
    attribute. Without it the data set comes from OpenML, once, and then from scikit-learn's cache
    (``sklearn.datasets.get_data_home``). The rows of led24 are generated, unless the folder has
    them. A file of the folder that is none of the paper's is read in the same way, as it is.

    Examples
    --------
    >>> led24 = load("led24")
    >>> led24.X.shape, led24.classes[:3]
    ((5000, 24), ('0', '1', '2'))
    >>> led24.notes
    ('The rows are generated; those of the paper were others.',)
    """
    if data_dir is None:
        name = check_choice("name", name, NAMES)
    require("pandas")  # before anything is downloaded
    source = _source(name)
    path = _locate(name, data_dir)
    if path is None and name == "led24":
        return _note_differences(led24(), source)
    if path is None:
        table, where = _fetch(name, source), f"OpenML's data set {source.openml}"
    else:
        table, where = _read_arff(path, source), str(path)
    return _note_differences(to_data_set(name, _with_classes(table, source, where), where), source)


def check_available(names: Sequence[str], data_dir: str | os.PathLike[str] | None = None) -> None:
    """Raise FileNotFoundError, which names them all, if `load` cannot know where data sets are.

    Nothing is read or downloaded.
    """
    problems = {}
    for name in names:
        try:
            _locate(name, data_dir)
        except (FileNotFoundError, ValueError) as error:
            problems[name] = str(error)
    if problems:
        first = next(iter(problems.values()))
        several = f"missing data sets: {', '.join(problems)}; of the first: "
        raise FileNotFoundError((several if len(problems) > 1 else "") + first)


def _source(name: str) -> _Source:
    """The source of a data set; of one that is not of the paper all that is known is the file."""
    return _SOURCES.get(name, _Source())


def _note_differences(data_set: DataSet, source: _Source) -> DataSet:
    """Add a note for each difference from the paper, if it has the data set."""
    if data_set.name not in NAMES:
        return data_set
    size = sizes()[data_set.name]
    n_rows, n_attributes = data_set.X.shape
    counts = (
        (n_rows, size.rows, "rows"),
        (n_attributes, size.attributes, "attributes"),
        (len(data_set.classes), size.classes, "classes"),
    )
    differences = [
        f"{found} {what}; the paper has {published}."
        for found, published, what in counts
        if found != published
    ]
    notes = (*data_set.notes, *differences, *([source.note] if source.note else []))
    return replace(data_set, notes=notes)


def _with_classes(table: Table, source: _Source, where: str) -> Table:
    """Make the class nominal, if it is a number."""
    if table.categories[-1] is not None:
        return table
    numbers = table.values[:, -1]
    distinct = np.unique(numbers[~np.isnan(numbers)])
    classes: tuple[str, ...]
    if source.threshold is not None:
        classes = (f"<{source.threshold}", f">={source.threshold}")
        codes = (numbers >= source.threshold).astype(np.float64)
    elif len(distinct) <= _MOST_CLASSES and (np.trunc(distinct) == distinct).all():
        classes = tuple(f"{number:.0f}" for number in distinct)
        codes = np.searchsorted(distinct, numbers).astype(np.float64)
    else:
        raise ValueError(
            f"{where} has the numeric attribute {table.names[-1]!r} as its class, with "
            f"{len(distinct)} values; make a nominal attribute the last"
        )
    codes[np.isnan(numbers)] = np.nan
    values = np.column_stack([table.values[:, :-1], codes])
    return Table(table.names, [*table.categories[:-1], classes], values)


def _locate(name: str, data_dir: str | os.PathLike[str] | None) -> Path | None:
    """The file of a data set; None where OpenML has it or its rows can be generated."""
    if data_dir is not None:
        return _find(name, Path(data_dir))
    if _SOURCES[name].openml is None and name != "led24":
        raise ValueError(
            f"{name} is not on OpenML as far as we know; give a folder as data_dir, "
            f"{_from_uci(name)}"
        )
    return None


def _find(name: str, folder: Path) -> Path | None:
    """The file of a data set; None where its rows can be generated instead."""
    candidates = [folder / f"{name}.arff", folder / f"{name}.arff.gz"]
    for path in candidates:
        if path.is_file():
            return path
    if name == "led24":
        return None
    message = f"data_dir has neither {candidates[0]} nor {candidates[1].name}"
    if name not in NAMES:
        raise FileNotFoundError(message)
    otherwise = "leave data_dir out to load it from OpenML"
    remedy = _from_uci(name) if _SOURCES[name].openml is None else otherwise
    raise FileNotFoundError(f"{message}; {remedy}")


def _read_arff(path: Path, source: _Source) -> Table:
    arff = require("arff")
    try:
        with _open_text(path) as file:
            content = arff.load(file, encode_nominal=True)
    except (arff.ArffException, UnicodeDecodeError, EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{path} cannot be read as ARFF: {error}") from None
    attributes = dict(content["attributes"])
    if len(attributes) < 2:
        raise ValueError(f"{path} has {len(attributes)} columns; it needs attributes and a class")
    names = list(attributes)
    known = source.class_attribute in names
    columns = _columns(names, source, source.class_attribute if known else names[-1])
    kinds = {names[j]: attributes[names[j]] for j in columns}
    for name, kind in kinds.items():
        if isinstance(kind, str) and kind not in _NUMERIC:
            raise ValueError(
                f"{path} has the attribute {name!r} of type {kind}; make it numeric or nominal, "
                "or leave it out"
            )
    categories = [None if isinstance(kind, str) else tuple(kind) for kind in kinds.values()]
    rows = [[row[j] for j in columns] for row in content["data"]]
    values = np.array(rows, dtype=np.float64).reshape(len(rows), len(columns))
    return Table(list(kinds), categories, values)


def _open_text(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")


def _columns(names: Sequence[str], source: _Source, class_attribute: str) -> list[int]:
    """The columns to use, that of the class last."""
    used = [j for j, name in enumerate(names) if name not in (*source.drop, class_attribute)]
    return [*used, names.index(class_attribute)]


def _from_uci(name: str) -> str:
    return (
        f"download {_SOURCES[name].uci} from the UCI repository (archive.ics.uci.edu) and save it "
        f"there as {name}.arff, with the class as the last attribute"
    )


def _fetch(name: str, source: _Source) -> Table:
    from sklearn.datasets import fetch_openml

    try:
        with warnings.catch_warnings():
            # It tries again, and if that does not help either, the error says enough.
            warnings.filterwarnings("ignore", "A network error occurred|Invalid cache")
            # Only in this form are the categories those declared, in their declared order.
            bunch = fetch_openml(
                data_id=source.openml, target_column=None, as_frame=False, parser="liac-arff"
            )
        return _from_bunch(bunch, source)
    except (URLError, TimeoutError, ConnectionError, HTTPException) as error:
        raise ConnectionError(
            f"{name} could not be fetched from OpenML ({error}); check the network, or give a "
            "folder of ARFF files as data_dir"
        ) from None
    except ValueError as error:
        raise ValueError(
            f"OpenML's data set {source.openml} cannot serve as {name} ({error}); give a folder "
            "of ARFF files as data_dir"
        ) from None


def _from_bunch(bunch: Any, source: _Source) -> Table:
    """The table of a data set of OpenML that scikit-learn has read."""
    found, names = bunch.details["name"], bunch.feature_names
    if found.lower() != source.openml_name.lower():
        raise ValueError(f"it is {found!r} instead of {source.openml_name!r}")
    class_attribute = bunch.details.get("default_target_attribute", "none")
    if class_attribute not in names:
        raise ValueError(f"its class, {class_attribute}, is not among its columns")
    columns = _columns(names, source, class_attribute)
    categories = [bunch.categories.get(names[j]) for j in columns]
    values = np.asarray(bunch.data, dtype=np.float64)[:, columns]
    return Table([names[j] for j in columns], categories, values)
