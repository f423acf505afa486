"""Marks of tests."""

import pytest

new_values = pytest.mark.filterwarnings(
    "ignore:some of .* rows? have values that no training row had"
)
"""The rows have categories or missing values that training did not have, and are meant to."""
