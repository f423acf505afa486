"""No test depends on the clock, Hypothesis's neither."""

from hypothesis import settings

settings.register_profile("caltree", deadline=None)
settings.load_profile("caltree")
