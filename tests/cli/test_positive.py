"""Whose score a single column of a file is, and which type of scores it holds."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from caltree import CalibrationTree, PlattScaling

from .conftest import write


@pytest.fixture
def churn():
    """Customers, and the probability of the first of two classes."""
    rng = np.random.default_rng(0)
    n_rows = 1000
    frame = pd.DataFrame({"age": rng.integers(18, 80, n_rows), "score": rng.random(n_rows)})
    gone = rng.random(n_rows) < np.where(frame["age"] < 40, frame["score"] / 2, frame["score"])
    return frame.assign(churned=np.where(gone, "churn", "stay"))


def fit(run, *options, table="train.csv"):
    result = run("fit", table, "--label", "churned", "--out", "m.json", *options)
    assert result.exit_code == 0, result.output
    return result.stderr


def said_of_scores(stderr):
    [line] = [line for line in stderr.splitlines() if line.startswith("  scores")]
    return line.split(maxsplit=1)[1]


BACKWARDS = (
    "caltree: warning: the scores rank 'stay' backwards: rows of 'stay' have lower scores than "
    "the others"
)


def test_backward_scores_are_said_aloud(run, churn):
    write(churn, "train.csv")
    said = fit(run)
    assert said_of_scores(said) == (
        "score, taken as probability of churned = stay (the second class; use --positive for "
        "the other)"
    )
    assert said.count(BACKWARDS) == 1 and "--positive churn" in said
    result = run("evaluate", "m.json", "train.csv")
    assert result.stderr.count(BACKWARDS) == 1 and "--positive churn" in result.stderr
    result = run("report", "m.json", "train.csv", "--out", "r.html", "--quiet")
    assert result.exit_code == 0 and "backwards" not in result.stderr
    page = Path("r.html").read_text(encoding="utf-8")
    assert page.index("The scores are backwards") < page.index("<main>")
    assert "Better probabilities" not in page
    assert "Taken as probabilities of stay" in page


def test_an_audit_of_backward_scores_warns_once(run, churn):
    write(churn, "train.csv")
    result = run("audit", "train.csv", "--label", "churned", "--scores", "score")
    assert result.exit_code == 0
    assert result.stderr.count(BACKWARDS) == 1 and result.stderr.count("warning") == 1


@pytest.mark.parametrize(
    "name, options, reason",
    [
        ("score", ["--positive", "churn"], "as --positive says"),
        ("p_churn", [], "by the name of the column"),
        ("prob_churn", [], "by the name of the column"),
        ("risk", ["--scores", "risk", "--positive", "churn"], "as --positive says"),
    ],
)
def test_the_first_class(run, churn, name, options, reason):
    table = churn.rename(columns={"score": name})
    write(table, "train.csv")
    said = fit(run, *options)
    assert said_of_scores(said) == f"{name}, taken as probability of churned = churn ({reason})"
    assert "backwards" not in said
    expected = CalibrationTree(pos_label="churn").fit(
        churn[["age"]], churn["churned"], churn["score"]
    )
    wanted = expected.predict_proba(churn[["age"]], churn["score"])
    assert run("apply", "m.json", "train.csv", "--out", "out.parquet").exit_code == 0
    found = pd.read_parquet("out.parquet")
    np.testing.assert_allclose(found["calibrated_churn"], wanted[:, 0], atol=1e-9)
    np.testing.assert_allclose(found[name], churn["score"], atol=1e-12)
    result = run("evaluate", "m.json", "train.csv", "--json")
    assert "backwards" not in result.stderr
    rmse = json.loads(result.stdout)["measures"]["rmse"]["uncalibrated"]
    assert rmse == pytest.approx(
        np.sqrt(np.mean((churn["score"] - (churn["churned"] == "churn")) ** 2))
    )
    assert run("report", "m.json", "train.csv", "--out", "r.html", "--quiet").exit_code == 0
    page = Path("r.html").read_text(encoding="utf-8")
    assert "The scores are backwards" not in page and "Taken as probabilities of churn" in page
    assert re.search(r"scores +\S+ \(probability of churn\)", run("show", "m.json").stdout)


def test_positive_counts_more_than_a_name(run, churn):
    write(churn.rename(columns={"score": "p_stay"}), "train.csv")
    said = fit(run, "--positive", "churn")
    assert "--positive is churn, but the column p_stay is named after stay" in said
    assert "backwards" not in said
    result = run("evaluate", "m.json", "train.csv")
    assert result.exit_code == 0
    assert "backwards" not in result.stderr


@pytest.mark.parametrize("order", ["p_churn,p_stay", "p_stay,p_churn"])
def test_columns_of_classes_in_any_order(run, churn, order):
    write(churn.assign(p_churn=churn["score"], p_stay=1 - churn["score"]), "train.csv")
    said = fit(run, "--scores", order, "--exclude", "score")
    assert (
        said_of_scores(said) == "p_churn, p_stay, taken as probability of each class in this order"
    )
    assert "backwards" not in said
    renamed = churn.assign(proba_churn=churn["score"], proba_stay=1 - churn["score"])
    write(renamed, "new.csv")
    result = run("evaluate", "m.json", "new.csv", "--scores", order.replace("p_", "proba_"))
    assert result.exit_code == 0
    assert "backwards" not in result.stderr


def test_a_calibrator_that_was_saved_knows_its_columns(run, churn):
    frame = churn.assign(p_stay=1 - churn["score"], p_churn=churn["score"])
    PlattScaling().fit(None, frame["churned"], frame[["p_stay", "p_churn"]]).save("m.json")
    write(frame, "train.csv")
    result = run("evaluate", "m.json", "train.csv", "--label", "churned")
    assert result.exit_code == 0
    assert "backwards" not in result.stderr


def test_what_is_refused(run, complaint, churn):
    write(churn.assign(p_churn=churn["score"], p_stay=1 - churn["score"], q=0.5), "train.csv")
    given = ["fit", "train.csv", "--label", "churned", "--out", "m.json"]
    line = complaint(*given, "--scores", "score", "--positive", "gone")
    assert line == "--positive is gone, which is not a class; choose one of churn, stay"
    line = complaint(*given, "--scores", "p_churn,p_stay", "--positive", "stay")
    assert line.startswith("--positive is only for a single column of scores of two classes")
    line = complaint(*given, "--scores", "p_churn,q")
    assert line.startswith("scores has the columns p_churn, q, and it is not clear which")
    fit(run, "--scores", "p_churn", "--exclude", "score,p_stay,q")
    line = complaint("evaluate", "m.json", "train.csv", "--scores", "p_stay")
    assert line == (
        "--scores p_stay is named after stay, but the model was fitted to scores of churn; give a "
        "column of those"
    )


def test_a_stray_score_and_percentages_are_refused(complaint, churn):
    given = ["fit", "train.csv", "--label", "churned", "--out", "m.json", "--positive", "churn"]
    write(churn, "train.csv")
    stray = churn.copy()
    stray.loc[76, "score"] = 1.02
    write(stray, "train.csv")
    for options in ([], ["--holdout", "0.5"]):
        line = complaint(*given, *options)
        assert "scores contains 1.02 in row 77, but the scores of the other 999 rows are" in line
        assert "--score-type" in line
    write(churn.assign(score=100 * churn["score"]), "train.csv")
    assert "divide them by 100 if they are percentages" in complaint(*given)


def test_the_type_that_was_taken_is_said(run, churn):
    odds = np.log(churn["score"] / (1 - churn["score"]))
    write(churn.assign(score=odds), "train.csv")
    said = fit(run, "--positive", "churn")
    assert said_of_scores(said) == "score, taken as margin of churned = churn (as --positive says)"
    said = fit(run, "--positive", "churn", "--calibrator", "isotonic", "--score-type", "logit")
    assert said_of_scores(said).startswith("score, taken as logit of")
