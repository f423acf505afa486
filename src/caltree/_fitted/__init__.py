"""The fitted model as plain arrays, and its readers: prediction, text, storage."""
