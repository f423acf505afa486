"""Fitted calibrators as SQL, one expression per class."""

from .api import SqlColumns, to_sql

__all__ = ["SqlColumns", "to_sql"]
