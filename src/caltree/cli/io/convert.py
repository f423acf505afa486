"""Columns of a file as numbers, labels or categories, whatever type the file gives them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..._inputs.arrays import Floats
from ..._inputs.attributes import Attribute
from ..errors import CommandError

_MISSING = pa.array(["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "None"])
"""Texts that stand for a missing number; among text only an empty field is missing."""
_BAD_SCORE = (
    "drop such rows or fill in a finite number; caltree apply can pass them as null (--on-bad-row)"
)
_TRUTH = {"true": True, "false": False}
_ZERO_AND_ONE = {"0": False, "1": True, "0.0": False, "1.0": True}
_TIME = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?[AaPp][Mm])?( ?(Z|UTC|[+-]\d{2}:?\d{2}))?"
_DATES = (
    rf"^\s*((\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}|\d{{1,2}}[-/.]\d{{1,2}}[-/.]\d{{4}})"
    rf"([ T]{_TIME})?|\d{{1,2}}:\d{{2}}:\d{{2}}([.,]\d+)?)\s*$"
)
"""Dates with or without a time, and times with seconds."""
_DECIMAL_COMMA = r"^\s*[+-]?\d+(,\d+)?\s*$"


_NO_ATTRIBUTE = "leave it out with --exclude, or turn it into numbers"


@dataclass(frozen=True)
class Where:
    """A column of a file, and the number of the first row at hand."""

    file: str
    column: str
    first_row: int = 1

    def complain(self, row: int, found: str, remedy: str) -> CommandError:
        """An error about one value, `row` being its place among the rows at hand."""
        return CommandError(
            f"{self.file}: the column {self.column!r} holds {found} in row {self.first_row + row}; "
            f"{remedy}"
        )


def numbers(column: Any, where: Where) -> Floats:
    """The values as numbers, NaN for missing ones."""
    column = _decode(column)
    kind = column.type
    if _is_text(kind):
        column = _parse(column, where)
    elif not _is_number(kind):
        raise _wrong_type(kind, where)
    column = pc.cast(column, pa.float64(), safe=False)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def texts(column: Any, where: Where) -> Any:
    """The values as text, null for missing ones."""
    column = _decode(column)
    kind = column.type
    if not (_is_text(kind) or _is_number(kind) or pa.types.is_date(kind)):
        raise _wrong_type(kind, where)
    return column.cast(pa.string())


def booleans(column: Any, where: Where) -> Any:
    """The values as truth values; text is true, false, 1 or 0, in capitals or not."""
    column = _decode(column)
    if not _is_text(column.type):
        found = numbers(column, where)
        wrong = ~np.isin(found, (0.0, 1.0)) & ~np.isnan(found)
        values: list[Any] = [None if np.isnan(value) else bool(value) for value in found]
    else:
        words = [None if word is None else word.strip().lower() for word in column.to_pylist()]
        known = _TRUTH | _ZERO_AND_ONE
        wrong = np.array([word is not None and word not in known for word in words], dtype=bool)
        values = [None if word is None else known.get(word) for word in words]
    if wrong.any():
        row = int(wrong.argmax())
        raise where.complain(row, repr(column[row].as_py()), "it should be true or false")
    return pa.array(values, pa.bool_())


def as_learned(column: Any, attribute: Attribute, where: Where) -> Any:
    """The values, of the type that the model learned."""
    categories = attribute.categories
    if categories is None:
        is_ready = pa.types.is_floating(column.type) or pa.types.is_integer(column.type)
        return column if is_ready else pa.array(_numbers_or_truth(column, where))
    return as_kind(column, categories, where)


def as_kind(column: Any, like: Sequence[Any], where: Where) -> Any:
    """The values as text, truth values or numbers, like the ones given."""
    if all(isinstance(value, str) for value in like):
        return texts(column, where)
    if all(isinstance(value, bool) for value in like):
        return booleans(column, where)
    column = _decode(column)
    if pa.types.is_integer(column.type):
        return column
    return pa.array(numbers(column, where))


def _numbers_or_truth(column: Any, where: Where) -> Any:
    """The values as numbers; true and false are 1 and 0, as a column of truth values is."""
    try:
        return numbers(column, where)
    except CommandError:
        if not _are_words_of_truth(_decode(column)):
            raise
        return numbers(booleans(column, where), where)


def guess_type(column: Any, where: Where) -> Any:
    """Text as numbers or truth values, if every value is one; as it is otherwise."""
    try:
        return pa.array(numbers(column, where))
    except CommandError:
        return booleans(column, where) if _are_words_of_truth(column) else _words(column, where)


def categories(column: Any, where: Where, *, is_text: bool) -> Any:
    """The values of a nominal attribute, whatever they look like.

    Where nothing has a type, they are numbers if each is written as that number would be, as 5 is
    and 05 is not: so the categories are those of a column of numbers.
    """
    found = _decode(column)
    if pa.types.is_date(found.type):
        return texts(column, where)
    if not is_text:
        return texts(column, where) if _is_text(found.type) else as_given(column, where)
    words = pc.unique(found.drop_null()).to_pylist()
    for kind, plain in ((pa.int64(), int), (pa.float64(), float)):
        if words and all(_is_written_as(word, plain) for word in words):
            return found.cast(kind)
    return texts(column, where)


def as_given(column: Any, where: Where) -> Any:
    """A typed column for fitting: text, truth values and numbers stay what they are."""
    kind = _decode(column).type
    if pa.types.is_null(column.type) or pa.types.is_decimal(kind):
        return pa.array(numbers(column, where))
    if _is_text(kind):
        return _words(column, where)
    if not _is_number(kind):
        raise CommandError(
            f"{where.file}: the column {where.column!r} is of type {kind}; {_NO_ATTRIBUTE}"
        )
    return column


def _words(column: Any, where: Where) -> Any:
    """Text for fitting, unless it is something else that is only written as text."""
    found = texts(column, where)
    words = pc.unique(found.drop_null())
    for pattern, telling, what, remedy in (
        (_DATES, "", "dates or times", _NO_ATTRIBUTE),
        (_DECIMAL_COMMA, ",", "numbers with a comma", "write them with a decimal point"),
    ):
        examples = words.filter(pc.match_substring(words, telling))
        if len(examples) and pc.all(pc.match_substring_regex(words, pattern)).as_py():
            raise CommandError(
                f"{where.file}: the column {where.column!r} holds {what}, such as "
                f"{examples[0].as_py()!r}; {remedy}; or name it in --categorical, if each is a "
                "category"
            )
    return found


def labels(column: Any, where: Where, *, is_text: bool) -> npt.NDArray[Any]:
    """Labels for fitting: whole numbers if all of them are, truth values, or text."""
    column = _decode(column)
    _refuse_missing(column, where)
    if pa.types.is_boolean(column.type):
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=bool)
    if _is_text(column.type) and not is_text:
        return np.array(column.to_pylist(), dtype=object)
    if _is_text(column.type) and _are_words_of_truth(column):
        return np.array(booleans(column, where).to_pylist(), dtype=bool)
    try:
        found = numbers(column, where)
    except CommandError:
        return np.array(texts(column, where).to_pylist(), dtype=object)
    whole = np.isfinite(found) & (np.trunc(found) == found)
    if _is_text(column.type) and np.isnan(found).any():
        return np.array(column.to_pylist(), dtype=object)
    if not whole.all():
        row = int((~whole).argmax())
        raise where.complain(
            row, f"{found[row]:g}", "a label is a word or a whole number; give --label another"
        )
    return found.astype(np.int64)


def known_labels(column: Any, classes: Sequence[Any], where: Where) -> npt.NDArray[Any]:
    """Labels as the classes of a model, all of them known to it."""
    _refuse_missing(_decode(column), where)
    found = as_kind(column, classes, where).to_numpy(zero_copy_only=False)
    known = np.array(classes)
    unknown = ~np.isin(found, known.astype(found.dtype))
    if unknown.any():
        row = int(unknown.argmax())
        raise where.complain(
            row,
            f"the label '{found[row]}'",
            f"the model knows {', '.join(map(str, classes))}; drop such rows or fit it again",
        )
    return np.asarray(found.astype(known.dtype))


def scores(
    columns: Sequence[Any], places: Sequence[Where], score_type: str, *, check: bool = True
) -> Floats:
    """The scores side by side: none missing, none infinite, probabilities from 0 to 1.

    Without `check` any number will do, and NaN is a missing one.
    """
    matrix = np.empty((len(columns[0]), len(columns)), order="F")
    for j, (column, where) in enumerate(zip(columns, places, strict=True)):
        matrix[:, j] = values = numbers(column, where)
        if not check:
            continue
        if not np.isfinite(values).all():
            row = int((~np.isfinite(values)).argmax())
            found = "no score" if np.isnan(values[row]) else "an infinite score"
            raise where.complain(row, found, _BAD_SCORE)
        if score_type == "probability" and not _are_probabilities(values):
            row = int(((values < 0.0) | (values > 1.0)).argmax())
            raise where.complain(
                row,
                f"the score {values[row]:g}",
                "a probability is from 0 to 1; if the scores are log-odds or margins, fit with "
                "--score-type logit or margin",
            )
    return matrix


def _are_probabilities(values: Floats) -> bool:
    return bool(values.min(initial=0.0) >= 0.0 and values.max(initial=1.0) <= 1.0)


def weights(column: Any, where: Where) -> Floats:
    """Weights: none missing, infinite or negative."""
    found = numbers(column, where)
    wrong = ~(np.isfinite(found) & (found >= 0.0))
    if wrong.any():
        row = int(wrong.argmax())
        what = "no weight" if np.isnan(found[row]) else f"the weight {found[row]:g}"
        raise where.complain(row, what, "a weight is at least 0, which leaves the row out")
    return found


def groups(column: Any, where: Where) -> npt.NDArray[Any]:
    """Groups of rows that belong together: none missing."""
    column = _decode(column)
    found = np.asarray(column.to_numpy(zero_copy_only=False))
    missing = np.asarray(column.is_null(nan_is_null=True).to_numpy(zero_copy_only=False))
    if missing.any():
        remedy = "drop the rows without one, or give each of them a group of its own"
        raise where.complain(int(missing.argmax()), "no group", remedy)
    return found


def check_finite(column: Any, where: Where) -> None:
    """Refuse an infinite number among attributes to learn from."""
    if pa.types.is_floating(column.type):
        infinite = np.isinf(column.to_numpy(zero_copy_only=False))
        if infinite.any():
            row = int(infinite.argmax())
            raise where.complain(row, "infinity", "leave the field empty or give a finite number")


def _refuse_missing(column: Any, where: Where) -> None:
    if column.null_count:
        row = int(column.is_null().to_numpy(zero_copy_only=False).argmax())
        raise where.complain(row, "no label", "drop the rows without one")


def _parse(column: Any, where: Where) -> Any:
    text = pc.utf8_trim_whitespace(column.cast(pa.string()))
    text = pc.if_else(pc.is_in(text, value_set=_MISSING), pa.scalar(None, pa.string()), text)
    try:
        return text.cast(pa.float64())
    except pa.ArrowInvalid:
        row = next(row for row, word in enumerate(text) if not _is_numeral(word))
        raise where.complain(
            row, f"{column[row].as_py()!r}, which is not a number,", "correct it or leave it empty"
        ) from None


def _are_words_of_truth(column: Any) -> bool:
    """Whether all values of a column of text are true or false, in capitals or not."""
    words = pc.unique(column.drop_null()).to_pylist() if _is_text(column.type) else []
    return bool(words) and all(word.strip().lower() in _TRUTH for word in words)


def _is_written_as(word: str, kind: type[int] | type[float]) -> bool:
    try:
        number = kind(word)
    except ValueError:
        return False
    return str(number) == word and abs(number) < 2**63


def _is_numeral(word: Any) -> bool:
    try:
        word.cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def _decode(column: Any) -> Any:
    if pa.types.is_null(column.type):
        return column.cast(pa.string())
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _is_text(kind: Any) -> bool:
    return str(kind) in ("string", "large_string", "string_view")


def _is_number(kind: Any) -> bool:
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_boolean(kind)
    )


def _wrong_type(kind: Any, where: Where) -> CommandError:
    return CommandError(
        f"{where.file}: the column {where.column!r} is of type {kind}; turn it into numbers or text"
    )
