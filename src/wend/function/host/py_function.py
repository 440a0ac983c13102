"""`py_function`: calls Python when the function around it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import TypeMismatchError, explain
from wend.base.source import Source, at, user_source
from wend.capture.guards.guards import guard_host_function
from wend.eager.dispatch import Staged
from wend.eager.promotion import as_array
from wend.function.host.host_function import HostFunction
from wend.ops import hosting
from wend.trace.arrays.shown_text import ShownText
from wend.trace.control.tensor_list import is_list
from wend.trace.recording.recording import current


def py_function(fun: Callable[..., Any], result_specs: Any, *args: Any) -> Any:
    """Call Python when the function around it runs, once each time that it is reached.

    Calls happen in program order with prints and other host calls, even if nothing reads their
    results. `fun` may do anything: read files, keep state, draw its own random numbers. Its
    exceptions propagate unchanged, with a note of the line that called it.

    Derivatives of any order and in both modes flow where `fun` computes with functions of NumPy or
    wend: it then gets recorded arrays, but still runs once. An argument that it does not use has
    derivative 0. Where it converts arrays to numbers (`float(x)`), the derivative is refused; hold
    such an argument constant by `wend.stop_gradient`. Variables that it reads are constants to it.

    Args:
        fun: the function. Its array arguments are NumPy arrays of its own. The object of a method
            is not kept alive.
        result_specs: the results: a pytree of `TensorSpec`s (None for a size that is only known
            at run time) or of arrays like them. None: its result is ignored.
        *args: pytrees; arrays and numbers in them may be traced, the rest is passed as it is.

    Returns:
        Arrays in the structure of `result_specs`.

    Raises:
        TypeMismatchError: it returns an array of another dtype or shape, or assigns to a variable
            that the function around it uses.
        StructureError: it returns another structure.

    Example:
        >>> import wend
        >>> seen = []
        >>> def noted(x):
        ...     seen.append(float(x))
        >>> @wend.function
        ... def power(x, n):
        ...     y = 1.0
        ...     for _ in range(n):
        ...         y = y * x
        ...         wend.py_function(noted, None, y)
        ...     return y
        >>> power(2.0, 3), seen
        (np.float64(8.0), [2.0, 4.0, 8.0])
    """
    where = user_source()
    if not callable(fun):
        raise TypeMismatchError(
            explain(
                f"py_function{at(where)}: takes a function, not {fun!r:.60}.",
                cure="write wend.py_function(fun, result_specs, *args).",
            )
        )
    _refuse_lists(args, where)
    host = HostFunction(fun, args, result_specs, where)
    recording = current()
    if recording is None or recording.runs_now():
        results = [
            _copy_unless_staged(x)
            for x in host.run([_copy_unless_staged(as_array(x)) for x in host.arrays])
        ]
    else:
        guard_host_function(fun)
        attrs = {"function": host, "results": host.declared()}
        results = list(recording.emit(hosting.py_function, host.arrays, attrs))
    return trees.unflatten(host.result_tree, results)


def _refuse_lists(args: Any, where: Source | None) -> None:
    leaves, tree = trees.flatten_deep(args)
    for leaf, path in zip(leaves, trees.paths(tree, "args"), strict=True):
        if isinstance(leaf, ShownText):
            raise leaf.looked_at()
        if is_list(leaf):
            path = path.partition("[<")[0]
            raise TypeMismatchError(
                explain(
                    f"py_function{at(where)}: {path} is a list that grows in a loop or branch.",
                    cure="pass an array of its items: wnp.stack(out).",
                )
            )


def _copy_unless_staged(x: Any) -> Any:
    """Return a recorded array itself, or a copy of a plain one."""
    return x if isinstance(x, Staged) else np.array(x)[()]
