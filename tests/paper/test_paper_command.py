"""`caltree paper`, from within: what it prints, what it writes, and how it complains."""

import re
import sys
import time
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from urllib.error import URLError

import pandas as pd
import pytest
from click.testing import CliRunner

from caltree import cli
from caltree.paper import command, datasets, experiment, figures, progress, protocol, published
from caltree.paper.data import DataSet
from caltree.paper.generators import rdg1
from caltree.paper.store import Cell, Shape, Store
from tests.support.paper_data import write_arff, write_data

RUN = ["run", "--learners", "naive_bayes", "--calibrators", "none", "--runs", "1", "--folds", "2"]


@pytest.fixture
def paper(tmp_path, monkeypatch):
    """Run the command in an empty folder, or in one with the data sets in `data`."""
    monkeypatch.chdir(tmp_path)
    experiment._load.cache_clear()

    def paper(*arguments, code=0, **environment):
        given = ["paper", *map(str, arguments)]
        result = CliRunner(env=environment).invoke(cli.make_command(), given, prog_name="caltree")
        assert result.exit_code == code, result.output
        assert code == 0 or isinstance(result.exception, SystemExit)
        return result

    return paper


@pytest.fixture
def data(tmp_path):
    return write_data(tmp_path / "data", n_rows=30)


@pytest.fixture
def no_work(monkeypatch):
    """Fail if any fold is carried out."""

    def run_fold(*given, **options):
        raise AssertionError("the work was done before the complaint")

    monkeypatch.setattr(experiment, "run_fold", run_fold)


def complaint(result):
    """The only line that is printed."""
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    assert line.startswith("caltree: error: ")
    return line


# Help


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["run", "tables", "export", "import", "figures"]),
        (["run"], ["--datasets", "[default: small]", "--scheduler", "caltree-paper.sqlite"]),
        (["tables"], ["--store", "--output", "--pooled"]),
        (["figures"], ["--data-dir", "[png|pdf|svg]"]),
    ],
)
def test_help(paper, arguments, words):
    shown = " ".join(paper(*arguments, "--help").output.split())
    assert all(word in shown for word in words)


def test_the_defaults_are_the_four_learners_of_data_sets_that_anybody_can_get(paper, monkeypatch):
    plans = []

    def carry_out(plan, store, options):
        plans.append(plan)
        return []

    monkeypatch.setattr(command, "_carry_out", carry_out)
    paper("run")
    [plan] = plans
    assert plan == experiment.Plan(
        command.SMALL, published.LEARNERS, ("none", "pct", "platt", "isotonic"), 10, 10, 1, None
    )
    assert set(command.SMALL) <= set(datasets.NAMES)
    assert Path("caltree-paper.sqlite").is_file()


# Running


def test_folds_are_carried_out_once(paper, data, monkeypatch):
    first = paper(*RUN, "--datasets", "vote, sick", "--data-dir", "data")
    last = "4 of 4 folds are in caltree-paper.sqlite\n"
    assert first.stdout == "" and first.stderr.endswith(last)
    done = Store("caltree-paper.sqlite").done()
    assert {cell.dataset for cell in done} == {"sick", "vote"}
    monkeypatch.setattr(experiment, "run_fold", None)
    again = paper(*RUN, "--datasets", "vote,sick", "--data-dir", "data")
    assert again.stderr == last


def test_all_options_reach_the_plan(paper, data):
    paper(
        *("run", "--datasets", "sick", "--learners", "naive_bayes", "--calibrators", "all"),
        *("--runs", 2, "--folds", 3, "--seed", 7, "--jobs", 1, "--data-dir", data),
        *("--store", "here.db"),
    )
    store = Store("here.db")
    assert store.settings() == {"folds": "3", "seed": "7"}
    cells = [Cell("sick", "naive_bayes", run, fold) for run in range(2) for fold in range(3)]
    assert store.done() == {cell: set(protocol.CALIBRATORS) for cell in cells}
    expected = protocol.run_fold(
        datasets.load("sick", data), "naive_bayes", 1, 2, ["pct"], n_folds=3, seed=7
    )
    found = store.results("sick", "naive_bayes", "pct")
    assert found[1, 2] == expected.measures["pct"]["rmse"]


def test_quiet_says_nothing(paper, data):
    result = paper(*RUN, "--datasets", "vote", "--data-dir", data, "--quiet", FORCE_COLOR="1")
    assert result.output == ""


