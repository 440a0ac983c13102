"""Exported models, run by onnxruntime."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime

import wend
from wend.interop.onnx import export

NUMBERS = (int, float, np.ndarray, np.generic)


def session(model: Any) -> Any:
    """A model that is ready to run, on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def results(model: Any, arrays: Sequence[Any]) -> list[np.ndarray]:
    """What a model gives for its inputs in order."""
    run = session(model)
    inputs = [x.name for x in run.get_inputs()]
    feeds = {name: np.asarray(x) for name, x in zip(inputs, arrays, strict=True)}
    return list(run.run(None, feeds))


def run_exported(fun: Any, *args: Any) -> list[np.ndarray]:
    """What a function gives as a model, for the arguments that it is traced with."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*(makes no checks|quadratic)")
        model = export(fun, None, *args)
    leaves = [
        x for x in wend.tree.leaves(args) if isinstance(x, (int, float, np.ndarray, np.generic))
    ]
    return results(model, leaves)
