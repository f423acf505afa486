"""Tables, scores and labels of any kind as plain arrays."""