def test_progress_is_a_bar_on_a_terminal(paper, data):
    # What rich takes for a terminal.
    result = paper(*RUN, "--datasets", "vote", "--data-dir", data, FORCE_COLOR="1", COLUMNS="120")
    assert "vote, naive_bayes, run 1, fold 2" in result.stderr
    assert "2/2" in result.stderr and ", 2 of 2, left: " not in result.stderr
    assert result.stderr.endswith("2 of 2 folds are in caltree-paper.sqlite\n")
    assert result.stdout == ""


def test_progress_is_a_line_a_fold_in_a_log(paper, data, monkeypatch):
    clock = iter([100.0, 190.0, 220.0, 340.0])  # the start, and the end of each fold
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))

    def run_fold(data, learner, run, fold, calibrators, **options):
        if (data.name, fold) == ("sick", 0):
            raise ValueError("too hard")
        return protocol.Outcome({"none": {"rmse": 0.5}}, {"naive_bayes": 1.25, "calibrator": 2.0})

    monkeypatch.setattr(experiment, "run_fold", run_fold)
    given = (*RUN, "--data-dir", data)
    paper(*given, "--datasets", "vote", "--first-folds", 1, "--quiet")
    result = paper(*given, "--datasets", "vote,sick", code=1)
    assert result.stdout == ""
    assert result.stderr.splitlines()[:4] == [
        "vote, naive_bayes, run 1, fold 2: 3.2 s, 2 of 4, left: 0:03:00",
        "sick, naive_bayes, run 1, fold 1: failed, 3 of 4, left: 0:01:00",
        "sick, naive_bayes, run 1, fold 2: 3.2 s, 4 of 4, left: 0:00:00",
        "3 of 4 folds are in caltree-paper.sqlite",
    ]


def test_a_long_path_stays_in_one_line(paper, data):
    long = "-".join(["[red]long"] * 12) + ".sqlite"
    result = paper(*RUN, "--datasets", "vote", "--data-dir", data, "--store", long)
    assert result.stderr.splitlines()[-1] == f"2 of 2 folds are in {long}"


def test_failed_folds_are_named(paper, data, monkeypatch):
    def run_fold(data, learner, run, fold, calibrators, **options):
        if fold == 1:
            raise ValueError("too\nhard")
        return protocol.run_fold(data, learner, run, fold, calibrators, **options)

    monkeypatch.setattr(experiment, "run_fold", run_fold)
    given = (*RUN, "--datasets", "vote,sick", "--data-dir", data)
    result = paper(*given, "--quiet", code=1)
    assert result.stderr.splitlines() == [
        "failed: vote, naive_bayes, run 1, fold 2: hard",
        "failed: sick, naive_bayes, run 1, fold 2: hard",
        "caltree: error: folds that failed: 2; run it again to retry",
    ]
    monkeypatch.setattr(experiment, "run_fold", protocol.run_fold)
    assert "\n4 of 4 folds are in " in paper(*given).stderr


# Complaints


@pytest.mark.parametrize(
    ("option", "given", "message"),
    [
        ("--datasets", "vote,iris,wine", "iris, wine is not among audiology, .* small"),
        ("--datasets", "vote,vote", "it names vote twice"),
        ("--learners", "forest", "forest is not among naive_bayes, .*, or all"),
        ("--learners", "small", "small is not among naive_bayes"),
        ("--calibrators", "beta", "beta is not among pct, platt, isotonic, none, tree"),
    ],
)
def test_unknown_names_are_refused(paper, no_work, option, given, message):
    line = complaint(paper(*RUN, option, given, code=2))
    assert re.match(f"caltree: error: Invalid value for '{option}': {message}", line)


def test_a_folder_that_is_none_is_refused(paper, no_work, tmp_path):
    line = complaint(paper(*RUN, "--data-dir", "nowhere", code=1))
    assert line == f"caltree: error: --data-dir: {tmp_path / 'nowhere'} is not a folder"
    (tmp_path / "file").touch()
    assert "file is not a folder" in complaint(paper("figures", "--data-dir", "file", code=1))


def test_all_missing_data_sets_are_named_before_anything_is_done(paper, data, no_work):
    line = complaint(paper(*RUN, "--datasets", "vote,yeast,sick,vowel", "--data-dir", data, code=1))
    assert "missing data sets: yeast, vowel; of the first: data_dir has neither" in line
    assert not Path("caltree-paper.sqlite").exists()
    line = complaint(paper(*RUN, "--datasets", "vote,bankruptcy,led24", code=1))
    assert line.startswith(
        "caltree: error: bankruptcy is not on OpenML as far as we know; give a folder"
    )


