"""`caltree fit` on a Parquet file that is larger than the memory it may use.

The file is written to a temporary folder, a group of rows at a time, and removed in the end. The
command runs in a process of its own. A limit (RLIMIT_DATA) refuses it more private memory, and the
peak that is printed (ru_maxrss) is that of all its memory, with the parts of files that are mapped
into it. Temporary files may be in the system's cache.

    python benchmarks/large_file.py                                    4 GB of numbers
    python benchmarks/large_file.py --rows 2000000 --attributes 80     1.3 GB
    python benchmarks/large_file.py --param max_leaf_nodes=16          with parameters of the tree
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

GIGABYTE = 1e9
# Arrow's own allocator reserves a gigabyte of addresses at once, used or not, and the limit counts
# these: for it, the system's is used.
ALLOCATOR = {"ARROW_DEFAULT_MEMORY_POOL": "system"}
ROWS_AT_ONCE = 50_000


def write_file(path: Path, n_rows: int, n_attributes: int) -> None:
    """Write attributes of eight bytes, labels, and scores that are wrong in many regions."""
    names = [f"x{j}" for j in range(n_attributes)]
    kinds = [*((name, pa.float64()) for name in names), ("y", pa.int8()), ("p", pa.float64())]
    plain = {"compression": "none", "use_dictionary": False}
    with pa.parquet.ParquetWriter(path, pa.schema(kinds), **plain) as writer:
        for first in range(0, n_rows, ROWS_AT_ONCE):
            rng = np.random.default_rng(first)
            count = min(ROWS_AT_ONCE, n_rows - first)
            X, scores = rng.standard_normal((n_attributes, count)), rng.random(count)
            bends = 1 + (X[0] > 0) + 2 * (X[1] > 0.5) + (X[2] > -0.5) * (X[3] > 0)
            y = (rng.random(count) < scores**bends).astype(np.int8)
            writer.write_table(pa.table([*X, y, scores], schema=writer.schema))


def fit(folder: Path, limit: float, params: list[str], n_jobs: int) -> tuple[int, float, float]:
    """Run the command; return its exit code, its peak in bytes, and the seconds."""
    command = [sys.executable, "-c", "from caltree.cli import main; main()", "fit", "rows.parquet"]
    command += ["--out", "model.json", "--n-jobs", str(n_jobs)]
    for param in params:
        command += ["--param", param]
    start = time.perf_counter()
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **ALLOCATOR, "TMPDIR": str(folder)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (int(limit), int(limit))),
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    unit = 1 if sys.platform == "darwin" else 1024
    return process.returncode, used.ru_maxrss * unit, time.perf_counter() - start


def main() -> None:
    """Write a file, fit a tree to it, and print the memory that it took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--attributes", type=int, default=100)
    parser.add_argument("--limit", type=float, default=1.5, help="of the memory, in GB")
    parser.add_argument("--param", action="append", default=[], help="of the tree")
    parser.add_argument("--n-jobs", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_file(folder / "rows.parquet", options.rows, options.attributes)
        size = (folder / "rows.parquet").stat().st_size / GIGABYTE
        shape = f"{options.rows:,} rows of {options.attributes} attributes"
        print(f"{shape}, {size:.1f} GB", flush=True)
        limit = options.limit * GIGABYTE
        code, peak, seconds = fit(folder, limit, options.param, options.n_jobs)
    print(f"{seconds:.0f} s, {peak / GIGABYTE:.2f} GB at most, of {options.limit:g} GB allowed")
    if code:
        sys.exit(f"the command failed with exit code {code}")
    if peak > limit:
        sys.exit("it took more memory than that")


if __name__ == "__main__":
    main()
