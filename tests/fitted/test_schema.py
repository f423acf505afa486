"""The published schema of saved calibrators: what is saved fits it, and nothing else does."""

import json
import warnings
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from sklearn.model_selection import KFold

from caltree import (
    BetaScaling,
    CalibrationBoosting,
    CalibrationEnsemble,
    CalibrationForest,
    CalibrationTree,
    IdentityCalibrator,
    IsotonicScaling,
    LogisticModelTree,
    PlattScaling,
    PublishedCalibrationTree,
    RegularizedIsotonicScaling,
    RobustPlattScaling,
    SmoothIsotonicScaling,
    TemperatureScaling,
    cli,
)
from caltree._fitted.blended import parts_of

from ..support.boosting_cases import make_rows as boosting_rows
from ..support.forests import calibrated_rows, few
from ..support.markdown import assert_prints_what_is_shown
from ..support.nested import replaced
from ..support.trees import boosted_tree, fixed_tree, make_frame, make_rows

SCHEMA = json.loads(
    (resources.files("caltree") / "schema" / "calibrator.schema.json").read_text(encoding="utf-8")
)
VALIDATOR = Draft202012Validator(SCHEMA)
PAGE = Path(__file__).parents[2] / "docs" / "format.md"
quick = settings(max_examples=60, deadline=None, derandomize=True)


def is_valid(stored):
    return VALIDATOR.is_valid(stored)


def assert_valid(calibrator):
    """What `save` writes, as another program reads it."""
    stored = json.loads(json.dumps(calibrator.to_dict(), allow_nan=False))
    VALIDATOR.validate(stored)
    loaded = type(calibrator).from_dict(stored)
    again = loaded.to_dict()
    # A parameter that cannot be saved is the default again.
    assert {**again, "params": stored["params"]} == stored
    if hasattr(calibrator, "model_"):
        for part, other in zip(*map(parts_of, (calibrator.model_, loaded.model_)), strict=True):
            assert_same_arrays(part, other)
    return stored


def assert_same_arrays(model, other):
    """The file has all arrays, though some are derived from others."""
    for name in set(model.PER_NODE) - {"table", "n_rows"} | {"roots", "parameters"}:
        assert np.array_equal(getattr(model, name), getattr(other, name)), name
    # Sums of weights may differ in their last digit.
    np.testing.assert_allclose(model.n_rows, other.n_rows, rtol=1e-12)
    nominal = np.flatnonzero(model.table >= 0)
    assert all(np.array_equal(model.branches_of(v), other.branches_of(v)) for v in nominal)


def rows(n_classes=2, n_classifiers=1):
    X, y, scores = make_rows(240, n_classes=n_classes)
    return X, y, np.hstack([scores] * n_classifiers)


def larger():
    """Enough rows for splits of a boosted tree."""
    return boosting_rows(800)


def few_of_both():
    return CalibrationEnsemble(4, random_state=0)


def margins(n_classes=2):
    X, y, scores = rows(n_classes)
    return X, y, 3 * np.log(scores)


def uncalibrated(n_classes=2):
    return calibrated_rows(400, n_classes, 1)


def labelled(labels):
    X, y, scores = rows(len(labels))
    return X, np.array(labels)[y], scores


def categories():
    """Strings, declared categories, booleans, numbers of two kinds, and nothing at all."""
    frame, y, scores = make_frame(240)
    frame = frame.assign(whole=10**17 + np.arange(240) % 3, real=np.arange(240) % 4 / 3, none=None)
    return frame, y, scores


