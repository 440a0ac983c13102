"""`config(eager=True)`: Python runs at every call, and gradients use recorded values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.config import settings
from wend.eager.dispatch import Staged
from wend.eager.promotion import as_array
from wend.function.signature.signature import Arguments
from wend.ir.graph import Value
from wend.numpy import creating
from wend.runtime.array_boundary import HOST
from wend.tape.eager_tape import EagerTape
from wend.trace.aliasing.passed_containers import PassedContainers
from wend.trace.aliasing.rebuilt_containers import rebuilt
from wend.trace.control.returned_containers import with_identity
from wend.trace.recording.recording import current
from wend.trace.state.variable import Variable
from wend.trace.trace_function import check_results


def runs_eagerly() -> bool:
    """Return whether Python is to run now; while tracing, functions are traced all the same."""
    recording = current()
    return settings().eager and (recording is None or recording.runs_now())


def run_python(name: str, fun: Callable[..., Any], args: Sequence[Any], kwargs: Any) -> Any:
    """Call a Python function, and return its result as a compiled function does."""
    own = trees.flatten_deep((list(args), kwargs))[0]
    passed = PassedContainers(args, kwargs, own)
    result = fun(*args, **kwargs)  # keeps the objects in it alive until they are returned
    leaves, tree = trees.flatten_deep(with_identity(passed, result))
    check_results(name, leaves, trees.paths(tree, "result"))
    results = [as_array(leaf) if isinstance(leaf, Staged) else leaf for leaf in leaves]
    results = [x if isinstance(x, (Staged, np.ndarray)) else np.asarray(x)[()] for x in results]
    results = [x[()] if isinstance(x, np.ndarray) and not x.ndim else x for x in results]
    return rebuilt(tree, HOST.unshare(results, own), passed)


class RecordedRun:
    """One run of a function on recorded arguments; `wrt` are the traced leaves to differentiate.

    Attributes:
        result: the value it returned, a pytree of recorded and plain arrays.
    """

    def __init__(self, fun: Callable[..., Any], arguments: Arguments, wrt: Sequence[int]) -> None:
        self.tape = EagerTape(watches_variables=False)
        self.arguments, self.wrt = arguments, wrt
        arrays = arguments.arrays
        self.tape.enter()
        try:
            for k in wrt:
                if isinstance(arrays[k], Variable):
                    self.tape.watch_variable(arrays[k])
                else:
                    arrays[k] = self.tape.watch_separately(arrays[k], weak=arguments.types[k].weak)
            self.sources = [self.tape.recording.lift(arrays[k]) for k in wrt]
            self.result = arguments.call(fun, arrays)
        finally:
            self.tape.leave()

    def leaves(self, name: str) -> tuple[list[Any], trees.TreeDef]:
        """Return the leaves of the result, which must be arrays, and its structure."""
        leaves, tree = trees.flatten_deep(self.result)
        check_results(name, leaves, trees.paths(tree, "result"))
        return leaves, tree

    def pull_back(self, seeds: Sequence[tuple[Any, Any]]) -> dict[int, Any]:
        """Return the cotangents of the differentiated leaves for pairs (result, its cotangent).

        They are zeros for leaves that none of the results depends on.
        """
        value_cts: list[tuple[Value, Any]] = []
        for leaf, ct in seeds:
            value = self.tape.value_of(leaf)
            if value is not None:
                value_cts.append((value, ct))
        arrays = self.arguments.arrays
        source_cts = zip(self.wrt, self.tape.pull_back(value_cts, self.sources), strict=True)
        return {k: _zeros_like(arrays[k]) if ct is None else ct for k, ct in source_cts}


def as_value(leaf: Any) -> Any:
    """Return a result: still recorded if an outer tape follows it, otherwise plain."""
    value = as_array(leaf)
    return value if isinstance(value, Staged) else np.array(value)[()]


def _zeros_like(array: Any) -> Any:
    """Return zeros like an argument."""
    zeros = creating.zeros_like(array)
    return zeros[()] if isinstance(zeros, np.ndarray) else zeros
