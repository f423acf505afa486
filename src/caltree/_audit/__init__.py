"""Audits: are scores calibrated, overall and for whom."""

from .api import audit
from .effects import Effect
from .parts import LossParts, Part
from .result import Audit, Finding
from .whole import Whole

__all__ = ["Audit", "Effect", "Finding", "LossParts", "Part", "Whole", "audit"]
