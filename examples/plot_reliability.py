"""
Before and after, seen in reliability diagrams
==============================================

Naive Bayes counts evidence twice where attributes are correlated, so it is far too sure. A
reliability diagram shows this: it has the predicted probability from left to right, and the
observed frequency from bottom to top.
"""

# %%
# In these made-up data, the scores are wrong in different ways in different regions. The
# calibrators are fitted to out-of-fold scores, and have not seen the rows that are used below.

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from caltree import CalibratedClassifier, CalibrationForest, CalibrationTree, PlattScaling
from caltree.metrics import rmse
from caltree.plot import ReliabilityDisplay

X, y = make_classification(
    8000, n_informative=6, n_redundant=6, n_clusters_per_class=4, random_state=0
)
X, X_new, y, y_new = train_test_split(X, y, test_size=0.5, random_state=0)

calibrators = {
    "Platt scaling": PlattScaling(),
    "tree": CalibrationTree(),
    "forest": CalibrationForest(random_state=0),
}
models = {
    name: CalibratedClassifier(GaussianNB(), calibrator).fit(X, y)
    for name, calibrator in calibrators.items()
}

# %%
# To draw several models in one diagram, give each the axes of the one before.

before = models["tree"].estimator_.predict_proba(X_new)
display = ReliabilityDisplay.from_predictions(y_new, before, name="naive Bayes")
for name in ("Platt scaling", "tree"):
    display = ReliabilityDisplay.from_estimator(
        models[name], X_new, y_new, name=name, ax=display.ax_
    )
plt.show()

# %%
# A curve on the diagonal says that probabilities are right on average over all rows with the same
# prediction. It does not say that they are sharp: compare the errors, too.

print(f"naive Bayes    {rmse(y_new, before):.3f}")
for name, model in models.items():
    print(f"{name:<13}  {rmse(y_new, model.predict_proba(X_new)):.3f}")
