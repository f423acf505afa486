"""From tables, scores and labels of any kind to plain arrays."""
