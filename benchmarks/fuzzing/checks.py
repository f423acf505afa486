"""The invariants: an error that names an argument, or probabilities that nothing changes."""

from __future__ import annotations

import inspect
import json
import pickle
import re
import sqlite3
import tempfile
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB

import caltree
from caltree import CalibratedClassifier, CalibrationForest
from caltree._fitted.blended import parts_of
from caltree._inputs.indexing import take_rows

from .problems import LARGEST, Problem, Random, one_of

_HERE = str(Path(caltree.__file__).parent)
_LONGEST_MESSAGE = 1000
# Of mutated files: what may take the place of a value.
_MUTATIONS = (
    *(None, True, -1, 0, 1, 2, 10**9, 10**30, -(10**400), 0.5, -1e308, LARGEST, 1e-320),
    *("", "x", "a" * 10_000, [], [[]], [0], {}, {"x": 1}),
)


class InvariantError(Exception):
    """An invariant that does not hold."""


def check_problem(problem: Problem, random: Random) -> str:
    """Check all invariants; return "fitted" or "refused"."""
    fitted = _fit(problem, problem.calibrator)
    if fitted is None:
        return "refused"
    X, scores = problem.X_new, problem.scores_new
    found = _call("predict_proba", fitted, lambda: fitted.predict_proba(X, scores))
    if found is None:
        return "fitted"
    check_probabilities(found, len(scores), len(fitted.classes_))
    _check_same_after_storage(fitted, found, X, scores, random)
    if random.random() < 0.4:
        _check_batches(fitted, found, X, scores)
    if random.random() < 0.05 and "n_jobs" in fitted.get_params():
        again = _fit(problem, clone(problem.calibrator).set_params(n_jobs=2))
        _require(again is not None, "two threads refuse what one fits")
        _require_same(found, again.predict_proba(X, scores), "with two threads")
    if random.random() < 0.3:
        _check_mutated(fitted, X, scores, random)
    if random.random() < 0.03:
        _check_sql(fitted, found, X, scores)
    if random.random() < 0.01:
        _check_onnx(fitted, found, X, scores)
    return "fitted"


def check_classifier(random: Random) -> str:
    """Check a calibrated classifier on rows that any classifier takes."""
    X = random.normal(size=(30, 2))
    y = (X[:, 0] + random.normal(size=30) > 0).astype(int)
    calibrator = one_of(CalibrationForest(2, random_state=0), "tree", "platt", "isotonic")(random)
    ensemble = random.random() < 0.3
    model = CalibratedClassifier(GaussianNB(), calibrator, cv=2, ensemble=ensemble)
    weights = one_of(None, np.ones(30), random.uniform(0.5, 2.0, 30))(random)
    done = _call("fit", model, lambda: model.fit(X, y, sample_weight=weights))
    if done is None:
        return "refused"
    found = model.predict_proba(X)
    check_probabilities(found, 30, 2)
    _require_same(found, pickle.loads(pickle.dumps(model)).predict_proba(X), "after pickling")
    return "fitted"


def check_probabilities(found: Any, n_rows: int, n_classes: int) -> None:
    """Require probabilities of the right shape: finite, from 0 to 1 and of sum 1."""
    _require(np.shape(found) == (n_rows, n_classes), f"probabilities of shape {np.shape(found)}")
    _require(bool(np.isfinite(found).all()), "probabilities that are not finite")
    _require(bool((found >= 0).all() and (found <= 1).all()), "probabilities beyond 0 and 1")
    _require(bool((np.abs(found.sum(axis=1) - 1) < 1e-9).all()), "probabilities of another sum")


def _fit(problem: Problem, calibrator: Any) -> Any:
    model = clone(calibrator)
    rows = problem.X, problem.y, problem.scores
    given = {} if problem.groups is None else {"groups": problem.groups}
    given["sample_weight"] = problem.sample_weight
    return _call("fit", model, lambda: model.fit(*rows, **given))


