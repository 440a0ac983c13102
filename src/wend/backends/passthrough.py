"""Executables that return some of their arguments as results without copying them.

Many residuals of a forward graph are arguments of the function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wend.backends.protocol import Executable
from wend.backends.wrapper import ExecutableWrapper
from wend.ir.graph import Graph, Value
from wend.ir.types import ListType, TensorType, without_maybe
from wend.runtime.array_boundary import foreign_boundary


def compile_without_passthrough(graph: Graph, compile: Callable[[Graph], Executable]) -> Executable:
    """Compile the computed results of a graph; results that are params are passed through."""
    params = {
        k: graph.params.index(value)
        for k, value in enumerate(graph.results)
        if value in graph.params and not _is_number(value)
    }
    if not params:
        return compile(graph)
    computed = tuple(value for k, value in enumerate(graph.results) if k not in params)
    return PassThrough(compile(replace(graph, results=computed)), params, graph.param_types)


class PassThrough(ExecutableWrapper):
    """An executable of a graph whose pass-through results are inserted after the run.

    Args:
        execute: runs the graph without these results.
        params: the index of the param that each such result is, by the position of the result.
        types: the types of the params.
    """

    def __init__(self, execute: Executable, params: dict[int, int], types: Sequence[Any]) -> None:
        super().__init__(execute)
        self._inserted = [(k, param, types[param]) for k, param in sorted(params.items())]

    def __call__(self, arguments: Sequence[Any]) -> Sequence[Any]:
        results = list(self._execute(arguments))
        for k, param, type in self._inserted:
            value = arguments[param]
            if isinstance(type, TensorType) and foreign_boundary(value) is None:
                value = np.asarray(value, type.dtype)
            results.insert(k, value)
        return results


def _is_number(value: Value) -> bool:
    type = without_maybe(value.type)
    if isinstance(type, ListType):
        return False
    return type is not value.type or not isinstance(type, TensorType) or type.shape == ()