def test_without_a_network_it_is_one_line(paper, no_work, tmp_path, monkeypatch):
    class Offline(urllib.request.HTTPSHandler):
        def https_open(self, request):
            raise URLError("Name or service not known")

    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "cache"))
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    monkeypatch.setattr(urllib.request, "_opener", urllib.request.build_opener(Offline()))
    for given in ((*RUN, "--datasets", "vote"), ("figures",)):
        line = complaint(paper(*given, code=1))
        assert "could not be fetched from OpenML" in line and "give a folder" in line


@pytest.mark.parametrize("subcommand", ["run", "tables"])
def test_a_store_that_is_none_is_refused(paper, data, no_work, subcommand):
    Path("notes.txt").write_text("rmse: 0.1\n" * 100)
    given = (*RUN, "--datasets", "vote", "--data-dir", data) if subcommand == "run" else ["tables"]
    line = complaint(paper(*given, "--store", "notes.txt", code=1))
    assert line.startswith("caltree: error: cannot use notes.txt as a file of results: ")
    assert Path("notes.txt").read_text() == "rmse: 0.1\n" * 100


def test_no_jobs_at_all_is_one_line(paper, data, no_work):
    line = complaint(paper(*RUN, "--datasets", "vote", "--data-dir", data, "--jobs", 0, code=1))
    assert "n_jobs == 0" in line


def test_other_settings_are_refused(paper, data):
    paper(*RUN, "--datasets", "vote", "--data-dir", data)
    line = complaint(paper(*RUN, "--datasets", "vote", "--data-dir", data, "--seed", 2, code=1))
    assert line.startswith(
        "caltree: error: caltree-paper.sqlite was made with seed = 1, not 2; use another"
    )


def test_tables_of_nothing_are_refused(paper):
    line = complaint(paper("tables", code=1))
    assert line == "caltree: error: caltree-paper.sqlite does not exist; run the experiments first"
    assert not Path("caltree-paper.sqlite").exists()


@pytest.mark.parametrize(
    ("module", "given"), [("psutil", [*RUN, "--datasets", "vote"]), ("matplotlib", ["figures"])]
)
def test_what_is_not_installed_is_named(paper, data, monkeypatch, module, given):
    imported = [name for name in sys.modules if name.startswith(f"{module}.")]
    for name in [module, *imported]:
        monkeypatch.setitem(sys.modules, name, None)
    line = complaint(paper(*given, "--data-dir", data, code=1))
    assert line == f'caltree: error: {module} is not installed; run: pip install "caltree[paper]"'


# Tables


@pytest.fixture
def results(paper):
    """Two folds of a run, of five rows."""
    store = Store("caltree-paper.sqlite", {"folds": "2", "seed": "1"})
    store.add_dataset("vote", Shape(5, 16, 2, "", "5 rows; the paper has 435."))
    for fold, value in enumerate((0.1, 0.3)):
        measures = {"pct": {"rmse": value}, "platt": {"rmse": value + 1 / 3}}
        store.add(Cell("vote", "svm", 0, fold), measures, {"svm": 3.6, "calibrator pct": 0.36})
    return store


def test_tables_are_printed(paper, results):
    shown = paper("tables")
    assert shown.stderr == ""
    for number in range(1, 7):
        assert f"**Table {number}: " in shown.stdout
    printed = [f"{published.rmse('svm', 'vote', name):.3f}" for name in published.CALIBRATORS]
    row = "| vote | 2 | 0.200 | {} | 0.533 | ● | {} |  |  |  | {} |  |".format(*printed)
    assert row in shown.stdout
    assert "**Figures more than 0.02 from the printed ones**" in shown.stdout
    assert "everything" not in shown.stdout  # which is what `cost` prints
    assert r"\caption{Table 5: RMSE" in paper("tables", "--format", "latex").stdout


def test_pooled_tables(paper, results):
    shown = paper("tables", "--pooled").stdout
    assert "Table 5: pooled RMSE of calibrated SVMs" in shown
    # sqrt((3 * 0.1**2 + 2 * 0.3**2) / 5)
    assert "| vote | 2 | 0.205 |" in shown


def test_the_cost_is_printed_alone(paper, results):
    shown = paper("cost").stdout
    assert shown.startswith("**Cost in sum**")
    assert "**Cost of all data sets**" in shown and "Table 1" not in shown
    assert "| everything |  | 1 | 128 | 0.110 |" in shown
    # Of the stored data sets alone, unless told.
    assert paper("cost", "--datasets", "vote").stdout == shown
    assert paper("cost", "--datasets", "all").stdout != shown


def test_first_folds_alone(paper, data):
    given = [*RUN, "--datasets", "sick", "--data-dir", data, "--first-folds", "1"]
    assert "1 of 1 folds" in paper(*given).stderr


