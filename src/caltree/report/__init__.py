"""The report: one HTML file that says what calibration did, for whom, and how sure that is."""

from .api import Report, report

__all__ = ["Report", "report"]
