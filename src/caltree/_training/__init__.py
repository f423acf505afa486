"""From arrays to a fitted tree or forest: engines, averaging, do no harm, bagging."""
