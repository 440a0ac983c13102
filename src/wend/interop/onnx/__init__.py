"""`wend.interop.onnx`: functions as ONNX models, which onnxruntime and others run.

It needs the packages of the extra: `pip install 'wend[onnx]'`.
"""

from wend.base.errors import explain as _explain

try:
    import onnx as _onnx  # noqa: F401
except ModuleNotFoundError as _error:
    raise ModuleNotFoundError(
        _explain(
            "wend.interop.onnx needs the package onnx, which is not installed.",
            cure="run pip install 'wend[onnx]'.",
        ),
        name="onnx",
    ) from _error

from wend.interop.onnx.export import export as export
from wend.interop.onnx.load import load as load
