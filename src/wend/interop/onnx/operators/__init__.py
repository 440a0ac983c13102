"""The operators of ONNX, written with array functions of wend."""
