"""
Ten classes at once
===================

The classes are calibrated together, not one against the rest. So the probabilities of a row sum
to 1 by construction.
"""

# %%
# Handwritten digits, and naive Bayes, which treats the pixels as independent.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from caltree import CalibratedClassifier, CalibrationForest
from caltree.metrics import log_loss
from caltree.plot import ReliabilityDisplay

X, y = load_digits(return_X_y=True)
X, X_new, y, y_new = train_test_split(X, y, random_state=0)
model = CalibratedClassifier(GaussianNB(), CalibrationForest(random_state=0)).fit(X, y)

before, after = model.estimator_.predict_proba(X_new), model.predict_proba(X_new)
print(f"log loss {log_loss(y_new, before):.2f} -> {log_loss(y_new, after):.2f}")

# %%
# The top label: how often is the most probable class the true one?

display = ReliabilityDisplay.from_predictions(
    y_new, before, kind="top_label", n_bins=8, name="naive Bayes"
)
ReliabilityDisplay.from_predictions(
    y_new, after, kind="top_label", n_bins=8, name="forest", ax=display.ax_
)
plt.show()
