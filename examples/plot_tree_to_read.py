"""
A tree that says where a classifier is wrong
============================================

Some visitors buy as often as the scores say, others half as often. The tree finds these groups and
corrects their scores.
"""

# %%
# On the web the probabilities are double what they should be; for the young in the shop they are
# too low.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from caltree import CalibrationTree
from caltree.plot import plot_regions, plot_tree

random = np.random.default_rng(0)
visits = pd.DataFrame(
    {
        "channel": random.choice(["app", "shop", "web"], 6000),
        "age": random.integers(18, 80, 6000),
    }
)
scores = random.random(6000)
truth = np.where(visits["channel"] == "web", scores / 2, scores)
young = (visits["channel"] == "shop") & (visits["age"] < 30)
truth = np.where(young, np.sqrt(truth), truth)
bought = np.where(random.random(6000) < truth, "yes", "no")

# %%
# With ``path_averaging=False`` only the leaves count, so the tree is easier to read.

tree = CalibrationTree(path_averaging=False).fit(visits, bought, scores=scores)
plot_tree(tree)
plt.show()

# %%
# The same tree as text.

print(tree.to_text())

# %%
# What a score of 0.5 becomes, by the two attributes.

plot_regions(tree, visits, scores=np.array([[0.5]]), attributes=["age", "channel"])
plt.show()

# %%
# Where do the scores do most harm? Give rows that neither the classifier nor the tree has seen. To
# keep this example short, it uses the training rows.

for row in tree.segments(visits, bought, scores=scores)[:3]:
    print(
        f"{row['segment']}: says {row['uncalibrated']:.0%}, is {row['observed']:.0%}, "
        f"{row['rows']:.0f} rows"
    )
