"""Executables of graphs of which some results are arguments: these need not run to be given.

A forward form gives residuals, and many of them are what the function was given.
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


def compile_without_passthrough(graph: Graph, compile: Callable[[Graph], Executable]) -> Executable:
    """Compile what a graph computes; results that are arguments are those arguments, not copies."""
    handed_on = {k: v for k, v in enumerate(graph.results) if v in graph.params and _is_large(v)}
    if not handed_on:
        return compile(graph)
    rest = tuple(v for k, v in enumerate(graph.results) if k not in handed_on)
    places = {k: graph.params.index(value) for k, value in handed_on.items()}
    return PassThrough(compile(replace(graph, results=rest)), places, graph.param_types)


class PassThrough(ExecutableWrapper):
    """Runs a graph without the results that are arguments, and puts these among the others.

    Args:
        execute: runs the graph without them.
        places: which param such a result is, by its position.
        types: of the params.
    """

    def __init__(self, execute: Executable, places: dict[int, int], types: Sequence[Any]) -> None:
        super().__init__(execute)
        self._given = [(k, param, types[param]) for k, param in sorted(places.items())]

    def __call__(self, arguments: Sequence[Any]) -> Sequence[Any]:
        found = list(self._execute(arguments))
        for k, param, type in self._given:
            given = arguments[param]
            if isinstance(type, TensorType):
                given = np.asarray(given, type.dtype)
            found.insert(k, given)
        return found


def _is_large(value: Value) -> bool:
    """Whether it is more than a number."""
    inner = without_maybe(value.type)
    if isinstance(inner, ListType):
        return True
    return inner is value.type and isinstance(inner, TensorType) and inner.shape != ()
