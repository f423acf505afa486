"""A tree on a Dask cluster: time, memory, what travels, and how often the client waits for it.

Rows are made on the workers, a partition at a time, by a pure function of its number; there are
more of them than one worker may hold. Two workers, each a process with a limit to its memory, grow
a `caltree.dask.CalibrationTree`. What goes through the scheduler must not grow with the rows.

A round trip is a wait of the client for the cluster. The fewest rows are fitted to again, in turns
with and without a latency that is added to each of them, and the best of each is compared.

    python benchmarks/cluster.py                               2,000,000 and 20,000,000 rows
    python benchmarks/cluster.py --rows 500000 1000000         others
    python benchmarks/cluster.py --rows 2000000 --repeat 3     round trips, in three turns
"""

from __future__ import annotations

import argparse
import math
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client
from distributed.deploy.subprocess import SubprocessCluster

from caltree.dask import CalibrationTree

ROWS_OF_PARTITION = 250_000
N_WORKERS = 2
KILOBYTE, MEGABYTE = 2**10, 2**20
# Sums of as many regions are as large however many rows there are; trees of more rows may have
# more regions, and Dask spends some kilobytes on every partition that is read.
MOST_GROWTH = 2.0
MOST_TRIPS = 60
# Times the seconds without latency.
MOST_SLOWDOWN = 1.3


def make_rows(partition: int, n_rows: int, n_attributes: int) -> tuple[Any, Any, Any]:
    """Attributes, labels and scores that are wrong in many regions."""
    rng = np.random.default_rng(partition)
    X = rng.standard_normal((n_rows, n_attributes), dtype=np.float32)
    scores = rng.random(n_rows, dtype=np.float32)
    bends = 1 + (X[:, 0] > 0) + 2 * (X[:, 1] > 0.5) + (X[:, 2] > -0.5) * (X[:, 3] > 0)
    return X, (rng.random(n_rows) < scores**bends).astype(np.uint8), scores


def make_collections(n_rows: int, n_attributes: int) -> list[da.Array]:
    """The same, lazily: attributes, labels and scores."""
    sizes = [
        min(ROWS_OF_PARTITION, n_rows - first) for first in range(0, n_rows, ROWS_OF_PARTITION)
    ]
    make = dask.delayed(make_rows, nout=3)
    parts = [make(i, size, n_attributes) for i, size in enumerate(sizes)]
    kinds = ((n_attributes,), np.float32), ((), np.uint8), ((), np.float32)
    return [
        da.concatenate(
            [
                da.from_delayed(part[item], shape=(size, *shape), dtype=dtype)
                for part, size in zip(parts, sizes, strict=True)
            ]
        )
        for item, (shape, dtype) in enumerate(kinds)
    ]


def count_bytes() -> None:
    """Count what this process writes to and reads from others, from now on.

    Every message of Dask goes through these two functions, whatever it is about.
    """
    from distributed.comm import tcp

    tcp.bytes_written = tcp.bytes_read = 0
    write, read = tcp.TCP.write, tcp.read_bytes_rw

    async def counting_write(*given: Any, **options: Any) -> int:
        written = await write(*given, **options)
        tcp.bytes_written += written
        return written

    async def counting_read(stream: Any, count: int) -> Any:
        tcp.bytes_read += count
        return await read(stream, count)

    tcp.TCP.write, tcp.read_bytes_rw = counting_write, counting_read


@contextmanager
def waits_of_client(latency: float) -> Iterator[list[float]]:
    """List the seconds of all waits of clients for their cluster; each takes `latency` longer.

    Whatever a client waits for goes through this one method of it.
    """
    sync, waits = Client.sync, []

    def listed(client: Client, *given: Any, **options: Any) -> Any:
        start = time.perf_counter()
        time.sleep(latency)
        try:
            return sync(client, *given, **options)
        finally:
            waits.append(time.perf_counter() - start)

    Client.sync = listed
    try:
        yield waits
    finally:
        Client.sync = sync


def counted() -> tuple[int, int]:
    """The bytes written and read by this process."""
    from distributed.comm import tcp

    return tcp.bytes_written, tcp.bytes_read


def peak_memory() -> int:
    """The most memory that this process has had, in bytes."""
    unit = 1 if sys.platform == "darwin" else KILOBYTE
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


