"""Training rows as the engines get them."""

import numpy as np

from caltree._inputs.attributes import learn
from caltree._inputs.scores import ScoreKind
from caltree._training.dataset import Dataset


def make_dataset(X, y, scores, *, n_classes=None, score_type="probability", weights=None):
    """The rows of a calibration tree."""
    n_classes = len(np.unique(y)) if n_classes is None else n_classes
    known, matrix = learn(X)
    kind = ScoreKind(n_classes, score_type)
    seen = kind.regressors(scores)
    is_margin = score_type == "margin"
    return Dataset(
        attributes=known,
        matrix=matrix,
        labels=np.asarray(y, dtype=np.uint16),
        n_classes=n_classes,
        scores=seen,
        offset=kind.offset(scores, seen),
        uncalibrated=None if is_margin else kind.uncalibrated(scores),
        weights=weights,
    )
