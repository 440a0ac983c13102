"""The node tests of the package onnx: models of one operator, with inputs and outputs."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx

from wend.base.errors import UnsupportedError
from wend.interop.onnx import load
from wend.interop.onnx.load import OLDEST_OPSET, SUPPORTED
from wend.interop.onnx.operators.operands import dtype_of

_A = onnx.AttributeProto


def _types(type: onnx.TypeProto) -> set[int]:
    kind = type.WhichOneof("value")
    if kind == "tensor_type":
        return {type.tensor_type.elem_type}
    return _types(getattr(type, kind).elem_type)


def _is_of_numbers(model: onnx.ModelProto) -> bool:
    """Whether all inputs and outputs are of dtypes that wend has."""
    try:
        for x in (*model.graph.input, *model.graph.output):
            for number in _types(x.type):
                dtype_of(number)
    except UnsupportedError:
        return False
    return True


def operators(graph: onnx.GraphProto) -> set[str]:
    """The operators of a graph and of those in it."""
    names = {f"{n.domain}.{n.op_type}" if n.domain else n.op_type for n in graph.node}
    inner = (a.g for n in graph.node for a in n.attribute if a.type == _A.GRAPH)
    return names.union(*map(operators, inner))


@cache
def claimed_cases() -> Sequence[Any]:
    """The tests whose operators are supported, of dtypes that wend has."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with np.errstate(all="ignore"):
            cases = collect_testcases(None)
    return [
        case
        for case in cases
        if case.model.opset_import[0].version >= OLDEST_OPSET
        and _is_of_numbers(case.model)
        and operators(case.model.graph) <= {*SUPPORTED}
    ]


def _array(x: Any) -> Any:
    return onnx.numpy_helper.to_array(x) if isinstance(x, onnx.TensorProto) else x


def _fixed(inputs: Mapping[str, Any], *, flags: bool) -> dict[str, Any]:
    """The inputs that may decide on shapes: short arrays of integers; or flags, or all of them."""
    fixed = {}
    for name, x in inputs.items():
        if isinstance(x, np.ndarray | np.generic | bool | int):
            array = np.asarray(x)
            if (array.ndim <= 1 and array.dtype.kind in "iu") or (flags and array.size <= 5):
                fixed[name] = x
    return fixed


def run(case: Any) -> None:
    """Load and call the model of a case, and compare the results with those it gives.

    Inputs that decide on shapes are fixed: where a call is refused, first short arrays of integers.
    """
    for inputs, expected in case.data_sets:
        names = [x.name for x in case.model.graph.input]
        arguments = dict(zip(names, map(_array, inputs), strict=False))
        attempts = [{}, _fixed(arguments, flags=False), _fixed(arguments, flags=True), arguments]
        for number, constants in enumerate(attempts):
            try:
                fun = load(case.model, constants=constants)
                results = fun(*(x for name, x in arguments.items() if name not in constants))
                break
            except Exception:
                if number == len(attempts) - 1:
                    raise
        results = results if isinstance(results, tuple) else (results,)
        assert len(results) == len(expected)
        for x, y in zip(results, expected, strict=True):
            _compare(x, _array(y), case)


def _compare(x: Any, y: Any, case: Any) -> None:
    if y is None:
        assert x is None
    elif isinstance(y, list):
        assert len(x) == len(y)
        for a, b in zip(x, y, strict=True):
            _compare(a, b, case)
    else:
        x, y = np.asarray(x), np.asarray(y)
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_allclose(x, y, rtol=case.rtol, atol=case.atol)


def has_float_gradient(case: Any) -> bool:
    """Whether the first input and output are arrays of floats."""
    graph = case.model.graph
    return all(
        x.type.HasField("tensor_type") and x.type.tensor_type.elem_type in (1, 11)
        for x in (*graph.input[:1], *graph.output[:1])
    )