@dataclass(frozen=True)
class Run:
    """What came of a fit."""

    n_rows: int
    seconds: float
    leaves: int
    peaks: list[int]
    through_scheduler: int
    between_workers: int
    trips: int


def run(n_rows: int, n_attributes: int, memory_limit: str, latency: float = 0.0) -> Run:
    """Fit a tree on a new cluster, whose scheduler and workers are processes of their own."""
    of_worker = {"memory_limit": memory_limit, "nthreads": 1}
    cluster = SubprocessCluster(
        n_workers=N_WORKERS, worker_kwargs=of_worker, dashboard_address=":0", silence_logs=40
    )
    with cluster, Client(cluster) as client:
        client.wait_for_workers(N_WORKERS)
        client.run_on_scheduler(count_bytes)
        client.run(count_bytes)
        before, _ = counted()
        rows = make_collections(n_rows, n_attributes)
        with waits_of_client(latency) as waits:
            start = time.perf_counter()
            tree = CalibrationTree(random_state=0).fit(*rows)
            seconds = time.perf_counter() - start
        after, _ = counted()
        written, read = client.run_on_scheduler(counted)
        workers = client.run(counted).values()
        # Whatever workers write and the scheduler does not read goes to other workers.
        to_scheduler = read - (after - before)
        between = sum(by_worker for by_worker, _ in workers) - to_scheduler
        peaks = sorted(client.run(peak_memory).values())
        n_leaves = tree.get_n_leaves()
        return Run(n_rows, seconds, n_leaves, peaks, written + read, between, len(waits))


def compare_latency(options: argparse.Namespace) -> float:
    """How many times as long a fit takes with latency as without."""
    latency, seconds = options.latency / 1000, dict[float, list[float]]()
    for turn in range(2 * options.repeat):
        added = (0.0, latency)[turn % 2]
        found = run(min(options.rows), options.attributes, options.memory_limit, added)
        seconds.setdefault(added, []).append(found.seconds)
    without, slowed = min(seconds[0.0]), min(seconds[latency])
    print(f"{options.latency:g} ms added to each round trip, best of {options.repeat}:", end=" ")
    print(f"{slowed:.1f} s instead of {without:.1f} s, {slowed / without:.2f} times as long")
    return slowed / without


def main() -> None:
    """Fit trees to fewer and to more rows, and compare what they took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[2_000_000, 20_000_000])
    parser.add_argument("--attributes", type=int, default=20)
    parser.add_argument("--memory-limit", default="1 GB", help="of each worker")
    parser.add_argument("--latency", type=float, default=20.0, help="of a round trip, in ms")
    parser.add_argument("--repeat", type=int, default=1, help="turns with and without latency")
    options = parser.parse_args()
    count_bytes()
    runs = []
    for n_rows in options.rows:
        found = run(n_rows, options.attributes, options.memory_limit)
        runs.append(found)
        size = n_rows * options.attributes * 4 / MEGABYTE
        peaks = " and ".join(f"{peak / MEGABYTE:,.0f}" for peak in found.peaks)
        n_partitions = math.ceil(n_rows / ROWS_OF_PARTITION)
        print(f"{n_rows:,} rows in {n_partitions} partitions, {size:,.0f} MB as float32:")
        print(f"    {found.seconds:.0f} s, a tree of {found.leaves} leaves", end=", ")
        print(f"{found.trips} round trips")
        print(f"    workers: {peaks} MB at most, of {options.memory_limit} allowed")
        print(f"    through the scheduler: {found.through_scheduler / MEGABYTE:,.1f} MB")
        print(f"    between the workers: {found.between_workers / MEGABYTE:,.1f} MB", flush=True)
    growth = runs[-1].through_scheduler / runs[0].through_scheduler
    print(f"{growth:.2f} times as much through the scheduler", end=" ")
    print(f"with {runs[-1].n_rows / runs[0].n_rows:.0f} times as many rows")
    slowdown = compare_latency(options)
    failures = []
    if growth > MOST_GROWTH:
        failures.append("what goes through the scheduler grows with the rows")
    if runs[0].trips > MOST_TRIPS:
        failures.append(f"there are more than {MOST_TRIPS} round trips")
    if slowdown > MOST_SLOWDOWN:
        failures.append(f"latency makes a fit take more than {MOST_SLOWDOWN} times as long")
    if failures:
        sys.exit("; ".join(failures))


if __name__ == "__main__":
    main()
