"""No test depends on the clock, Hypothesis's neither; and libraries use one thread each."""

import os

# Before any library is loaded. Tests run side by side; more threads on a few rows only wait.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

from hypothesis import settings  # noqa: E402

settings.register_profile("caltree", deadline=None)
settings.load_profile("caltree")
