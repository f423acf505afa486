"""Pictures of probabilities and calibrators, drawn by matplotlib: the extra `plot`."""

from .regions import RegionsDisplay, plot_regions
from .reliability import ReliabilityDisplay
from .tree import plot_tree

__all__ = ["RegionsDisplay", "ReliabilityDisplay", "plot_regions", "plot_tree"]
