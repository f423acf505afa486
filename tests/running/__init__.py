"""Tests of `caltree._running`."""
