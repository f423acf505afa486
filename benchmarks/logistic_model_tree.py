"""Logistic model trees beside scikit-learn's classifiers, in the same folds.

Markdown tables of accuracy, RMSE, log loss, leaves and seconds of fitting, by data set, and their
means. The data sets are the ARFF files of a folder; of more than 10,000 rows, as many are drawn by
chance. Peers get indicators of categories, and means and most frequent categories for missing
values; the regression also gets standardised numbers, and the decision tree its pruning strength by
cross-validation, as ours does. Gradient boosting takes categories, up to 255 of an attribute, and
missing values as they are. Attributes without any value are left out. Every fold is appended to a
file, and what is there is not done again.

    python benchmarks/logistic_model_tree.py --data-dir FOLDER
    python benchmarks/logistic_model_tree.py --data-dir FOLDER --datasets vote,vowel --folds 3
"""

from comparison.logistic_model_tree import main

if __name__ == "__main__":
    main()
