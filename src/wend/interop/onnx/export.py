"""`wend.interop.onnx.export`: a trace as an ONNX model."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import Any

import onnx
from onnx import helper

from wend.base import trees
from wend.base.errors import UnsupportedError, explain
from wend.base.source import warn
from wend.base.version import VERSION
from wend.function.concrete import ConcreteFunction
from wend.function.function import BoundFunction, Function, function
from wend.interop.onnx.builder import ELEMENT_TYPES, ModelBuilder, cure_of
from wend.interop.onnx.emit import emit_graph
from wend.interop.onnx.lists import NO_NAME, note_sizes
from wend.ir.types import Symbol, TensorType
from wend.passes.pipeline import OPTIMIZE, run_passes
from wend.runtime.array_boundary import to_host
from wend.runtime.storage import Storage
from wend.trace.traced import Traced

OPSET = 21
_OLDEST_OPSET = 18  # the first whose reductions take axes as operands, and which has BitwiseAnd
_IR_VERSION = 10


def export(
    fun: Callable[..., Any] | ConcreteFunction,
    path: str | os.PathLike[str] | None,
    *args: Any,
    opset: int = OPSET,
) -> onnx.ModelProto:
    """Write a function as an ONNX model; gradients are functions, and are exported as such.

    A `while` becomes a `Loop` that makes as many trips, an `if` an `If`. What a loop keeps for its
    gradient is a scan output. Arrays of outside are constants of the model. Variables and arguments
    that the function changes are inputs, and their new values are outputs, with `_next` after their
    names. Checks are left out, with a warning.

    Args:
        fun: the function, or a trace of it.
        path: the file; None: the model is only returned.
        args: the arguments to trace it with; a `TensorSpec` may stand for an array, and its unknown
            sizes are named in the model. None for a trace, or a function with an `input_signature`.
        opset: the version of ONNX's operators.

    Returns:
        The model.

    Raises:
        UnsupportedError: an operation has no counterpart in ONNX; it is named, with its line.
        ValueError: there is no such opset, or it lacks operators that models use.

    Example:
        >>> import wend
        >>> from wend.interop.onnx import export
        >>> model = export(wend.grad(lambda x: x * x * x), None, wend.TensorSpec([]))
        >>> [node.op_type for node in model.graph.node]
        ['Mul', 'Add', 'Add', 'Identity']
    """
    newest = onnx.defs.onnx_opset_version()
    if not _OLDEST_OPSET <= opset <= newest:
        what = f"opset={opset}: models use operators of {_OLDEST_OPSET} to {newest}."
        raise ValueError(explain(what, cure=f"leave it out, for {OPSET}."))
    concrete = _concrete(fun, args)
    traced = concrete.traced
    if traced.pending or concrete.first_call is not None:
        what = f"{concrete.name} has been traced, but not called: its first call makes variables."
        raise UnsupportedError(explain(what, cure="call it once before you export it."))
    graph = run_passes(concrete.graph, OPTIMIZE)
    m = ModelBuilder()
    names = _ModelNames()
    arguments, inputs = [], []
    for param, name in zip(graph.params, concrete.input_names, strict=False):
        arguments.append(names.unique(name))
        inputs.append(_declared(arguments[-1], param.tensor))
        for axis, dim in enumerate(param.tensor.shape or ()):
            if isinstance(dim, Symbol):
                m.sizes.setdefault(dim, (arguments[-1], axis))
    note_sizes(m, graph)
    if traced.has_world:
        arguments.append(NO_NAME)
    variables: dict[Storage, str] = {}
    for param, binding in zip(graph.params[len(arguments) :], traced.captured, strict=True):
        if isinstance(binding, Storage) and binding in traced.stored:
            name = variables[binding] = names.unique(binding.owner.name or "variable")
            arguments.append(name)
            inputs.append(_declared(name, param.tensor))
        else:
            array = binding.owner.concrete if isinstance(binding, Storage) else to_host(binding)
            arguments.append(m.constant(array, param.tensor.dtype))
    results = emit_graph(m, graph, arguments)
    labels = _result_names(traced, names, arguments, variables)
    outputs = []
    for result, label, value in zip(results, labels, graph.results, strict=False):
        m.nodes.append(helper.make_node("Identity", [result], [label]))
        outputs.append(_declared(label, value.tensor))
    _warn(m, concrete.name)
    title = re.sub(r"\W", "_", concrete.name)
    model = helper.make_model(
        helper.make_graph(m.nodes, title, inputs, outputs, initializer=m.used_initializers()),
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=_IR_VERSION,
        producer_name="wend",
        producer_version=VERSION,
    )
    onnx.checker.check_model(model)
    if path is not None:
        onnx.save(model, os.fspath(path))
    return model


def _concrete(fun: Any, args: Sequence[Any]) -> ConcreteFunction:
    if isinstance(fun, ConcreteFunction):
        return fun
    if not isinstance(fun, (Function, BoundFunction)):
        fun = function(fun)
    concrete: ConcreteFunction = fun.get_concrete_function(*args)
    return concrete


class _ModelNames:
    """The names of inputs and outputs: each is one word, and different from the others."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def unique(self, text: str) -> str:
        word = re.sub(r"\W+", "_", text).strip("_") or "x"
        # What the builder names begins with v and a number.
        name = word if not re.fullmatch(r"v\d+", word) else f"{word}_"
        number = 2
        while name in self._used:
            name, number = f"{word}_{number}", number + 1
        self._used.add(name)
        return name


def _result_names(
    traced: Traced, names: _ModelNames, arguments: Sequence[str], variables: dict[Storage, str]
) -> list[str]:
    """Return the names of the results, then of changed arguments and variables."""
    paths = trees.paths(traced.result_tree, "result")
    labels = [names.unique(path) for path in paths]
    labels += [names.unique(f"{arguments[k]}_next") for k in traced.written]
    return labels + [names.unique(f"{variables[storage]}_next") for storage in traced.stored]


def _declared(name: str, type: TensorType) -> onnx.ValueInfoProto:
    """Return the declaration of an input or output; equal unknown sizes have one name."""
    if type.dtype not in ELEMENT_TYPES:
        what = f"{name} is {type}: values of dtype {type.dtype} are not exported to ONNX."
        raise UnsupportedError(explain(what, cure=cure_of(type.dtype)))
    shape = None
    if type.shape is not None:
        shape = [str(dim) if isinstance(dim, Symbol) else dim for dim in type.shape]
    return helper.make_tensor_value_info(name, ELEMENT_TYPES[type.dtype], shape)


def _warn(m: ModelBuilder, name: str) -> None:
    if m.dropped_checks:
        lines = ", ".join(sorted({line for line in m.dropped_checks if line}))
        warn(f"{name}: the model makes no checks, as at {lines}")
    if m.quadratic_lists:
        lines = ", ".join(sorted({line for line in m.quadratic_lists if line}))
        warn(
            f"{name}: lists that the loop reads, or appends to in some trips only, take time "
            f"quadratic in their length: {lines}",
        )
