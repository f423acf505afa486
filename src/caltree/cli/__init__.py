"""The command `caltree`; its further dependencies are the extra `cli`."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import click

INTERRUPTED = 130
_REMEDIES = {
    "click": 'run: pip install "caltree[cli]"',
    "rich": 'run: pip install "caltree[cli]"',
    "pyarrow": 'run: pip install "caltree[cli]"',
    "matplotlib": 'run: pip install "caltree[plot]" (or use --no-files)',
    "jinja2": 'run: pip install "caltree[report]"',
    "plotly": 'run: pip install "caltree[report]"',
}


def main() -> None:
    """Run the command, or say in one line what has to be installed for it."""
    signal.signal(signal.SIGINT, _stop_at_once)
    try:
        make_command()(prog_name="caltree")
    except ModuleNotFoundError as error:
        if error.name not in _REMEDIES:
            raise
        sys.exit(f"caltree: {error.name} is not installed; {_REMEDIES[error.name]}")
    finally:
        # The work is done, and its exit code shall tell so.
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _stop_at_once(number: int, frame: Any) -> None:
    """End while modules are imported, when there is nothing to clean up yet."""
    os.write(2, b"caltree: interrupted\n")
    os._exit(INTERRUPTED)


def make_command() -> click.Group:
    """The command with its subcommands, made here since click may not be installed."""
    import click  # noqa: F401  # asked for before any work is done
    import rich  # noqa: F401  # asked for before any work is done

    from .command import caltree

    return caltree
