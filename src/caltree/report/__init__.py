"""The report: one HTML file that says what calibration did, where, and how sure that is."""

from .api import Report, report

__all__ = ["Report", "report"]