NOMINAL = ["whole", "real", "none", "count"]
CASES = {
    "default": (CalibrationTree, rows),
    "averaged": (lambda: CalibrationTree(do_no_harm=False), rows),
    "leaves": (lambda: CalibrationTree(path_averaging=False), rows),
    "fixed": (fixed_tree, rows),
    "small": (lambda: CalibrationTree(max_depth=3, max_leaf_nodes=4), rows),
    "published": (lambda: PublishedCalibrationTree(max_boosting_iterations=20), rows),
    "published categories": (
        lambda: PublishedCalibrationTree(boosting_iterations=3, ccp_alpha=None),
        lambda: (make_frame(300)[0][["colour", "size"]], *make_frame(300)[1:]),
    ),
    "published, fixed strength": (
        lambda: boosted_tree(boosting_iterations=3, ccp_alpha=0.001),
        rows,
    ),
    "logistic model tree": (
        lambda: LogisticModelTree(max_boosting_iterations=20),
        lambda: rows()[:2],
    ),
    "logistic model tree, categories": (
        lambda: LogisticModelTree(boosting_iterations=3, ccp_alpha=None, scoring="rmse"),
        lambda: make_frame(300)[:2],
    ),
    "log loss": (lambda: CalibrationTree(scoring="log_loss"), rows),
    "histograms": (lambda: CalibrationTree(tree_method="hist"), rows),
    "first class": (
        lambda: CalibrationTree(pos_label=0),
        lambda: (*rows()[:2], pd.Series(rows()[2][:, 0], name="p_0")),
    ),
    "one score": (CalibrationTree, lambda: (*rows()[:2], rows()[2][:, 1])),
    "margins": (CalibrationTree, margins),
    "logits": (lambda: CalibrationTree(score_type="logit"), margins),
    "many classes": (CalibrationTree, lambda: rows(10)),
    "several classifiers": (CalibrationTree, lambda: rows(2, 2)),
    "several classifiers, many classes": (CalibrationTree, lambda: rows(3, 2)),
    "uncalibrated": (CalibrationTree, uncalibrated),
    "missing values": (CalibrationTree, lambda: make_frame(300)),
    "categories": (lambda: CalibrationTree(categorical_features=NOMINAL), categories),
    "a splitter": (
        lambda: CalibrationTree(cv=KFold(3), random_state=np.random.RandomState(0)),
        rows,
    ),
    "numbers of numpy": (
        lambda: CalibrationTree(
            max_depth=np.int64(2), l2_regularization=np.float64(0.1), kept_gain=np.float64(1.0)
        ),
        rows,
    ),
    "strings": (CalibrationTree, lambda: labelled(["no", "yes"])),
    "booleans": (CalibrationTree, lambda: labelled([False, True])),
    "floats": (CalibrationTree, lambda: labelled([-1.0, 2.0])),
    "forest": (few, rows),
    "small forest": (lambda: few(n_estimators=2, max_depth=2), rows),
    "forest, uncalibrated": (few, uncalibrated),
    "forest, margins": (few, margins),
    "forest, many classes": (few, lambda: rows(10)),
    "forest, several classifiers": (few, lambda: rows(3, 2)),
    "forest, log loss": (lambda: few(scoring="log_loss", max_features=2), rows),
    "forest that always calibrates": (lambda: few(do_no_harm=False), rows),
    "forest, categories": (lambda: few(categorical_features=NOMINAL), categories),
    "boosting": (CalibrationBoosting, larger),
    "boosting, uncalibrated": (CalibrationBoosting, uncalibrated),
    "boosting, margins": (CalibrationBoosting, margins),
    "boosting, many classes": (CalibrationBoosting, lambda: rows(10)),
    "boosting, several classifiers": (CalibrationBoosting, lambda: rows(3, 2)),
    "boosting, log loss": (
        lambda: CalibrationBoosting(scoring="log_loss", monotone=False, do_no_harm=False),
        larger,
    ),
    "ensemble": (few_of_both, larger),
    "ensemble, uncalibrated": (few_of_both, uncalibrated),
    "ensemble, margins": (few_of_both, margins),
    "ensemble, three classes": (few_of_both, lambda: rows(3)),
    "boosting, categories": (
        lambda: CalibrationBoosting(do_no_harm=False, categorical_features=NOMINAL),
        categories,
    ),
    "Platt": (PlattScaling, rows),
    "Platt, margins of many classes": (
        lambda: PlattScaling(score_type="margin"),
        lambda: margins(4),
    ),
    "temperature": (TemperatureScaling, rows),
    "temperature, logits of many classes": (
        lambda: TemperatureScaling(score_type="logit"),
        lambda: margins(4),
    ),
    "beta": (BetaScaling, rows),
    "beta, many classes": (lambda: BetaScaling(l2_regularization=1.0), lambda: rows(4)),
    "beta, very many classes": (BetaScaling, lambda: rows(31)),
    "isotonic": (IsotonicScaling, rows),
    "isotonic, many classes": (IsotonicScaling, lambda: rows(5)),
    "smooth isotonic": (SmoothIsotonicScaling, rows),
    "regularized isotonic": (RegularizedIsotonicScaling, rows),
    "robust Platt": (lambda: RobustPlattScaling(epsilon=2.0), rows),
    "identity": (IdentityCalibrator, rows),
    "identity, several classifiers": (IdentityCalibrator, lambda: rows(3, 2)),
}


@pytest.fixture(scope="module")
def saved():
    """A calibrator of each case, made once."""
    made = {}

    def of(case):
        if case not in made:
            make, data = CASES[case]
            made[case] = make().fit(*data())
        return made[case]

    return of


# What is saved


