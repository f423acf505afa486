"""Formulas of node models, read again and held against predictions."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit, softmax

from caltree import CalibrationTree, PublishedCalibrationTree
from caltree._fitted.formulas import make_formulas
from caltree._fitted.model import FittedModel
from caltree._inputs.attributes import Attribute, Attributes
from caltree._inputs.score_columns import ScoreColumns
from caltree._inputs.scores import ScoreKind

from ..support.averaged_trees import averaged_tree, with_weights
from ..support.trees import fixed_boosted_tree, fixed_tree, make_rows


def free_tree(**params):
    """A tree whose models may fall with the score: those of these rows would not bend otherwise."""
    return fixed_tree(monotone=False, **params)


every_engine = pytest.mark.parametrize(
    "make", [free_tree, fixed_boosted_tree], ids=["shrunken", "boosted"]
)
DECIMALS = 12


def bend(margin):
    s = expit(margin)
    return np.log(s * (1 - s))


def evaluate(formula, values):
    """The value of a sum such as `0.2 + 1.3 logit s - ln s(1-s)`."""
    total = 0.0
    for sign, term in re.findall(r"(^-?|[+-] )(.+?)(?= [+-] |$)", formula):
        number, _, name = term.partition(" ") if term[0].isdigit() else ("1", "", term)
        factor = float(number) * (-1.0 if "-" in sign else 1.0)
        total = total + factor * (values[name] if name else 1.0)
    return total


def several_scores(n_classes, k):
    """Attributes, labels and the scores of one classifier or two."""
    X, y, scores = make_rows(400, n_classes=n_classes)
    others = np.random.default_rng(0).dirichlet(np.ones(n_classes), len(X))
    return X, y, [scores, others][:k]


def names_of(k, letter):
    return [letter] if k == 1 else [f"{letter}{i + 1}" for i in range(k)]


# The published method takes several columns of logits as they are.
every_reading = pytest.mark.parametrize(
    ("make", "score_type"),
    [(free_tree, "probability"), (free_tree, "logit"), (fixed_boosted_tree, "probability")],
    ids=["shrunken", "shrunken-logits", "boosted"],
)


@every_reading
@pytest.mark.parametrize("k", [1, 2])
def test_one_formula_is_the_model_of_two_classes(make, score_type, k):
    X, y, both = several_scores(2, k)
    given = np.hstack(both if score_type == "probability" else [np.log(each) for each in both])
    tree = make(max_depth=0, score_type=score_type).fit(X, y, given)
    [line] = [line for line in tree.to_text(decimals=DECIMALS).splitlines() if " = " in line]
    values = {"logit mean s": logit(np.mean(both, axis=0)[:, 1])}
    for name, each in zip(names_of(k, "s"), both, strict=True):
        values[f"logit {name}"] = logit(each[:, 1])
        values[f"ln {name}(1-{name})"] = bend(logit(each[:, 1]))
    assert line.startswith("logit p = ")
    assert ("ln s" in line) == (make is free_tree)
    if score_type == "probability":
        assert ("logit mean s" in line) == (make is free_tree and k == 2)
    else:
        # The mean of logits is another probability than the mean of probabilities.
        mean = softmax(np.mean([np.log(each) for each in both], axis=0), axis=1)
        values["logit mean s"] = logit(mean[:, 1])
    found = expit(evaluate(line.removeprefix("logit p = "), values))
    np.testing.assert_allclose(tree.predict_proba(X, given)[:, 1], found, atol=1e-9)


@every_engine
def test_the_margins_of_two_classes(make):
    X, y, [scores] = several_scores(2, 1)
    margin = logit(scores[:, 1])
    tree = make(max_depth=0, score_type="margin").fit(X, y, margin)
    legend, _, line = tree.to_text(decimals=DECIMALS).splitlines()
    bent = ", s: 1/(1 + exp(-m))" if make is free_tree else ""
    assert legend == f"p: probability of 1, m: its margin{bent}"
    values = {"m": margin, "ln s(1-s)": bend(margin)}
    found = expit(evaluate(line.removeprefix("logit p = "), values))
    np.testing.assert_allclose(tree.predict_proba(X, margin)[:, 1], found, atol=1e-9)


@every_engine
@pytest.mark.parametrize("k", [1, 2])
def test_margins_of_both_classes_have_a_name_each(make, k):
    X, y, both = several_scores(2, k)
    margins = np.hstack([np.log(each) for each in both])
    tree = make(max_depth=0, score_type="margin").fit(X, y, margins)
    legend, _, line = tree.to_text(decimals=DECIMALS).splitlines()
    names = [f"{letter}[{j}]" for letter in names_of(k, "m") for j in (0, 1)]
    assert legend.startswith(f"p: probability of 1, {', '.join(names)}: the margins")
    values = {}
    for name, margin in zip(names, margins.T, strict=True):
        squashed = f"s{name[1:]}"
        values |= {name: margin, f"ln {squashed}(1-{squashed})": bend(margin)}
        assert (f"{squashed}: 1/(1 + exp(-{name}))" in legend) == (make is free_tree)
    found = expit(evaluate(line.removeprefix("logit p = "), values))
    np.testing.assert_allclose(tree.predict_proba(X, margins)[:, 1], found, atol=1e-9)


@every_engine
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("score_type", ["probability", "margin"])
def test_many_classes_have_a_formula_each(make, score_type, k):
    X, y, both = several_scores(3, k)
    is_margin = score_type == "margin"
    given = np.hstack([np.log(each) for each in both] if is_margin else both)
    tree = make(max_depth=0, score_type=score_type).fit(X, y, given)
    lines = [line for line in tree.to_text(decimals=DECIMALS).splitlines() if " = " in line]
    assert len(lines) == 3
    letter, function = "s", "ln "
    if is_margin:
        letter, function = "m", ""
    elif make is fixed_boosted_tree:
        function = "logit "
    seen = logit(given) if function == "logit " else np.log(given) if function else given
    names = [f"{function}{each}[{j}]" for each in names_of(k, letter) for j in range(3)]
    values = dict(zip(names, seen.T, strict=True))
    values |= {f"ln mean s[{j}]": np.log(np.mean(both, axis=0)[:, j]) for j in range(3)}
    log_odds = np.zeros((len(X), 3))
    for j, line in enumerate(lines):
        left, _, right = line.partition(" = ")
        assert left == f"ln p[{j}]"
        assert ("ln mean s" in right) == (make is free_tree and k == 2 and not is_margin)
        log_odds[:, j] = evaluate(right, values)
        # A class's own score comes first.
        assert re.search(r"[sm]\d?\[(\d)\]", right)[1] == str(j)
    np.testing.assert_allclose(tree.predict_proba(X, given), softmax(log_odds, axis=1), atol=1e-9)


@pytest.mark.parametrize("score_type", ["probability", "logit", "margin"])
@every_engine
def test_of_the_first_class_signs_are_turned_round(make, score_type):
    X, y, [scores] = several_scores(2, 1)
    first = scores[:, 0] if score_type == "probability" else logit(scores[:, 0])
    labels = np.array(["a", "b"])[y]
    tree = make(max_depth=2, score_type=score_type, pos_label="a").fit(X, labels, first)
    text = tree.to_text(decimals=DECIMALS).splitlines()
    assert text[0].startswith("p: probability of a, ")
    margin = logit(scores[:, 0])
    values = {"m": margin, "logit s": margin, "ln s(1-s)": bend(margin)}
    leaves = [line.strip("| ") for line in text if "logit p = " in line]
    found = np.column_stack(
        [expit(evaluate(line.removeprefix("logit p = "), values)) for line in leaves]
    )
    said = tree.predict_proba(X, first)[:, :1]
    assert np.isclose(found, said, rtol=0, atol=1e-9).any(axis=1).all()


# Models made by hand


def by_hand(parameters, kind=None, columns=None, classes=("no", "yes"), decimals=2, **changes):
    """Formulas of a single leaf with given parameters."""
    parameters = np.atleast_2d(np.asarray(parameters, dtype=float))
    whole = {"dtype": np.int32}
    model = FittedModel(
        Attributes((Attribute("a", None),), None),
        attribute=np.full(1, -1, **whole),
        threshold=np.zeros(1),
        first_child=np.full(1, -1, **whole),
        n_children=np.zeros(1, **whole),
        missing=np.zeros(1, **whole),
        missing_rows=np.zeros(1),
        table=np.full(1, -1, **whole),
        branches=np.zeros(0, **whole),
        n_rows=np.ones(1),
        gain=np.zeros(1),
        weight=np.ones(1),
        parameters=parameters[np.newaxis],
        step=np.ones(parameters.shape[1]),
        roots=np.zeros(1, **whole),
        **{"n_scores": parameters.shape[1] - 1, "offset": False, **changes},
    )
    kind = kind or ScoreKind(len(classes), "probability")
    columns = columns or ScoreColumns(len(classes))
    return make_formulas(model, classes, kind, columns, decimals)


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ([0.02, 1.01, 0.0], "logit p = 0.02 + 1.01 logit s"),
        ([0.02, 1.01, -0.12], "logit p = 0.02 + 1.01 logit s - 0.12 ln s(1-s)"),
        ([0.02, 1.01, 0.0049], "logit p = 0.02 + 1.01 logit s"),
        ([-0.5, -0.25, 0.125], "logit p = -0.50 - 0.25 logit s + 0.12 ln s(1-s)"),
        ([0.004, 0.996, -0.004], "p = s"),
        ([0.006, 1.0, 0.0], "logit p = 0.01 + logit s"),
        ([0.0, -1.0, 0.0], "logit p = -logit s"),
        ([-0.001, 0.5, 1.0], "logit p = 0.50 logit s + ln s(1-s)"),
        ([-0.001, 0.0, 0.0], "logit p = 0.00"),
        ([1.0, 0.0, 0.0], "logit p = 1.00"),
    ],
)
def test_terms_that_vanish_are_left_out(parameters, expected):
    [formula] = by_hand(parameters).of_node(0)
    assert str(formula) == expected


def test_what_vanishes_depends_on_the_decimals():
    assert str(by_hand([0.004, 0.996, -0.004], decimals=3).of_node(0)[0]) == (
        "logit p = 0.004 + 0.996 logit s - 0.004 ln s(1-s)"
    )
    assert str(by_hand([0.4, 1.2, 0.1], decimals=0).of_node(0)[0]) == "p = s"


def test_the_mean_of_several_classifiers():
    # One column per class: the log-odds of the first class are those of the second, turned round.
    parameters = [0.0, *[-0.1, 0.2], *[0.0, 0.0], *[0.03, 0.04], *[0.0, 0.0]]
    formulas = by_hand(parameters, columns=ScoreColumns(4), offset=True)
    [formula] = formulas.of_node(0)
    assert str(formula) == "logit p = logit mean s + 0.30 logit s1 + 0.07 ln s1(1-s1)"
    assert formulas.legend() == ["p: probability of yes, s1, s2: its scores"]
    assert not formulas.has_outcomes
    [formula] = by_hand(np.zeros(9), columns=ScoreColumns(4), offset=True).of_node(0)
    assert str(formula) == "p = mean s"


def test_margins_that_do_not_bend_need_no_other_letter():
    kind, columns = ScoreKind(2, "margin"), ScoreColumns(1, 1)
    formulas = by_hand([0.3, 1.2, 0.001], kind, columns)
    assert str(formulas.of_node(0)[0]) == "logit p = 0.30 + 1.20 m"
    assert formulas.legend() == ["p: probability of yes, m: its margin"]
    assert str(by_hand([0.0, 1.0, 0.0], kind, columns).of_node(0)[0]) == "logit p = m"


def test_two_columns_of_logits_enter_the_published_method_as_they_are():
    kind = ScoreKind(2, "logit", published=True)
    formulas = by_hand([0.1, -0.5, 0.5], kind)
    assert str(formulas.of_node(0)[0]) == "logit p = 0.10 - 0.50 m[no] + 0.50 m[yes]"
    assert formulas.legend() == ["p: probability of yes, m[no], m[yes]: the logits"]
    assert not formulas.has_outcomes


ABC = ("a", "b", "c")


@pytest.mark.parametrize(
    ("intercepts", "slopes", "expected"),
    [
        ([0, 0, 0], np.zeros((3, 3)), ["p = s"]),
        ([7, 7, 7], np.zeros((3, 3)), ["p = s"]),
        ([0, 0, 0], -0.25 * np.eye(3), ["ln p = 0.75 ln s"]),
        (
            [-0.2, -0.2, 0.4],
            np.zeros((3, 3)),
            ["ln p[c]      = 0.40 + ln s[c]", "others: ln p = -0.20 + ln s"],
        ),
        (
            [0, 0, 0],
            np.diag([0.5, 0, 0]),
            ["ln p[a]   = 1.50 ln s[a]", "others: p = s"],
        ),
        (
            [0.1, 0, -0.1],
            [[0.5, 0, -0.1], [0, 0, 0], [0, 0, -0.25]],
            [
                "ln p[a] = 0.10 + 1.50 ln s[a] - 0.10 ln s[c]",
                "p[b]    = s[b]",
                "ln p[c] = -0.10 + 0.75 ln s[c]",
            ],
        ),
    ],
)
def test_classes_that_are_treated_alike_share_a_formula(intercepts, slopes, expected):
    parameters = np.column_stack([np.array(intercepts, dtype=float), slopes])
    formulas = by_hand(parameters, classes=ABC, offset=True)
    assert list(map(str, formulas.of_node(0))) == expected


# What scores become


def outcome_of(line):
    return [float(each) for each in re.findall(r"-> (\d\.\d+)", line)]


@pytest.mark.parametrize("uncalibrated", [0.0, 0.25])
@pytest.mark.parametrize(
    ("score_type", "columns"),
    [("probability", 2), ("probability", 1), ("logit", 1), ("logit", 2), ("turned", 1)],
)
def test_the_outcome_of_a_leaf_is_its_prediction(score_type, columns, uncalibrated):
    X, y, scores = make_rows(800, seed=5)
    is_turned = score_type == "turned"
    pos_label = 0 if is_turned else 1 if columns == 1 else None
    kind = "probability" if is_turned else score_type

    def given(probability):
        """Probabilities of the event as the scores that the tree takes."""
        both = np.column_stack([1 - probability, probability])
        if kind == "logit":
            return logit(probability) if columns == 1 else np.log(both)
        return probability if columns == 1 else both

    event = 0 if is_turned else 1
    tree = fixed_tree(max_depth=3, score_type=kind, pos_label=pos_label)
    tree.fit(X, y, given(scores[:, event]))
    tree = with_weights(tree, [0.25, 0.125, 0.25], uncalibrated)
    said = [outcome_of(line) for line in tree.to_text(decimals=8).splitlines() if "0.2 -> " in line]
    assert len(said) == tree.get_n_leaves()
    expected = np.column_stack(
        [tree.predict_proba(X, given(np.full(len(X), s)))[:, event] for s in (0.2, 0.5, 0.8)]
    )
    np.testing.assert_allclose(sorted(said), np.unique(expected.round(9), axis=0), atol=1e-7)


def test_the_outcome_in_a_published_tree_is_its_prediction():
    X, y, scores = make_rows(800, seed=5)
    tree = PublishedCalibrationTree(boosting_iterations=3).fit(X, y, scores)
    said = [outcome_of(line) for line in tree.to_text(decimals=8).splitlines() if "0.2 -> " in line]
    expected = np.column_stack(
        [tree.predict_proba(X, np.tile([1 - s, s], (len(X), 1)))[:, 1] for s in (0.2, 0.5, 0.8)]
    )
    np.testing.assert_allclose(sorted(said), np.unique(expected.round(9), axis=0), atol=1e-7)


@every_reading
def test_the_outcome_of_many_classes_is_that_of_half_a_probability(make, score_type):
    X, y, scores = make_rows(800, n_classes=3, seed=5)
    read = np.log if score_type == "logit" else np.asarray
    tree = make(max_depth=1, score_type=score_type).fit(X, y, read(scores))
    if make is free_tree:
        tree = with_weights(tree, [0.5], 0.25)
    lines = tree.to_text(decimals=8).splitlines()
    assert lines[1].startswith(
        "0.5 -> p (c): what a score of 0.5 for class c becomes, the others sharing the rest"
    )
    assert ("averaged over its path" in lines[1]) == (make is free_tree)
    said = [line.partition("0.5 -> ")[2] for line in lines if "|--- " in line]
    rows = [int(np.flatnonzero(tree.apply(X) == leaf)[0]) for leaf in (1, 2)]
    for row, text in zip(rows, said, strict=True):
        expected = []
        for j in range(3):
            given = np.full((1, 3), 0.25)
            given[0, j] = 0.5
            expected.append(tree.predict_proba(X[[row]], read(given))[0, j])
        found = re.findall(r"(\d\.\d+) \((\d)\)", text)
        assert [int(name) for _, name in found] == [0, 1, 2]
        assert [float(number) for number, _ in found] == pytest.approx(expected, abs=1e-7)


def test_of_many_classes_those_that_move_most_are_told():
    classes = tuple("abcdefgh")
    # Three classes become improbable; beside them, two others stand out among the rest.
    intercepts = np.array([-4, 0, 0, 0, 0.5, -4, -4, 0.5])
    parameters = np.column_stack([intercepts, np.zeros(8)])
    formulas = by_hand(parameters, classes=classes, n_scores=8, offset=True)
    assert re.findall(r"\((\w)\)", formulas.outcome(0)) == ["a", "e", "f", "g", "h"]


def test_probabilities_have_two_decimals_at_least():
    tree = averaged_tree(max_depth=0)
    assert re.search(r"0\.2 -> 0\.\d\d, ", tree.to_text(decimals=0))
    assert re.search(r"0\.2 -> 0\.\d\d\d, ", tree.to_text(decimals=3))


def test_the_event_is_the_class_that_a_column_is_named_after():
    X, y, scores = make_rows(400)
    labels = np.array(["churn", "stay"])[y]
    tree = CalibrationTree().fit(X, labels, scores=pd.Series(scores[:, 0], name="p_churn"))
    assert "p: probability of churn, s: its score" in tree.to_text().splitlines()
