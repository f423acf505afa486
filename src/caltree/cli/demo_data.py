"""The demonstration: a naive Bayes model of made-up loans, calibrated and compared."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder

from .._inputs.arrays import Floats
from ..classifier import CalibratedClassifier
from ..forest import CalibrationForest
from ..metrics import log_loss, rmse
from ..plot.style import COLOURS
from ..reliability import reliability_curve
from ..scaling import IdentityCalibrator, IsotonicScaling, PlattScaling
from ..tree import CalibrationTree

if TYPE_CHECKING:
    from matplotlib.axes import Axes


N_TRAINING = 5_000
N_TEST = 20_000
ATTRIBUTES = (
    "contract",
    "age",
    "household_income",
    "debt_ratio",
    "credit_used",
    "late_payments",
    "years_in_job",
)
LABEL = "defaulted"
SCORES = "p_yes"
CONTRACTS = ("permanent", "self-employed", "student")

UNCALIBRATED = "uncalibrated"
PLATT = "Platt scaling"
ISOTONIC = "isotonic regression"
TREE = "calibration tree"
FOREST = "calibration forest"

_N_BINS = 10


@dataclass(frozen=True)
class Loans:
    """Loans and whether they defaulted."""

    X: npt.NDArray[np.object_]
    y: npt.NDArray[np.str_]
    probability: Floats
    """The true probability of a default, which no model gets to see."""


@dataclass(frozen=True)
class Quality:
    """How good the probabilities of the test rows are."""

    rmse: float
    log_loss: float


@dataclass(frozen=True)
class Comparison:
    """The calibrated test rows."""

    test: Loans
    probabilities: dict[str, Floats]
    """The probability of a default, by the name of the calibrator."""
    quality: dict[str, Quality]
    attainable: Quality
    """Of the true probabilities."""
    tree: CalibrationTree


def make_loans(n_rows: int, random: np.random.Generator) -> Loans:
    """Draw loans at random.

    Every applicant has a financial strain, which no column holds but income, debt, credit used
    and late payments all reflect: a naive Bayes model counts the same evidence four times. What
    the strain means for the log-odds of a default depends on the contract:

    - permanent: -1.3 + 1.2 strain;
    - self-employed for less than five years: 0.8 + 0.3 strain;
    - self-employed for longer: -1.5 - 0.4 strain, since thriving firms borrow;
    - student: -2.7 + 0.1 strain, since the parents stand surety.

    The income is missing for 30 % of the self-employed and 5 % of the others.
    """
    contract = random.choice(CONTRACTS, n_rows, p=[0.5, 0.3, 0.2])
    self_employed, student = contract == "self-employed", contract == "student"
    strain = random.normal(size=n_rows)
    age = np.where(student, random.integers(18, 29, n_rows), random.integers(22, 71, n_rows))
    income = np.exp(random.normal(8.0, 0.35, n_rows) - 0.25 * strain).round(-1)
    debt = np.clip(random.normal(0.35 + 0.13 * strain, 0.06), 0, 1).round(2)
    used = np.clip(random.normal(0.45 + 0.22 * strain, 0.10), 0, 1).round(2)
    late = random.poisson(np.exp(0.6 * strain - 0.9))
    years = np.where(student, random.integers(0, 4, n_rows), random.integers(0, 16, n_rows))
    probability = expit(
        np.select(
            [student, self_employed & (years < 5), self_employed],
            [-2.7 + 0.1 * strain, 0.8 + 0.3 * strain, -1.5 - 0.4 * strain],
            -1.3 + 1.2 * strain,
        )
    )
    income[random.random(n_rows) < np.where(self_employed, 0.3, 0.05)] = np.nan
    X = np.empty((n_rows, len(ATTRIBUTES)), dtype=object)
    for j, column in enumerate((contract, age, income, debt, used, late, years)):
        X[:, j] = column.tolist()
    return Loans(X, np.where(random.random(n_rows) < probability, "yes", "no"), probability)


def compare() -> Comparison:
    """Train a naive Bayes model and four calibrators, and judge them on held-out loans.

    The calibrators are trained on out-of-fold scores; the scores of the test rows come from a
    model fitted to all training rows.
    """
    random = np.random.default_rng(0)
    train, test = make_loans(N_TRAINING, random), make_loans(N_TEST, random)
    calibrators = {
        UNCALIBRATED: IdentityCalibrator(),
        PLATT: PlattScaling(),
        ISOTONIC: IsotonicScaling(),
        TREE: CalibrationTree(),
        FOREST: CalibrationForest(random_state=0),
    }
    models = {
        name: CalibratedClassifier(_naive_bayes(), calibrator).fit(train.X, train.y)
        for name, calibrator in calibrators.items()
    }
    probabilities = {name: model.predict_proba(test.X)[:, 1] for name, model in models.items()}
    return Comparison(
        test,
        probabilities,
        {name: _quality(test.y, column) for name, column in probabilities.items()},
        _quality(test.y, test.probability),
        _with_names(models[TREE].calibrator_),
    )


def draw(comparison: Comparison, file_format: str) -> bytes:
    """The reliability diagrams before and after calibration, overall and by contract."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 5.4), dpi=120, layout="constrained")
    grid = figure.subplots(
        2, 3, sharex=True, sharey="row", gridspec_kw={"height_ratios": [5, 1], "hspace": 0.02}
    )
    names = (UNCALIBRATED, ISOTONIC, TREE)
    titles = ("Naive Bayes, uncalibrated", "Isotonic regression", "Calibration tree")
    for diagram, histogram, name, title in zip(*grid, names, titles, strict=True):
        quality = comparison.quality[name]
        diagram.set_title(title, loc="left", fontsize=13, fontweight="bold")
        figures = f"RMSE {quality.rmse:.4f}   log loss {quality.log_loss:.4f}"
        diagram.text(0.03, 0.96, figures, transform=diagram.transAxes, va="top", fontsize=10)
        _draw_reliability(diagram, comparison, name)
        histogram.hist(comparison.probabilities[name], bins=40, range=(0, 1), color="#999999")
        histogram.set_xlabel("predicted probability of a default")
        histogram.set_yticks([])
        for axes in (diagram, histogram):
            axes.spines[["top", "right"]].set_visible(False)
    grid[0, 0].set_ylabel("observed share of defaults")
    grid[1, 0].set_ylabel("rows")
    grid[0, 2].legend(loc="lower right", frameon=False, title="bins of equally many rows")
    picture = BytesIO()
    figure.savefig(picture, format=file_format)
    return picture.getvalue()


