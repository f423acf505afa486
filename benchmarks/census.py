"""Large census data: calibrators side by side, by accuracy, multicalibration error and time.

Of the rows for training, three in ten train the base learner, and the others, or some of them by
chance, the calibrators. Every figure is of all test rows. With --pool the rows of both files are
dealt anew, so that the calibrators have twice as many and the test fewer. MCE is mcgrad's
multicalibration error in standard deviations: the largest among up to 1,000 segments of rows, which
one to three attributes tell apart. Seconds are those of the processor, so that other work on the
machine does not count; every calibrator has one thread, and ratios are to LightGBM's.

The folder has TASK.validation.parquet and TASK.test.parquet, of the American Community Survey as
the project folktables prepares it.

    python benchmarks/census.py --data-dir DATA
    python benchmarks/census.py --data-dir DATA --task ACSPublicCoverage --rows 2000,all
    python benchmarks/census.py --data-dir DATA --task ACSPublicCoverage --rows all --pool
    python benchmarks/census.py --data-dir DATA --calibrators none,boosting,lightgbm --repeats 3
"""

import sys

from comparison.census import main

if __name__ == "__main__":
    sys.exit(main())
