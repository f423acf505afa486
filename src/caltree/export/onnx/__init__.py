"""A fitted calibrator as an ONNX model, alone or inside a pipeline that skl2onnx converts."""
