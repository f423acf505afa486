"""The published calibration tree once more, in plain NumPy, written to be read.

This is the executable specification that the compiled core is tested against. It follows the
published behaviour decision by decision and makes no attempt to be fast. The modules read best in
this order: ``folds``, ``boosting``, ``splits``, ``nodes``, ``pruning``, ``tree``.
"""

from .boosting import boost, choose_iterations, log_odds
from .folds import deal_folds
from .nodes import Node, fit_node_models, grow
from .pruning import pruning_order, pruning_sequence
from .splits import Split, find_split
from .tree import SpecTree, published_tree

__all__ = [
    "Node",
    "SpecTree",
    "Split",
    "boost",
    "choose_iterations",
    "deal_folds",
    "find_split",
    "fit_node_models",
    "grow",
    "log_odds",
    "pruning_order",
    "pruning_sequence",
    "published_tree",
]
