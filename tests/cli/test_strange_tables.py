"""Tables with identifiers, and with values that no training row had."""

import json

import pandas as pd
import pytest

from caltree import CalibrationTree

from .conftest import make_visits, write

WARNING = "caltree: warning: "


def with_ids(visits):
    numbers = range(len(visits))
    return visits.assign(customer=[f"customer-{j}" for j in numbers], row=list(numbers))


def warnings_of(result):
    assert result.exit_code == 0, result.output
    return [line for line in result.stderr.splitlines() if line.startswith(WARNING)]


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_identifiers_are_left_out(run, visits, ending):
    write(with_ids(visits), f"scored.{ending}")
    result = run("fit", f"scored.{ending}", "--out", "model.json")
    [line] = warnings_of(result)
    assert line == (
        "caltree: warning: attributes 'customer', 'row' look like identifiers (nearly every row "
        "has a value of its own) and are left out; to keep such columns, name all attributes with "
        "--attributes"
    )
    assert "  attributes  channel, age, member, zip\n" in result.stderr
    with open("model.json") as file:
        assert "customer-" not in file.read()
    assert "customer: not used\n" in run("show", "model.json").stdout
    # They need not be there any more, and nothing else becomes of them.
    new = make_visits(50, seed=1)
    write(new, "new.csv")
    write(with_ids(new), "more.csv")
    assert not warnings_of(run("apply", "model.json", "new.csv", "--out", "new.parquet"))
    assert not warnings_of(run("apply", "model.json", "more.csv", "--out", "more.parquet"))
    one, other = pd.read_parquet("new.parquet"), pd.read_parquet("more.parquet")
    assert (other["customer"] == with_ids(new)["customer"]).all()
    assert one.equals(other[one.columns])
    names = "channel,age,member,zip"
    renamed = run("apply", "model.json", "new.csv", "--attributes", names, "--out", "r.parquet")
    assert not warnings_of(renamed) and pd.read_parquet("r.parquet").equals(one)


def test_identifiers_that_are_named_are_kept(run, visits):
    write(with_ids(visits), "scored.csv")
    named = run("fit", "scored.csv", "--attributes", "age,row,customer", "--out", "named.json")
    assert not warnings_of(named)
    assert CalibrationTree.load("named.json").model_.attributes.used_names == [
        "age",
        "row",
        "customer",
    ]
    [line] = warnings_of(
        run("fit", "scored.csv", "--categorical", "customer", "--out", "called.json")
    )
    assert "attribute 'row' looks like an identifier" in line


def test_the_published_method_keeps_identifiers(run, visits):
    write(with_ids(visits[:200]), "scored.csv")
    [line] = warnings_of(run("fit", "scored.csv", "--calibrator", "published", "--out", "m.json"))
    assert line.endswith("; the published method keeps such columns; leave them out with --exclude")


def changed(n_rows=300):
    """Visits by a new channel, some of a person without a known membership."""
    new = make_visits(n_rows, seed=2).astype({"member": object})
    new.loc[::3, "channel"] = "phone"
    new.loc[:9, "member"] = None
    return new


EXPECTED = (
    ": some of 300 rows have values that no training row had: 'channel': a new category such as "
    "'phone' in 100 rows; 'member': missing in 10 rows, though never in training. "
)


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_apply_counts_new_values_over_all_batches(run, model, monkeypatch, n_jobs):
    from caltree.cli.io import sources

    monkeypatch.setattr(sources, "_MOST_ROWS", 32)
    monkeypatch.setattr(sources, "_FEWEST_ROWS", 32)
    monkeypatch.setattr(sources, "_BLOCK", 700)
    write(changed(), "new.csv")
    options = ("--out", "out.csv", "--n-jobs", n_jobs, "--quiet")
    [line] = warnings_of(run("apply", model, "new.csv", *options))
    assert line.startswith(f"{WARNING}new.csv{EXPECTED}")


def test_evaluate_counts_new_values(run, model):
    write(changed(), "new.csv")
    [line] = warnings_of(run("evaluate", model, "new.csv"))
    assert line.startswith(f"{WARNING}new.csv{EXPECTED}")
    result = run("evaluate", model, "new.csv", "--json")
    found = json.loads(result.stdout)["unseen"]
    assert [(each["attribute"], each["new_category"]) for each in found] == [
        ("channel", 100),
        ("member", 0),
    ]


def test_report_counts_new_values(run, model):
    write(changed(), "new.csv")
    [line] = warnings_of(run("report", model, "new.csv", "--out", "page.html"))
    assert line.startswith(f"{WARNING}some of 300 rows")
    with open("page.html") as file:
        assert "a new category such as &#39;phone&#39; in 100 rows" in file.read()


def test_nothing_new_is_nothing_to_say(run, model):
    write(make_visits(300, seed=2), "new.csv")
    assert not warnings_of(run("apply", model, "new.csv", "--out", "out.csv"))
    assert not warnings_of(run("evaluate", model, "new.csv"))