@pytest.mark.parametrize("case", CASES)
def test_what_is_saved_fits(saved, case, tmp_path):
    calibrator = saved(case)
    stored = assert_valid(calibrator)
    calibrator.save(tmp_path / "saved.json")
    written = json.loads((tmp_path / "saved.json").read_text(encoding="utf-8"))
    del written["made"]["at"]
    assert written == stored


def test_hashes_of_rows_may_be_left_out(saved):
    stored = saved("default").to_dict()
    assert is_valid({**stored, "fingerprint": None}) and not is_valid({**stored, "fingerprint": {}})


def test_the_cases_are_what_they_say(saved):
    weight = {case: saved(case).model_.uncalibrated_weight for case in ("uncalibrated", "margins")}
    assert weight == {"uncalibrated": 1.0, "margins": 0.0}
    assert saved("fixed").selection_ is None is saved("published").selection_
    assert saved("forest that always calibrates").selection_.uncalibrated_weight == 0.0
    own = saved("forest, several classifiers").model_
    assert own.parameters.shape[1:] == (3, 3) and own.n_scores == 6
    assert saved("several classifiers").model_.offset
    assert not {"cv", "random_state"} & set(saved("a splitter").to_dict()["params"])
    assert saved("published categories").model_.n_children.max() > 2
    columns = saved("categories").to_dict()["model"]["attributes"]["columns"]
    known = [column["categories"] for column in columns]
    assert None in known and [] in known
    assert {type(value) for each in known for value in each or ()} == {str, bool, int, float}
    formats = {saved(case).to_dict()["format"] for case in CASES}
    assert formats == {
        definition["properties"]["format"]["const"]
        for definition in SCHEMA["$defs"].values()
        if "format" in definition.get("properties", {})
    }


