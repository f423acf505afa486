"""Marks of tests."""

import pytest

new_values = pytest.mark.filterwarnings(
    "ignore:of .* rows?, some have values that no training row had"
)
"""The rows have categories or missing values that training did not have, and are meant to."""
