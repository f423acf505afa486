"""Processes that share a file of results with the tests, or are killed by them.

They are forked from a process that has imported everything already, so that they take
milliseconds to begin.
"""

import multiprocessing
import signal
import subprocess

import caltree.paper.experiment
from caltree import cli
from caltree.paper.store import Cell, Store

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.support.paper_preloaded"])


def start(target, *arguments):
    process = PROCESSES.Process(target=target, args=arguments)
    process.start()
    return process


def finish(process, seconds=60):
    """Wait for a process that must end well."""
    process.join(seconds)
    assert process.exitcode == 0


def kill(process):
    """End a living process as if the power were cut; started here or by subprocess."""
    process.kill()
    if isinstance(process, subprocess.Popen):
        assert process.wait() == -signal.SIGKILL
    else:
        process.join()
        assert process.exitcode == -signal.SIGKILL


def run_command(*arguments):
    """Do what `caltree` and the arguments would."""
    cli.make_command()(arguments, prog_name="caltree")


def carry_out(plan, path):
    assert not caltree.paper.experiment.carry_out(plan, Store(path, plan.settings()))


def claim(path, cell, ready, go):
    """Claim a fold, say so, and keep it until told otherwise."""
    assert Store(path).claim(Cell(*cell))
    ready.set()
    go.wait(60)


def add(path, learner, n_cells, barrier):
    store = Store(path, {"folds": "10"})
    barrier.wait(60)
    for number in range(n_cells):
        cell = Cell("vote", learner, *divmod(number, 10))
        store.add(cell, {"pct": {"rmse": number / 7, "accuracy": 1.0}}, {learner: 0.5})
