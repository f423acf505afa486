"""`caltree demo`, as it is installed and from within."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.metrics import log_loss

import caltree
from caltree import cli
from caltree.cli import demo_data as demo
from caltree.metrics import rmse

SCRIPT = Path(sysconfig.get_path("scripts")) / "caltree"
PNG = b"\x89PNG\r\n\x1a\n"
FILES = ["caltree-demo.csv", "caltree-demo.html", "caltree-demo.png"]
PNG_END = b"IEND\xaeB`\x82"


@pytest.fixture(scope="module")
def comparison():
    return demo.compare()


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the command in an empty folder, from within."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        return CliRunner().invoke(cli.make_command(), arguments, prog_name="caltree")

    return run


@pytest.fixture
def quick(comparison, monkeypatch):
    """The comparison is there already, and the report is a word."""
    monkeypatch.setattr(demo, "compare", lambda: comparison)
    monkeypatch.setattr(demo, "make_report", lambda _: b"report")


@pytest.fixture
def no_work(monkeypatch):
    """Fail if the calibrators are trained at all."""

    def compare():
        raise AssertionError("the work was done before the complaint")

    monkeypatch.setattr(demo, "compare", compare)


def run_installed(*arguments, folder, code=None):
    command = [SCRIPT] if code is None else [sys.executable, "-c", code]
    return subprocess.run(
        [*command, *arguments],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )


def table_rows(output):
    """The figures of the printed table, and where a best one is marked."""
    rows = {}
    for line in output.splitlines():
        cells = [cell.strip() for cell in line.split("│")[1:-1]]
        if len(cells) == 3:
            rows[cells[0]] = cells[1:]
    return rows


# As it is installed


def test_the_installed_command_compares_and_draws(tmp_path, comparison):
    done = run_installed("demo", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    rows = table_rows(done.stdout)
    assert list(rows) == [*comparison.quality, "the true probabilities"]
    for name, quality in comparison.quality.items():
        printed = [float(cell.removesuffix(" *")) for cell in rows[name]]
        assert printed == [round(quality.rmse, 4), round(quality.log_loss, 4)]
    assert comparison.tree.to_text() in done.stdout
    assert "\x1b" not in done.stdout
    assert sorted(os.listdir(tmp_path)) == FILES
    for name in FILES:
        assert f": {name}\n" in done.stdout
    page = (tmp_path / "caltree-demo.html").read_text(encoding="utf-8")
    assert "Made-up loans" in page
    picture = (tmp_path / "caltree-demo.png").read_bytes()
    assert picture.startswith(PNG) and picture.endswith(PNG_END)


def test_the_installed_command_knows_its_version(tmp_path):
    done = run_installed("--version", folder=tmp_path)
    assert done.stdout == f"caltree, version {caltree.__version__}\n"


@pytest.mark.parametrize(
    ("module", "remedy"),
    [
        ("click", "caltree[cli]"),
        ("rich", "caltree[cli]"),
        ("matplotlib", "caltree[plot]"),
        ("jinja2", "caltree[report]"),
    ],
)
def test_a_missing_extra_is_named_in_one_line(tmp_path, module, remedy):
    code = f"import sys; sys.modules[{module!r}] = None; from caltree.cli import main; main()"
    done = run_installed("demo", folder=tmp_path, code=code)
    assert done.returncode == 1
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert line.startswith(f"caltree: {module} is not installed; run: pip install ")
    assert f'"{remedy}"' in line
    assert os.listdir(tmp_path) == []


def test_importing_the_package_imports_nothing_of_the_command(tmp_path):
    code = (
        "import sys, caltree; "
        "print(set(sys.modules) & {'click', 'rich', 'matplotlib', 'caltree.cli'})"
    )
    assert run_installed(folder=tmp_path, code=code).stdout == "set()\n"


# From within


@pytest.mark.parametrize("arguments", [["--help"], ["demo", "--help"]])
def test_help_is_given(run, arguments):
    result = run(*arguments)
    assert result.exit_code == 0
    assert ("--plot" if "demo" in arguments else "demo") in result.output


def test_no_files_need_no_matplotlib_and_write_nothing(run, comparison, monkeypatch, tmp_path):
    monkeypatch.setattr(demo, "compare", lambda: comparison)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("demo", "--no-files")
    assert result.exit_code == 0
    assert "calibration tree" in table_rows(result.output)
    assert "caltree-demo" not in result.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "start"), [("a.PNG", PNG), ("b.svg", b"<?xml"), ("c.pdf", b"%PDF")]
)
@pytest.mark.usefixtures("quick")
def test_the_ending_says_what_kind_of_picture(run, tmp_path, name, start):
    Path(name).write_bytes(b"an older picture")
    result = run("demo", "--plot", name)
    assert result.exit_code == 0
    assert f"Reliability diagrams: {name}" in result.output
    assert sorted(os.listdir(tmp_path)) == sorted([name, *FILES[:2]])
    assert Path(name).read_bytes().startswith(start)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("nowhere/picture.png", "No such file or directory; check the path"),
        ("file.txt/picture.png", "Not a directory; check the path"),
        ("folder.png", "it is a folder; give the name of a file"),
        ("picture", "its name must end in .png, .pdf or .svg"),
        ("picture.doc", "its name must end in .png, .pdf or .svg"),
    ],
)
def test_a_picture_that_cannot_be_written_is_one_line_before_the_work(run, output, reason):
    Path("folder.png").mkdir()
    Path("file.txt").touch()
    result = run("demo", "--plot", output)
    assert result.exit_code == 1
    assert result.output == f"caltree: error: cannot write {output}: {reason}\n"


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("option", ["--report", "--table"])
def test_every_file_is_checked_before_the_work(run, option):
    result = run("demo", option, "nowhere/file.html")
    assert result.exit_code == 1
    assert result.output == (
        "caltree: error: cannot write nowhere/file.html: No such file or directory; "
        "check the path\n"
    )


@pytest.mark.usefixtures("no_work")
def test_a_report_that_is_no_page_is_a_wrong_option(run):
    result = run("demo", "--report", "page.txt")
    assert result.exit_code == 2 and "must end in .html" in result.output


@pytest.mark.usefixtures("no_work")
@pytest.mark.skipif(os.name != "posix", reason="folders have other permissions there")
@pytest.mark.skipif(
    os.name == "posix" and os.geteuid() == 0, reason="all is allowed to the superuser"
)
def test_a_folder_that_is_read_only_is_known_before_the_work(run, tmp_path):
    tmp_path.chmod(0o500)
    result = run("demo")
    assert result.exit_code == 1
    assert result.output == (
        "caltree: error: cannot write caltree-demo.png: Permission denied; check the permissions\n"
    )


@pytest.mark.usefixtures("quick")
def test_a_picture_that_fails_leaves_the_older_one(run, monkeypatch, tmp_path):
    def replace(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", replace)
    Path("caltree-demo.png").write_bytes(b"an older picture")
    result = run("demo")
    assert result.exit_code == 1
    assert (
        "caltree: error: cannot write caltree-demo.png: No space left on device; make room or "
        "choose another place\n"
    ) in result.output
    assert os.listdir(tmp_path) == ["caltree-demo.png"]
    assert Path("caltree-demo.png").read_bytes() == b"an older picture"


def test_only_the_best_figures_are_marked(run, comparison, monkeypatch):
    monkeypatch.setattr(demo, "compare", lambda: comparison)
    rows = table_rows(run("demo", "--no-files").output)
    for column, measure in enumerate(["rmse", "log_loss"]):
        marked = [name for name, cells in rows.items() if cells[column].endswith("*")]
        quality = comparison.quality
        assert marked == [min(quality, key=lambda name: getattr(quality[name], measure))]


@pytest.mark.parametrize("module", ["click", "rich"])
def test_main_says_what_to_install(monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SystemExit, match=f'{module} is not installed; run: pip install "caltree'):
        cli.main()


def test_main_hides_no_other_missing_module(monkeypatch):
    def make_command():
        raise ModuleNotFoundError("No module named 'other'", name="other")

    monkeypatch.setattr(cli, "make_command", make_command)
    with pytest.raises(ModuleNotFoundError, match="other"):
        cli.main()


@pytest.mark.usefixtures("quick")
def test_the_table_is_one_for_the_other_commands(run, comparison):
    assert run("demo").exit_code == 0
    fitted = run("fit", "caltree-demo.csv", "--label", "defaulted", "--scores", "p_yes",
                 "--calibrator", "platt", "--out", "model.json")  # fmt: skip
    assert fitted.exit_code == 0, fitted.output
    model = caltree.load("model.json")
    expected = caltree.PlattScaling().fit(
        None, comparison.test.y, comparison.probabilities[demo.UNCALIBRATED]
    )
    some = [0.1, 0.5, 0.9]
    assert np.array_equal(model.predict_proba(None, some), expected.predict_proba(None, some))


# What is demonstrated


def test_the_loans_follow_their_rules():
    loans = demo.make_loans(40_000, np.random.default_rng(5))
    assert (loans.y == "yes").mean() == pytest.approx(loans.probability.mean(), abs=0.01)
    contract, income = loans.X[:, 0], loans.X[:, 2].astype(float)
    years = loans.X[:, demo.ATTRIBUTES.index("years_in_job")]
    assert set(contract) == set(demo.CONTRACTS)
    own = contract == "self-employed"
    assert np.isnan(income[own]).mean() == pytest.approx(0.3, abs=0.02)
    assert np.isnan(income[~own]).mean() == pytest.approx(0.05, abs=0.01)
    defaults = loans.y == "yes"
    assert defaults[own & (years < 5)].mean() > 0.6
    assert defaults[own & (years >= 5)].mean() < 0.3
    assert defaults[contract == "student"].mean() < 0.1


def test_the_qualities_are_those_of_held_out_rows(comparison):
    y = comparison.test.y
    assert len(y) == demo.N_TEST
    for name, p in comparison.probabilities.items():
        both = np.column_stack([1 - p, p])
        assert comparison.quality[name] == demo.Quality(rmse(y, both), log_loss(y, both))


def test_no_calibrator_beats_the_true_probabilities(comparison):
    for quality in comparison.quality.values():
        assert quality.rmse > comparison.attainable.rmse
        assert quality.log_loss > comparison.attainable.log_loss


def test_the_tree_is_named_and_small_enough_to_read(comparison):
    text = comparison.tree.to_text()
    assert "contract = self-employed" in text and "x0" not in text
    assert len(text.splitlines()) < 60


def test_the_named_tree_predicts_as_the_fitted_one(comparison):
    frame = pytest.importorskip("pandas").DataFrame(
        comparison.test.X, columns=list(demo.ATTRIBUTES)
    )
    p = comparison.tree.predict_proba(frame, scores=comparison.probabilities[demo.UNCALIBRATED])
    assert np.array_equal(p[:, 1], comparison.probabilities[demo.TREE])
