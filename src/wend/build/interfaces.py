"""The interfaces of traces: which names and types a C program sees."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from wend.backends.native.objects.interface import (
    Fixed,
    Input,
    Interface,
    OutputParameter,
    StateField,
    StateLayout,
    World,
)
from wend.base import trees
from wend.base.errors import UnsupportedError, explain
from wend.build.c_types import C_TYPES, RESERVED
from wend.function.concrete import ConcreteFunction
from wend.ir.types import Symbol, TensorType, Type
from wend.passes.pipeline import OPTIMIZE, run_passes
from wend.runtime.array_boundary import to_host
from wend.runtime.storage import Storage


def state_of(concretes: Sequence[ConcreteFunction], name: str) -> StateLayout | None:
    """Return the state of functions: all variables that they use; None if there are none.

    Raises:
        UnsupportedError: the size of a variable is not fixed.
    """
    names, offset, fields = ParameterNames(), 0, []
    storages = dict.fromkeys(
        binding
        for concrete in concretes
        for binding in concrete.traced.captured
        if isinstance(binding, Storage)
    )
    largest = 1
    for storage in storages:
        array = np.asarray(storage.owner.concrete)
        label = names.unique(storage.owner.name or "variable")
        type = _checked(TensorType(array.dtype, array.shape), f"the variable {label}")
        if 0 in array.shape:
            raise UnsupportedError(f"the variable {label} has no elements; C has no such fields")
        alignment = C_TYPES[array.dtype].alignment
        largest = max(largest, alignment)
        offset += -offset % alignment
        fields.append(StateField(label, type, offset, array.copy()))
        offset += array.nbytes
    if not fields:
        return None
    return StateLayout(f"{name}_state", tuple(fields), offset + -offset % largest)


def interface_of(
    concrete: ConcreteFunction,
    name: str,
    state: StateLayout | None,
    storages: Mapping[Storage, StateField],
    size_names: Mapping[Symbol, str],
    output_names: Sequence[str] | None = None,
) -> Interface:
    """Return the interface of a trace.

    Args:
        concrete: the trace.
        name: the name of the function in C.
        state: the state that it shares with others.
        storages: the field of each variable.
        size_names: the names of sizes in the signature.
        output_names: the names of the results; None: after their places.

    Raises:
        UnsupportedError: C has no counterpart of an argument or a result.
    """
    traced = concrete.traced
    graph = run_passes(concrete.graph, OPTIMIZE)
    names = ParameterNames()
    params: list[Input | StateField | Fixed | World] = []
    for k, label in enumerate(concrete.input_names):
        word = names.unique(label)
        type = _checked(graph.params[k].type, f"the argument {label}")
        params.append(Input(word, type, k in traced.written))
    if traced.has_world:
        params.append(World())
    for binding in traced.captured:
        is_variable = isinstance(binding, Storage)
        params.append(storages[binding] if is_variable else Fixed(np.asarray(to_host(binding))))
    sizes: dict[Symbol, str] = {}
    for param in params:
        if isinstance(param, Input):
            for axis, dim in enumerate(param.type.dims):
                if isinstance(dim, Symbol) and dim not in sizes:
                    label = size_names.get(dim) or f"{param.name}_size{axis or ''}"
                    sizes[dim] = names.unique(label)
    paths = trees.paths(traced.result_tree, "result")
    labels = paths if output_names is None else output_names
    outputs = []
    for k, path in enumerate(labels):
        type = _checked(graph.results[k].type, f"the result {path}")
        is_lent = any(isinstance(dim, Symbol) and dim not in sizes for dim in type.dims)
        outputs.append(OutputParameter(names.unique(path), type, is_lent))
    stored = tuple(storages[storage] for storage in traced.stored)
    uses_state = any(isinstance(param, StateField) for param in params)
    return Interface(name, params, outputs, stored, sizes, state if uses_state else None, graph)


def _checked(type: Type, what: str) -> TensorType:
    if isinstance(type, TensorType) and type.shape is not None and type.dtype in C_TYPES:
        return type
    raise UnsupportedError(
        explain(
            f"{what} is {type}, of which C has no counterpart.",
            cure="pass numbers and arrays of a known rank, of bools, integers, floats or complex.",
        )
    )


class ParameterNames:
    """ParameterNames of parameters, each different from the others and from C's words."""

    def __init__(self) -> None:
        self._used: set[str] = {*RESERVED}

    def unique(self, text: str) -> str:
        """Return a name that begins with the words of a text."""
        word = re.sub(r"\W+", "_", text).strip("_") or "x"
        word = word if not word[0].isdigit() else f"x{word}"
        name, number = word, 2
        while name in self._used:
            name, number = f"{word}_{number}", number + 1
        self._used.add(name)
        return name
