"""`wend export`: a function of a Python file, or of a file of `wend.save`, as an ONNX model."""

from __future__ import annotations

import sys
import traceback
import warnings
from pathlib import Path

from wend.base.errors import WendError
from wend.capture.stage.guard import user_traceback
from wend.cli.saved import is_saved, saved_trace
from wend.cli.target import concrete_of


def run(target: str, out: Path, opset: int) -> int:
    """Write a model; return the exit status.

    Args:
        target: the function and its arguments; see `target.py`.
        out: the file.
        opset: the version of ONNX's operators.
    """
    try:
        from wend.interop.onnx import export  # which needs an extra

        concrete = saved_trace(target) if is_saved(target) else concrete_of(target)
        with warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("always")
            model = export(concrete, out, opset=opset)
    except (WendError, OSError, ModuleNotFoundError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except Exception as error:  # noqa: BLE001 - raised by the user's program
        traceback.print_exception(type(error), error, user_traceback(error.__traceback__))
        return 1
    for note in notes:
        print(f"note: {note.message}", file=sys.stderr)
    inputs = ", ".join(x.name for x in model.graph.input)
    outputs = ", ".join(x.name for x in model.graph.output)
    print(f"{out}: ({inputs}) -> ({outputs})")
    return 0
