"""No windows, and no figure that outlives its test."""

import matplotlib
import pytest

matplotlib.use("agg")


@pytest.fixture(autouse=True)
def closed_figures():
    import matplotlib.pyplot as plt

    plt.close("all")
    yield
    plt.close("all")
