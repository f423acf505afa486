"""Throughput and memory of `caltree apply`, against copying the same file with pyarrow.

A Parquet file of 10 numeric attributes and a score is copied, batch by batch, and calibrated by
the installed command, each in a process of its own and taking turns; the best of three counts.
"lean" is a copy that spares what costs pyarrow most, as the command does: dictionaries of numbers
that are all different, and groups of rows kept in memory.

    python benchmarks/apply.py                   5,000,000 rows
    python benchmarks/apply.py --rows 500000     fewer
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from caltree import CalibrationTree

N_ATTRIBUTES = 10
N_TRAINING = 20_000
ROWS_OF_GROUP = 500_000
MEGABYTE = 2**20
BASELINES = ("copied", "copied, lean")
COPY = """
import sys
import pyarrow.parquet as pq
lean = sys.argv[3:] == ["lean"]
file = pq.ParquetFile(sys.argv[1], **({"pre_buffer": False, "buffer_size": 2**20} if lean else {}))
with pq.ParquetWriter(sys.argv[2], file.schema_arrow, use_dictionary=not lean) as writer:
    for batch in file.iter_batches(batch_size=2**17):
        writer.write_batch(batch)
"""


def make_table(n_rows: int, rng: np.random.Generator) -> pa.Table:
    """Attributes and scores."""
    columns = {f"x{j}": rng.normal(size=n_rows) for j in range(N_ATTRIBUTES)}
    return pa.table({**columns, "score": rng.random(n_rows)})


def make_model(path: Path, rng: np.random.Generator) -> int:
    """A tree for scores that are wrong in many regions, stored; the number of its leaves."""
    table = make_table(N_TRAINING, rng)
    X = np.column_stack([table[f"x{j}"].to_numpy() for j in range(N_ATTRIBUTES)])
    scores = table["score"].to_numpy()
    bends = 1 + (X[:, 0] > 0) + 2 * (X[:, 1] > 0.5) + (X[:, 2] > -0.5) * (X[:, 3] > 0)
    y = np.where(rng.random(N_TRAINING) < scores**bends, "yes", "no")
    attributes = table.drop_columns(["score"])
    tree = CalibrationTree(max_depth=5, random_state=0).fit(attributes, y, scores)
    names = [*attributes.column_names]
    columns = {"scores": ["score"], "attributes": names, "label": None, "weight": None}
    path.write_text(json.dumps({**tree.to_dict(), "columns": columns}))
    return tree.get_n_leaves()


def make_file(path: Path, n_rows: int, rng: np.random.Generator) -> None:
    """A Parquet file of many groups of rows."""
    with pq.ParquetWriter(path, make_table(0, rng).schema) as writer:
        for start in range(0, n_rows, ROWS_OF_GROUP):
            writer.write_table(make_table(min(ROWS_OF_GROUP, n_rows - start), rng))


def run(command: list[str]) -> tuple[float, float]:
    """Seconds and peak memory in bytes of a process."""
    start = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{command[0]} failed")
    unit = 1 if sys.platform == "darwin" else 1024
    return seconds, usage.ru_maxrss * unit


def main() -> None:
    """Make the data, run both, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", help="where the files go; a temporary folder by default")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    script = Path(sysconfig.get_path("scripts")) / "caltree"
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        table, model, out = (folder / n for n in ("rows.parquet", "model.json", "out.parquet"))
        n_leaves = make_model(model, rng)
        make_file(table, options.rows, rng)
        copy = [sys.executable, "-c", COPY, str(table), str(out)]
        apply = [str(script), "apply", str(model), str(table), "--out", str(out), "--quiet"]
        commands = {"copied": copy, "copied, lean": [*copy, "lean"], "calibrated": apply}
        runs: dict[str, list[tuple[float, float]]] = {title: [] for title in commands}
        for _ in range(options.repeats):
            for title, command in commands.items():
                runs[title].append(run(command))
    print(f"{options.rows:,} rows, {N_ATTRIBUTES} attributes, a tree of {n_leaves} leaves")
    best = {title: min(seconds for seconds, _ in of_title) for title, of_title in runs.items()}
    for title, seconds in best.items():
        peak = max(peak for _, peak in runs[title]) / MEGABYTE
        rate, ratio = options.rows / seconds, seconds / best["calibrated"]
        print(f"{title:<14}{seconds:7.2f} s {rate:12,.0f} rows/s {peak:6.0f} MB at most", end="")
        print(f"   calibrating has {ratio:.2f} of its throughput" if title in BASELINES else "")


if __name__ == "__main__":
    main()
