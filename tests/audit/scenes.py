"""Rows whose scores are right, or wrong in a group of one in ten."""

import numpy as np
import pandas as pd
from scipy.special import expit


def make_rows(n_rows=3000, shift=0.0, seed=0):
    """Attributes, labels, scores, and whether a row is of the group whose scores are off."""
    random = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": random.normal(40, 10, n_rows),
            "sex": random.choice(["f", "m"], n_rows),
            "school": random.choice(["high", "low", "none"], n_rows, p=[0.6, 0.3, 0.1]),
        }
    )
    odds = (table["age"].to_numpy() - 40) / 10 + 0.5 * random.normal(size=n_rows)
    inside = (table["school"] == "none").to_numpy()
    labels = np.where(random.random(n_rows) < expit(odds + shift * inside), "yes", "no")
    return table, labels, expit(odds), inside
