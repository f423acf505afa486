"""The experiments of the paper: its data sets, its figures and its statistics."""
