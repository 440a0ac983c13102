"""Functions as JSON: their parameters and traces."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from wend.backends.protocol import check_backend
from wend.base import trees
from wend.base.errors import LoadError, SaveError, WendError, explain
from wend.function.concrete import ConcreteFunction
from wend.function.fixed_traces import function_of_traces
from wend.function.function import BoundFunction, Function
from wend.function.signature.signature import Signature
from wend.function.signature.spec import TensorSpec
from wend.ir.dtypes import LONG_NAMES, SHORT_NAMES
from wend.saving.fields import Fields
from wend.saving.structures import Classes, tree_from_json, tree_to_json
from wend.saving.traces import TraceReader, TraceWriter

Savable = Function | BoundFunction | ConcreteFunction
_KINDS = {kind.name: kind for kind in inspect._ParameterKind}


class FunctionWriter:
    """Numbers the functions of a file and writes their traces.

    Attributes:
        records: what the manifest says about each.
    """

    def __init__(self, traces: TraceWriter) -> None:
        self._traces = traces
        self.records: list[dict[str, Any]] = []
        self._numbers: dict[int, int] = {}
        self._functions: list[Any] = []  # kept alive: ids are keys

    def number(self, fun: Savable) -> int:
        """Return the number of a function.

        Raises:
            SaveError: it has no trace, or one that a file cannot hold.
        """
        key = fun.function if isinstance(fun, BoundFunction) else fun
        if id(key) not in self._numbers:
            self._functions.append(key)
            self.records.append(self._record(fun))
            self._numbers[id(key)] = len(self.records) - 1
        return self._numbers[id(key)]

    def _record(self, fun: Savable) -> dict[str, Any]:
        if isinstance(fun, ConcreteFunction):
            signature = fun.inputs.binding.signature
            declared = fun.inputs.binding.declared
            traces = [(fun, True)]
        else:
            owner = fun.function if isinstance(fun, BoundFunction) else fun
            signature, declared = owner.signature, owner.input_signature
            if declared is not None:
                fun.get_concrete_function()
            traces = [(x.concrete, x.accepts_zero_one) for x in owner.current_traces()]
            fun = owner
        if not traces:
            raise SaveError(
                explain(
                    f"{fun.name} has no trace, and a file holds traces.",
                    cure="call it once; or fun.get_concrete_function(wend.TensorSpec([None])); or "
                    "give it an input_signature.",
                )
            )
        is_method = signature.is_method
        return {
            "name": fun.name,
            "backend": fun.backend,
            "parameters": _parameters_to_json(signature),
            "static": sorted(signature.static),
            "input_signature": _specs_to_json(declared),
            "traces": [
                self._traces.record(concrete, is_method=is_method, accepts_zero_one=zero_one)
                for concrete, zero_one in traces
            ],
        }


def has_traces(fun: Savable) -> bool:
    """Return whether there is something to save of a function."""
    if isinstance(fun, ConcreteFunction):
        return True
    owner = fun.function if isinstance(fun, BoundFunction) else fun
    return owner.input_signature is not None or bool(owner.current_traces())


def _parameters_to_json(signature: Signature) -> list[dict[str, Any]]:
    """Return the parameters; those of a builtin, which has none, take anything by position."""
    if signature.inspected is None:
        return [{"name": "args", "kind": "VAR_POSITIONAL", "optional": False}]
    return [
        {"name": p.name, "kind": p.kind.name, "optional": p.default is not p.empty}
        for p in [*signature.inspected.parameters.values()][signature.is_method :]
    ]


def _specs_to_json(declared: Sequence[Any] | None) -> Any:
    if declared is None:
        return None
    specs, treedef = trees.flatten_deep(tuple(declared))
    leaves = [
        {"spec": [SHORT_NAMES[spec.dtype], spec.shape and list(spec.shape), spec.name]}
        for spec in specs
    ]
    return tree_to_json(treedef, "the input_signature", iter(leaves))


def read_function(
    record: Fields, reader: TraceReader, origin: str, owned: Sequence[Any]
) -> Function:
    """Return a function of a file.

    Raises:
        LoadError: the record is of no function.
    """
    name, backend = record.get("name", str), record.optional("backend", str)
    traces = [reader.read(trace) for trace in record.objects("traces")]
    specs = _specs_from_json(record.data.get("input_signature"), record.where, reader.classes)
    if specs is not None and len(traces) != 1:
        raise LoadError(f"{record.where}: an input_signature has one trace, not {len(traces)}")
    try:
        if backend is not None:
            check_backend(backend)
        parameters = [_parameter(fields) for fields in record.objects("parameters")]
        inspect.Signature(parameters)
        return function_of_traces(
            name,
            parameters,
            traces,
            origin=origin,
            static=record.texts("static"),
            input_signature=specs,
            backend=backend,
            owned=owned,
        )
    except LoadError:
        raise
    except (WendError, ValueError, TypeError, LookupError) as error:
        raise LoadError(f"{record.where}: {error}") from None


def _parameter(fields: Fields) -> inspect.Parameter:
    kind = fields.get("kind", str)
    if kind not in _KINDS:
        raise LoadError(f"{fields.where}: there are no parameters of kind {kind!r:.40}")
    default = ... if fields.get("optional", bool) else inspect.Parameter.empty
    return inspect.Parameter(fields.get("name", str), _KINDS[kind], default=default)


def _specs_from_json(data: Any, where: str, classes: Classes) -> tuple[Any, ...] | None:
    if data is None:
        return None

    def spec(leaf: Any) -> TensorSpec:
        parts = leaf.get("spec") if type(leaf) is dict else None
        if type(parts) is list and len(parts) == 3:
            dtype, shape, name = parts
            sizes = shape if type(shape) is list else []
            is_type = type(dtype) is str and dtype in LONG_NAMES and type(name) in (str, type(None))
            are_sizes = all(n is None or (type(n) is int and n >= 0) for n in sizes)
            if is_type and are_sizes and type(shape) in (list, type(None)):
                return TensorSpec(shape, LONG_NAMES[dtype], name)
        raise LoadError(f"{where}: {leaf!r:.40} is no TensorSpec")

    specs = tree_from_json(data, where, classes, spec)
    if type(specs) is not tuple:
        raise LoadError(f"{where}: the input_signature is no tuple")
    return specs
