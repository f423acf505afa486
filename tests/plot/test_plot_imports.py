"""Matplotlib is asked for only when something is drawn."""

import subprocess
import sys

import pytest

from caltree.plot import ReliabilityDisplay, plot_regions, plot_tree


def test_importing_does_not_import_matplotlib():
    code = "import sys, caltree.plot; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    "draw",
    [
        lambda: ReliabilityDisplay.from_predictions([0, 1], [0.2, 0.8]),
        lambda: ReliabilityDisplay.from_estimator(None, None, None),
        lambda: ReliabilityDisplay({}, {}).plot(),
        lambda: plot_tree(None),
        lambda: plot_regions(None, None),
    ],
    ids=["from_predictions", "from_estimator", "plot", "plot_tree", "plot_regions"],
)
def test_without_matplotlib_one_line_says_what_to_install(draw, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModuleNotFoundError, match=r'run: pip install "caltree\[plot\]"') as caught:
        draw()
    assert caught.value.name == "matplotlib"
    assert "\n" not in str(caught.value)
