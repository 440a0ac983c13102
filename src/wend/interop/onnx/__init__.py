"""`wend.interop.onnx`: functions as ONNX models, which onnxruntime and others run.

It needs the packages of the extra: `pip install 'wend[onnx]'`.
"""

from wend.interop.onnx.export import export as export