def _call(name: str, model: Any, action: Callable[[], Any]) -> Any:
    """Return the result, or None if it was refused as it should be."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", RuntimeWarning)
        try:
            return action()
        except (TypeError, ValueError) as error:
            _check_error(name, model, error)
            return None
        except Exception as error:
            raise InvariantError(f"{name} raised {last_lines(error)}") from error


def _check_error(name: str, model: Any, error: Exception) -> None:
    """Require an error of ours that names an argument of the method or of the calibrator."""
    where = traceback.extract_tb(error.__traceback__)[-1].filename
    _require(where.startswith(_HERE), f"{name} raised an error of a library: {last_lines(error)}")
    arguments = [*inspect.signature(getattr(model, name)).parameters, *model.get_params()]
    words = "|".join(map(re.escape, arguments))
    named = re.search(rf"(?<!\w)({words})(?!\w)", str(error))
    _require(named is not None, f"{name} raised an error that names no argument: {error}")
    _require(len(str(error)) < _LONGEST_MESSAGE, f"{name} raised a long error: {error}")


def _check_same_after_storage(fitted: Any, found: Any, X: Any, scores: Any, random: Random) -> None:
    try:
        text = json.dumps(fitted.to_dict(), allow_nan=False)
        again = type(fitted).from_dict(json.loads(text))
        if random.random() < 0.05:
            with tempfile.TemporaryDirectory() as folder:
                fitted.save(Path(folder) / "model.json")
                again = type(fitted).load(Path(folder) / "model.json")
    except Exception as error:
        raise InvariantError(f"it cannot be stored and read: {last_lines(error)}") from error
    _require_same(found, _quietly(again.predict_proba, X, scores), "after storage")
    if random.random() < 0.2:
        copied = pickle.loads(pickle.dumps(fitted))
        _require_same(found, _quietly(copied.predict_proba, X, scores), "after pickling")


def _check_batches(fitted: Any, found: Any, X: Any, scores: Any) -> None:
    half = len(scores) // 2
    # A list of no rows does not tell how many columns it has.
    none = [] if isinstance(X, list) else [slice(0, 0)]
    for some in (*([slice(0, half)] if half else []), slice(half, None), *none):
        part = _quietly(fitted.predict_proba, take_rows(X, some), scores[some])
        _require_same(found[some], part, "in batches")


def _check_mutated(fitted: Any, X: Any, scores: Any, random: Random) -> None:
    stored = json.loads(json.dumps(fitted.to_dict()))
    path = _mutate(stored, random)
    try:
        # What no JSON can hold would not be in a file.
        again = type(fitted).from_dict(json.loads(json.dumps(stored)))
    except ValueError as error:
        _require(len(str(error)) < _LONGEST_MESSAGE, f"a long error of a file: {error}")
        return
    except Exception as error:
        raise InvariantError(f"{path} in a file raised {last_lines(error)}") from error
    predicted = _call("predict_proba", again, lambda: again.predict_proba(X, scores))
    if predicted is not None:
        check_probabilities(predicted, len(scores), len(again.classes_))


def _mutate(stored: Any, random: Random) -> str:
    """Change a value somewhere; return where."""
    path = ""
    while True:
        keys = list(stored) if isinstance(stored, dict) else range(len(stored))
        key = keys[random.integers(len(keys))]
        path += f"[{key!r}]"
        inner = stored[key]
        if not isinstance(inner, dict | list) or not inner or random.random() < 0.1:
            value = _MUTATIONS[random.integers(len(_MUTATIONS))]
            stored[key] = value
            return f"{path} = {str(value)[:40]}"
        stored = inner


def _check_sql(fitted: Any, found: Any, X: Any, scores: Any) -> None:
    names, columns = _columns(fitted, X)
    if columns is None:
        return
    score_names = [f"column {k}" for k in range(scores.shape[1])]
    try:
        sql = fitted.to_sql("sqlite", scores=score_names, attributes=names or None)
    except ValueError as error:
        _require("sqlite" in str(error).lower() or "SQL" in str(error), last_lines(error))
        return
    frame = pd.DataFrame({**columns, **dict(zip(score_names, scores.T, strict=True))})
    with sqlite3.connect(":memory:") as database:
        quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in frame.columns)
        database.execute(f"CREATE TABLE rows ({quoted})")
        marks = ", ".join("?" * len(frame.columns))
        values = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
        database.executemany(f"INSERT INTO rows VALUES ({marks})", values)
        expressions = ", ".join(sql.values())
        answers = np.array(database.execute(f"SELECT {expressions} FROM rows").fetchall(), float)
    database.close()
    _require(
        _is_close(fitted, answers, found), f"sqlite gives other probabilities:\n{answers}\n{found}"
    )


def _check_onnx(fitted: Any, found: Any, X: Any, scores: Any) -> None:
    if not isinstance(X, np.ndarray) or X.dtype.kind != "f":
        return
    from onnxruntime import InferenceSession

    try:
        model = fitted.to_onnx(dtype="float64")
    except ValueError as error:
        _require("ONNX" in str(error) or "attribute" in str(error), last_lines(error))
        return
    session = InferenceSession(model.SerializeToString())
    given = {"X": X.astype(np.float64), "scores": scores.astype(np.float64)}
    names = {each.name for each in session.get_inputs()}
    (answers,) = session.run(
        ["probabilities"], {name: value for name, value in given.items() if name in names}
    )
    _require(
        _is_close(fitted, answers, found), f"ONNX gives other probabilities:\n{answers}\n{found}"
    )


def _is_close(fitted: Any, answers: Any, found: Any) -> bool:
    """Whether two ways to compute probabilities differ by rounding alone.

    Slopes may be huge where scores are next to constant: they multiply the rounding of scores.
    """
    slopes = [getattr(fitted, "slopes_", np.zeros(1))]
    if hasattr(fitted, "model_"):
        slopes = [part.parameters for part in parts_of(fitted.model_)]
    largest = max(float(np.abs(some).max(initial=0.0)) for some in slopes)
    rounding = 1e-6 + 8 * np.finfo(np.float64).eps * largest
    return bool(np.allclose(answers, found, rtol=rounding, atol=1e-9))


def _columns(fitted: Any, X: Any) -> tuple[list[str], dict[str, Any] | None]:
    """The names and columns of a table for a database; none if the calibrator needs none."""
    if not hasattr(fitted, "model_"):
        return [], {}
    if hasattr(X, "tocsr") or isinstance(X, list):
        return [], None
    if isinstance(X, np.ndarray):
        X = pd.DataFrame(X, columns=[f"a{k}" for k in range(X.shape[1])])
    if not isinstance(X, pd.DataFrame):
        return [], None
    names = [f"a{k}" for k in range(X.shape[1])]
    return names, dict(zip(names, (X[name].astype(object) for name in X.columns), strict=True))


def _quietly(action: Callable[..., Any], *arguments: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return action(*arguments)


def _require_same(found: Any, other: Any, how: str) -> None:
    if not np.array_equal(found, other):
        raise InvariantError(f"other probabilities {how}:\n{found}\n{other}")


def _require(holds: bool, finding: str) -> None:
    if not holds:
        raise InvariantError(finding)


def last_lines(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    places = " > ".join(f"{Path(f.filename).name}:{f.lineno}" for f in frames)
    return f"{type(error).__name__}: {str(error)[:300]} ({places})"
