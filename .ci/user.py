"""The program of a user whose types are checked by a strict mypy, and which is then run.

Every result that has a type is used as that type: `Any` in its place would be an error.
"""

from pathlib import Path
from typing import assert_type

import numpy as np
import numpy.typing as npt

import caltree
from caltree import (
    CalibratedClassifier,
    CalibrationBoosting,
    CalibrationEnsemble,
    CalibrationForest,
    CalibrationTree,
    LogisticModelTree,
    metrics,
    plot,
    report,
)

Floats = npt.NDArray[np.float64]

random = np.random.default_rng(0)
X = random.random((400, 2))
scores = random.random(400)
y = random.random(400) < np.where(X[:, 0] < 0.5, scores, scores / 2)

tree = assert_type(CalibrationTree(random_state=0).fit(X, y, scores=scores), CalibrationTree)
after = assert_type(tree.predict_proba(X, scores=scores), Floats)
assert_type(tree.get_n_leaves(), int)
assert_type(tree.to_text(), str)

tree.save("tree.json")
assert_type(CalibrationTree.load("tree.json"), CalibrationTree)
read = caltree.load(Path("tree.json"))
assert isinstance(read, CalibrationTree)
assert np.array_equal(read.predict_proba(X, scores=scores), after)
assert assert_type(tree.to_sql("sqlite", scores="p")[True], str)

tree.fit_intervals(X, y, scores=scores)
assert_type(tree.predict_interval(X, scores=scores), Floats)

forest = CalibrationForest(n_estimators=10, random_state=0).fit(X, y, scores=scores)
assert_type(forest, CalibrationForest)
boosting = CalibrationBoosting(random_state=0).fit(X, y, scores=scores)
assert_type(boosting.predict_proba(X, scores=scores), Floats)
assert_type(CalibrationEnsemble(), CalibrationEnsemble)

classifier = CalibratedClassifier(LogisticModelTree(), CalibrationTree(), cv=3).fit(X, y)
assert_type(classifier, CalibratedClassifier)
assert_type(classifier.predict_proba(X), Floats)

found = assert_type(caltree.audit(X, y, scores), caltree.Audit)
assert_type(found.is_calibrated, bool)
found.save("audit.html")
page = assert_type(report.report(tree, X, y, scores), report.Report)
page.save("report.html")

assert_type(metrics.log_loss(y, after), float)
assert_type(metrics.brier_split(y, after), metrics.BrierSplit)
assert_type(metrics.multicalibration_error(X, y, after).error, float)
assert_type(metrics.smooth_calibration_error(y, after), float)
display = plot.ReliabilityDisplay.from_predictions(y, after[:, 1])
assert_type(display, plot.ReliabilityDisplay)
print(len(found.to_text()), len(page.to_html()))
