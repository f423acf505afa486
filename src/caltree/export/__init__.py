"""Fitted calibrators for other systems: SQL and ONNX."""
