"""Fitted calibrators as ONNX models, alone or inside a pipeline that skl2onnx converts."""

from .api import to_onnx
from .converter import register_converter

__all__ = ["register_converter", "to_onnx"]