def make_table(comparison: Comparison) -> Any:
    """The held-out loans as an Arrow table: attributes, the scores of naive Bayes, the label."""
    import pyarrow as pa

    test = comparison.test
    columns = [pa.array(column.tolist(), from_pandas=True) for column in test.X.T]
    scores = pa.array(comparison.probabilities[UNCALIBRATED])
    return pa.table([*columns, scores, pa.array(test.y)], names=[*ATTRIBUTES, SCORES, LABEL])


def make_csv(comparison: Comparison) -> bytes:
    """The held-out loans as CSV."""
    from pyarrow.csv import write_csv

    content = BytesIO()
    write_csv(make_table(comparison), content)
    return content.getvalue()


def make_report(comparison: Comparison) -> bytes:
    """The report on the tree and the held-out loans, an HTML page."""
    from ..report import report

    loans = make_table(comparison)
    page = report(
        comparison.tree,
        loans.select(list(ATTRIBUTES)),
        comparison.test.y,
        scores=comparison.probabilities[UNCALIBRATED],
        by=["contract"],
        title="Made-up loans",
    )
    return page.to_html().encode("utf-8")


def _naive_bayes() -> Pipeline:
    numeric = list(range(1, len(ATTRIBUTES)))
    columns = ColumnTransformer(
        [
            ("numeric", SimpleImputer(), numeric),
            ("nominal", OneHotEncoder(sparse_output=False), [0]),
        ]
    )
    return make_pipeline(columns, GaussianNB())


def _quality(y: Any, probability: Floats) -> Quality:
    both = np.column_stack([1.0 - probability, probability])
    return Quality(rmse(y, both), log_loss(y, both))


def _with_names(tree: CalibrationTree) -> CalibrationTree:
    """Name the attributes: an array has no names, and the demonstration needs no pandas."""
    stored = tree.to_dict()
    known = stored["model"]["attributes"]
    known["names"] = list(ATTRIBUTES)
    for column, name in zip(known["columns"], ATTRIBUTES, strict=True):
        column["name"] = name
    return CalibrationTree.from_dict(stored)


def _draw_reliability(axes: Axes, comparison: Comparison, name: str) -> None:
    truth, probability = comparison.test.y == "yes", comparison.probabilities[name]
    contract = comparison.test.X[:, 0]
    axes.plot([0, 1], [0, 1], color="#bbbbbb", linewidth=1, linestyle="--")
    for label, colour in zip(CONTRACTS, COLOURS, strict=False):
        rows = contract == label
        curve = reliability_curve(truth[rows], probability[rows], n_bins=_N_BINS)
        axes.plot(curve.predicted, curve.observed, "o-", color=colour, label=label, markersize=5)
    curve = reliability_curve(truth, probability, n_bins=_N_BINS)
    axes.plot(curve.predicted, curve.observed, "s-", color="black", label="all rows", markersize=4)
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
