"""`config(eager=True)`: functions run as Python at every call, gradients on recorded values."""

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
from wend.trace.recording.recording import current
from wend.trace.state.variable import Variable
from wend.trace.traced import check_results


def runs_eagerly() -> bool:
    """Whether Python is to run here; inside a trace functions are traced all the same."""
    here = current()
    return settings().eager and (here is None or here.runs_now())


def run_python(name: str, fun: Callable[..., Any], args: Sequence[Any], kwargs: Any) -> Any:
    """Call a function, and return what it returns as a compiled one does."""
    result = fun(*args, **kwargs)
    leaves, tree = trees.flatten(result)
    check_results(name, leaves, trees.paths(tree, "result"))
    found = [as_array(leaf) if isinstance(leaf, Staged) else leaf for leaf in leaves]
    found = [x if isinstance(x, (Staged, np.ndarray)) else np.asarray(x)[()] for x in found]
    found = [x[()] if isinstance(x, np.ndarray) and not x.ndim else x for x in found]
    return trees.unflatten(tree, HOST.own(found, trees.flatten((list(args), kwargs))[0]))


class RecordedRun:
    """One run of a function on recorded arguments.

    Args:
        fun: the Python function.
        arguments: its arguments, taken apart.
        wrt: which of the traced leaves are differentiated.

    Attributes:
        result: what it returned, a pytree of recorded and plain arrays.
    """

    def __init__(self, fun: Callable[..., Any], arguments: Arguments, wrt: Sequence[int]) -> None:
        self.tape = EagerTape(watches_variables=False)
        self.arguments, self.wrt = arguments, wrt
        arrays = arguments.arrays
        self.tape.enter()
        try:
            for k in wrt:
                type = arguments.types[k]
                if isinstance(arrays[k], Variable):
                    self.tape.watch_variable(arrays[k])
                else:
                    arrays[k] = self.tape.watch_apart(arrays[k], weak=type.weak)
            self.sources = [self.tape.recording.lift(arrays[k]) for k in wrt]
            self.result = arguments.call(fun, arrays)
        finally:
            self.tape.leave()

    def leaves(self, name: str) -> tuple[list[Any], trees.TreeDef]:
        """The leaves of the result, which must be arrays."""
        leaves, tree = trees.flatten(self.result)
        check_results(name, leaves, trees.paths(tree, "result"))
        return leaves, tree

    def pull_back(self, seeds: Sequence[tuple[Any, Any]]) -> dict[int, Any]:
        """Cotangents of what is differentiated, from pairs of a result and its cotangent.

        Zeros where nothing depends on it.
        """
        known: list[tuple[Value, Any]] = []
        for leaf, ct in seeds:
            value = self.tape.value_of(leaf)
            if value is not None:
                known.append((value, ct))
        given = self.arguments.arrays
        found = zip(self.wrt, self.tape.pull_back(known, self.sources), strict=True)
        return {k: _zeros_like(given[k]) if ct is None else ct for k, ct in found}


def as_value(leaf: Any) -> Any:
    """A result as it is returned: recorded where an outer tape follows it, else plain."""
    found = as_array(leaf)
    return found if isinstance(found, Staged) else np.array(found)[()]


def _zeros_like(array: Any) -> Any:
    """Zeros like an argument."""
    found = creating.zeros_like(array)
    return found[()] if isinstance(found, np.ndarray) else found
