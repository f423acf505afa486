"""LogitBoost of the paper in plain NumPy: the twin of src/core/learners."""
