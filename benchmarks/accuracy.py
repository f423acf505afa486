"""Accuracy of calibrated probabilities: ours, and those of other packages, on the same folds.

Data sets x learners x calibrators, in repeated stratified cross-validation. What is done is kept
in a file of results, and the scores of the learners, which take the time, in a folder; killed at
any moment, it goes on where it was, and several processes may share the work, or the workers of a
Dask cluster do it: they need what is installed here, and see the same folders.

    python benchmarks/accuracy.py run --data-dir DATA --store results.sqlite --n-jobs 2
    python benchmarks/accuracy.py run --data-dir DATA --store results.sqlite --scheduler ADDRESS
    python benchmarks/accuracy.py table --store results.sqlite
    python benchmarks/accuracy.py table --store results.sqlite --measure log_loss --cells
    python benchmarks/accuracy.py table --store results.sqlite --against-best
    python benchmarks/accuracy.py forget --store results.sqlite --calibrators tree,forest
"""

import sys

from comparison.command import main

if __name__ == "__main__":
    sys.exit(main())