def test_what_the_command_saves_fits(tmp_path, monkeypatch):
    from click.testing import CliRunner

    monkeypatch.chdir(tmp_path)
    frame, y, scores = make_frame(240)
    frame.assign(p=scores[:, 1], label=y, count=1).to_csv("rows.csv", index=False)
    given = ["fit", "rows.csv", "--label", "label", "--scores", "p", "--out", "model.json"]
    for more in ([], ["--calibrator", "platt"]):
        done = CliRunner().invoke(cli.make_command(), [*given, *more])
        assert done.exit_code == 0, done.output
        stored = json.loads(Path("model.json").read_text(encoding="utf-8"))
        assert stored["columns"]["scores"] == ["p"]
        VALIDATOR.validate(stored)
        Path("model.json").unlink()


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    n_rows=st.integers(12, 60),
    n_classes=st.integers(2, 4),
    n_classifiers=st.integers(1, 3),
    score_type=st.sampled_from(["probability", "logit", "margin"]),
    kind=st.sampled_from(
        [
            CalibrationTree,
            lambda: CalibrationForest(3),
            CalibrationBoosting,
            lambda: CalibrationEnsemble(3),
            PlattScaling,
            BetaScaling,
        ]
    ),
    seed=st.integers(0, 1000),
)
def test_whatever_is_fitted_fits(n_rows, n_classes, n_classifiers, score_type, kind, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "number": np.where(rng.random(n_rows) < 0.3, np.nan, rng.normal(size=n_rows)),
            "text": rng.choice(["a", "b", None], n_rows),
            "nothing": np.full(n_rows, np.nan),
        }
    )
    y = np.append(np.arange(n_classes), rng.integers(0, n_classes, n_rows - n_classes))
    scores = np.hstack([rng.dirichlet(np.ones(n_classes), n_rows) for _ in range(n_classifiers)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # classes of fewer rows than folds
        calibrator = kind().set_params(score_type=score_type).fit(frame, y, scores)
    assert_valid(calibrator)


def test_every_parameter_is_in_the_schema():
    for definition in SCHEMA["$defs"].values():
        found = definition.get("properties", {})
        if "format" in found:
            made = getattr(__import__("caltree"), found["format"]["const"].split(".")[1])()
            assert set(made.get_params()) == set(found["params"]["properties"])


# What is not


@pytest.mark.parametrize(
    ("case", "path", "value"),
    [
        ("default", ("format",), "caltree.Tree"),
        ("default", ("format",), "caltree.CalibrationForest"),
        ("default", ("version",), 1),
        ("default", ("version",), "2"),
        ("default", ("classes",), [0]),
        ("default", ("classes",), [0, 0]),
        ("default", ("classes",), ["no", 1]),
        ("default", ("classes",), "ab"),
        ("default", ("score_type",), "auto"),
        ("default", ("n_scores",), 0),
        ("default", ("n_scores",), 1.5),
        ("default", ("levels",), []),
        ("default", ("tree",), {}),
        ("default", ("params", "depth"), 3),
        ("default", ("params", "l2_regularization"), "small"),
        ("default", ("params", "do_no_harm"), 1),
        ("default", ("params", "max_leaf_nodes"), 1),
        ("default", ("params", "kept_gain"), 0.0),
        ("default", ("params", "kept_gain"), 1.1),
        ("default", ("params", "ccp_alpha"), None),
        ("default", ("chosen",), {"ccp_alpha": None}),
        ("default", ("params", "min_samples_leaf"), 0.1),
        ("default", ("params", "node_models"), "logitboost"),
        ("default", ("selection",), []),
        ("default", ("selection", "scoring"), "auc"),
        ("default", ("selection", "loss"), None),
        ("default", ("selection", "candidates"), []),
        ("default", ("selection", "candidates", 0, "loss"), None),
        ("default", ("selection", "candidates", 0, "name"), 0),
        ("default", ("selection", "candidates", 0, "weight"), 1.5),
        ("default", ("fingerprint", "hashes"), "0123456789abcde"),
        ("default", ("fingerprint", "hashes"), "0123456789ABCDEF"),
        ("default", ("fingerprint", "rows"), 0),
        ("default", ("fingerprint", "hashes"), ""),
        ("default", ("model", "attribute", 0), -2),
        ("default", ("model", "attribute", 0), 0.5),
        ("default", ("model", "attribute"), []),
        ("default", ("model", "cuts", 0), "NaN"),
        ("default", ("model", "cuts", 0), [None]),
        ("default", ("model", "cuts", 0), [float("inf")]),
        ("default", ("model", "cuts", 0), [[]]),
        ("default", ("model", "cuts"), []),
        ("default", ("model", "cut", 0), 2**31),
        ("default", ("model", "branches"), [[0, 1]]),
        ("default", ("model", "step", 0), 0),
        ("default", ("model", "tree_weight"), []),
        ("default", ("model", "weight", 0), -0.1),
        ("default", ("model", "weight", 0), 1.1),
        ("default", ("model", "offset"), 0),
        ("default", ("model", "parameters", 0), []),
        ("default", ("model", "parameters", 0, 0), []),
        ("default", ("model", "parameters", 0, 0, 0), 1e201),
        ("default", ("model", "attributes", "names"), []),
        ("default", ("model", "attributes", "columns"), []),
        ("default", ("model", "attributes", "columns", 0, "name"), 0),
        ("default", ("model", "attributes", "columns", 0, "categories"), [None]),
        ("default", ("model", "attributes", "columns", 0, "categories"), ["a", "a"]),
        ("default", ("model", "attributes", "columns", 0, "fill"), None),
        ("default", ("columns",), {"scores": ["p"]}),
        ("default", ("model", "n_scores"), 0),
        ("default", ("model", "coefficients"), []),
        ("published", ("chosen", "boosting_iterations"), None),
        ("published", ("chosen", "ccp_alpha"), float("inf")),
        ("published", ("chosen", "criterion"), "gain_ratio"),
        ("published", ("params", "scoring"), "rmse"),
        ("forest", ("chosen",), {"criterion": "gain_ratio"}),
        ("forest", ("selection", "candidates", 0, "weight"), -0.1),
        ("forest", ("model", "n_rows"), []),
        ("forest", ("model", "parameters", 0, 0, 0), -1e201),
        ("boosting", ("chosen",), {"criterion": "gain_ratio"}),
        ("boosting", ("model", "value", 0), 1e201),
        ("boosting", ("model", "value"), []),
        ("boosting", ("model", "state", 0), -1),
        ("boosting", ("model", "parameters", 0), []),
        ("boosting", ("model", "parameters", 0, 0), None),
        ("boosting", ("model", "start"), -0.1),
        ("boosting", ("model", "curve_weight"), 1.1),
        ("boosting", ("model", "boosted_weight"), -0.1),
        ("boosting", ("model", "weight"), [1.0]),
        ("boosting", ("params", "monotone"), "yes"),
        ("ensemble", ("params", "monotone"), True),
        ("ensemble", ("params", "n_estimators"), 1),
        ("ensemble", ("model", "forest"), None),
        ("ensemble", ("model", "forest", "attributes"), {}),
        ("ensemble", ("model", "forest", "weight", 0), 1.1),
        ("ensemble", ("model", "boosted", "curve_weight"), 1.1),
        ("ensemble", ("model", "weight"), [1.0]),
        ("Platt", ("slopes",), []),
        ("Platt", ("intercepts", 0), None),
        ("temperature", ("slope",), None),
        ("temperature", ("slope",), [1.0]),
        ("temperature", ("slope",), 1e201),
        ("temperature", ("params", "l2_regularization"), 1.0),
        ("beta", ("slopes",), []),
        ("beta", ("slopes", 0), []),
        ("beta", ("slopes", 0, 1), "0.5"),
        ("beta", ("slopes", 0), 0.5),
        ("beta", ("intercepts", 0), None),
        ("beta", ("params", "l2_regularization"), 0.0),
        ("isotonic", ("values", 0, 0), 1.5),
        ("isotonic", ("thresholds", 0), []),
        ("isotonic", ("params", "score_type"), "margins"),
        ("isotonic", ("pos_label",), [0]),
        ("isotonic", ("score_names",), "p_yes"),
        ("identity", ("slopes",), [1.0]),
    ],
)
def test_what_is_broken_does_not_fit(saved, case, path, value):
    stored = saved(case).to_dict()
    assert not is_valid(replaced(stored, path, value))


@pytest.mark.parametrize("stored", [None, [], {}, 1, "caltree.CalibrationTree"])
def test_what_is_no_calibrator_does_not_fit(stored):
    assert not is_valid(stored)


def test_not_a_number_is_not_even_json(saved):
    stored = replaced(saved("default").to_dict(), ("model", "gain", 0), float("nan"))
    with pytest.raises(ValueError, match="not JSON compliant"):
        json.dumps(stored, allow_nan=False)


SMALL = ["small", "categories", "published", "small forest", "Platt", "temperature", "beta"]
SMALL += ["isotonic", "identity"]


def places(item, start=()):
    """The way to everything inside, with what is there; of long lists the first entries."""
    yield start, item
    if isinstance(item, dict):
        for key in item:
            yield from places(item[key], (*start, key))
    elif isinstance(item, list):
        for index in range(min(2, len(item))):
            yield from places(item[index], (*start, index))


@pytest.mark.parametrize("case", SMALL)
@quick
@given(data=st.data())
def test_nothing_can_be_left_out_added_or_be_something_else(saved, case, data):
    stored = saved(case).to_dict()
    path, item = data.draw(st.sampled_from(list(places(stored))))
    if isinstance(item, dict):
        inside = replaced([stored], (0, *path), {**item, "unknown": 1})[0]
        assert not is_valid(inside)
        if path != ("params",) and item:
            key = data.draw(st.sampled_from(sorted(item)))
            without = {name: value for name, value in item.items() if name != key}
            assert not is_valid(replaced([stored], (0, *path), without)[0])
    assert not is_valid(replaced([stored], (0, *path), {"something": "else"})[0])


# The schema itself


def test_the_schema_is_one():
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == Draft202012Validator.META_SCHEMA["$id"]


def objects(schema):
    """Everything in a schema that is a schema of an object."""
    if isinstance(schema, dict):
        if "properties" in schema and not isinstance(schema["properties"].get("type"), str):
            yield schema
        for inner in schema.values():
            yield from objects(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from objects(inner)


def explained(field):
    """A field with its title and description, which may be those of a shared definition."""
    if "$ref" not in field:
        return field
    shared = SCHEMA
    for key in field["$ref"].removeprefix("#/").split("/"):
        shared = shared[key]
    return {**explained(shared), **field}


def test_every_field_is_explained_and_no_other_is_allowed():
    found = list(objects(SCHEMA))
    assert len(found) > 15
    for schema in found:
        assert schema["additionalProperties"] is False and schema["type"] == "object"
        for field in map(explained, [schema, *schema["properties"].values()]):
            assert field["title"] and field["description"].endswith(".")
        optional = set(schema["properties"]) - set(schema.get("required", ()))
        assert schema["title"] == "Parameters" or optional <= {"columns", "at"}


def test_every_definition_is_used():
    text = json.dumps(SCHEMA)
    assert [name for name in SCHEMA["$defs"] if f'"#/$defs/{name}"' not in text] == []


def test_trees_and_forests_share_the_form_of_the_model():
    kinds = ("calibration_tree", "published_calibration_tree", "calibration_forest")
    for name in ("model", "selection"):
        found = [SCHEMA["$defs"][kind]["properties"][name] for kind in kinds]
        assert found == [{"$ref": f"#/$defs/{name}"}] * 3


def test_the_page_prints_what_is_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    assert assert_prints_what_is_shown(text, PAGE.name) == 3
    VALIDATOR.validate(json.loads(Path("tree.json").read_text(encoding="utf-8")))