def test_tables_are_written_in_three_forms(paper, results):
    printed = paper("tables", "--output", "out/tables").stdout
    folder = Path("out/tables")
    names = [*(f"table-{number}" for number in range(1, 7))]
    names += ["order", "tests-that-differ", "figures-that-differ", "own", "own-log-loss"]
    expected = {f"{name}.{ending}" for name in names for ending in ("tex", "csv")}
    assert {path.name for path in folder.iterdir()} == expected | {"tables.md"}
    assert (folder / "tables.md").read_text(encoding="utf-8") == printed.removesuffix("\n")
    svm = pd.read_csv(folder / "table-5.csv").iloc[0]
    assert (svm["PCT"], svm["PS"]) == (0.2, 0.2 + 1 / 3)
    assert (svm["PS mark"], svm["PCT paper"]) == ("●", published.rmse("svm", "vote"))
    latex = (folder / "table-5.tex").read_text(encoding="utf-8")
    assert re.search(r"^vote & 2 & 0.200 & 0\.\d{3} & 0.533 & \$\\bullet\$ & ", latex, re.MULTILINE)


def test_results_are_exported_and_imported(paper, results):
    assert paper("export", "results.json").output == ""
    assert paper("import", "results.json", "--store", "again.sqlite").output == ""
    assert paper("tables", "--store", "again.sqlite").stdout == paper("tables").stdout
    Path("other.json").write_text('{"format": "none"}', encoding="utf-8")
    line = complaint(paper("import", "other.json", "--store", "new.sqlite", code=1))
    assert line.startswith("caltree: error: cannot read other.json: its format is 'none'")
    assert not Path("new.sqlite").exists()
    Path("broken.json").write_text('{"format": "caltree-paper-results-1"}', encoding="utf-8")
    line = complaint(paper("import", "broken.json", "--store", "new.sqlite", code=1))
    assert "'datasets'" in line


def test_what_cannot_be_written_is_one_line(paper, results):
    Path("out/table-1.csv").mkdir(parents=True)
    shown = paper("tables", "--output", "out", code=1)
    [line] = shown.stderr.splitlines()
    assert line.startswith("caltree: error: ") and "table-1.csv" in line
    assert {path.name for path in Path("out").iterdir()} == {"table-1.csv", "table-1.tex"}


# Figures


@pytest.fixture
def diagram_data(tmp_path):
    folder = write_data(tmp_path / "data", figures.DIAGRAMS, 50)
    text = (folder / "nursery.arff").read_text()
    (folder / "nursery.arff").write_text(text.replace("c0", "priority").replace("c1", "spec_prior"))
    return folder


def test_figures_are_written(paper, diagram_data, monkeypatch):
    monkeypatch.setattr(figures, "DIAGRAMS", ("nursery", "vote"))
    shown = paper("figures", "--data-dir", diagram_data)
    folder = Path("caltree-paper-figures")
    paths = [folder / f"{name}.png" for name in ("reliability", "artificial", "tree")]
    assert shown.stdout.splitlines() == [str(path) for path in paths]
    assert sorted(folder.iterdir()) == sorted(paths)
    for path in paths:
        picture = path.read_bytes()
        assert picture.startswith(b"\x89PNG\r\n\x1a\n") and picture.endswith(b"IEND\xaeB`\x82")


@pytest.mark.parametrize(("ending", "start"), [("pdf", b"%PDF-"), ("svg", b"<?xml")])
def test_other_formats_of_figures(paper, diagram_data, monkeypatch, ending, start):
    from matplotlib.figure import Figure

    for name in ("reliability_figure", "artificial_figure", "tree_figure"):
        monkeypatch.setattr(figures, name, lambda *data: Figure())
    paper("figures", "--data-dir", diagram_data, "--format", ending, "--output", "a/b")
    written = sorted(Path("a/b").iterdir())
    assert [path.name for path in written] == [
        f"{name}.{ending}" for name in ("artificial", "reliability", "tree")
    ]
    assert all(path.read_bytes().startswith(start) for path in written)


def test_figures_need_their_data_sets(paper, data):
    line = complaint(paper("figures", "--data-dir", data, code=1))
    assert "missing data sets: credit-rating, kr-vs-kp, nursery; of the first: " in line
    assert not Path("caltree-paper-figures").exists()


def test_three_classes_cannot_be_drawn(paper, diagram_data):
    rows = rdg1(40)
    rows.y[:9] = "c2"
    three = DataSet("sick", rows.X, rows.y, ("c0", "c1", "c2"), ())
    write_arff(diagram_data / "sick.arff", three)
    line = complaint(paper("figures", "--data-dir", diagram_data, code=1))
    assert line == "caltree: error: a reliability diagram needs two classes, sick has 3"
