"""How good calibrated probabilities are: ours, and those of other packages."""
