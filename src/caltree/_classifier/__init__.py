"""From classifiers to scores: response methods, out-of-fold scores, metadata, absent classes."""
