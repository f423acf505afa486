"""`caltree audit`: the audit of a table, as text, as JSON and as a page."""

import json

import pytest

from .conftest import make_visits


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "visits.csv"
    make_visits().to_csv(path, index=False)
    return path


def test_it_says_for_whom_the_scores_are_off(run, table):
    result = run("audit", table, "--label", "y", "--scores", "p_yes", "--by", "channel")
    assert result.exit_code == 0, result.stderr
    assert "The scores are not calibrated everywhere" in result.stdout
    [web] = [line for line in result.stdout.splitlines() if line.startswith("  channel = web")][:1]
    assert web.endswith("too high")


def test_json_and_a_page(run, table, tmp_path):
    page = tmp_path / "audit.html"
    options = ["--by", "channel,member", "--pairs", "--out", page, "--json"]
    result = run("audit", table, *options)
    assert result.exit_code == 0, result.stderr
    plain = json.loads(result.stdout)
    assert plain["event"] == "yes"
    assert len([each for each in plain["groups"] if len(each["conditions"]) == 2]) == 8
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert str(page) in result.stderr


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (
            ["--by", "country"],
            1,
            "--by names country, which is not an attribute; these are channel",
        ),
        (["--by", "Channel"], 1, "not an attribute (did you mean channel?); these are channel"),
        (
            ["--by", "zip", "--exclude", "zip"],
            1,
            "--by names zip, which --exclude leaves out; the groups of an audit are those of "
            "attributes: take zip out of --exclude",
        ),
        (["--pairs", "--by", "zip"], 2, "--pairs needs two attributes or more"),
        (["--out", "audit.txt"], 2, "the name of a page must end in .html, got audit.txt"),
        (["--label", "nothing"], 1, "nothing"),
    ],
)
def test_options_that_are_refused(run, table, options, code, message):
    result = run("audit", table, *options)
    assert result.exit_code == code
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
