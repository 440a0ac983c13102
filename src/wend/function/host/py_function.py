"""`py_function`: Python that runs when the function around it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import TypeMismatchError, explain
from wend.base.source import Source, at, user_source
from wend.capture.guards.reads import guard_host_function
from wend.eager.dispatch import Staged
from wend.eager.promotion import as_array
from wend.function.host.host_function import HostFunction
from wend.ops import hosting
from wend.trace.control.tensor_list import is_list
from wend.trace.recording.recording import current


def py_function(fun: Callable[..., Any], result_specs: Any, *args: Any) -> Any:
    """Call Python when the function around it runs, once for each time that it is reached.

    It runs in program order with prints and other host calls, and also if nothing reads what it
    returns. `fun` may do what it likes: read files, keep state, draw its own random numbers. What
    it raises comes out as it is, with a note of the line that called it.

    Derivatives, of any order and in both modes, flow where `fun` computes with NumPy's or wend's
    functions: it is then given recorded arrays, and is run once all the same. An argument that it
    does not use has derivative 0. Where it takes numbers out of arrays (`float(x)`) the derivative
    is refused: hold such an argument constant by `wend.stop_gradient`. Variables that it reads are
    constants to it.

    Args:
        fun: the function. Its array arguments are NumPy arrays of its own. The object of a method
            is not kept alive.
        result_specs: what it returns: a pytree of `TensorSpec`s (None for a size that only the run
            knows), or of arrays like those. None: nothing, whatever it returns.
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
        found = [_own(x) for x in host.run([_own(as_array(x)) for x in host.arrays])]
    else:
        guard_host_function(fun)
        attrs = {"function": host, "results": host.declared()}
        found = list(recording.emit(hosting.py_function, host.arrays, attrs))
    return trees.unflatten(host.result_tree, found)


def _refuse_lists(args: Any, where: Source | None) -> None:
    leaves, tree = trees.flatten(args)
    for leaf, path in zip(leaves, trees.paths(tree, "args"), strict=True):
        if is_list(leaf):
            path = path.partition("[<")[0]
            raise TypeMismatchError(
                explain(
                    f"py_function{at(where)}: {path} is a list that grows in a loop or branch.",
                    cure="pass an array of its items: wnp.stack(out).",
                )
            )


def _own(x: Any) -> Any:
    """A recorded array, or a copy of a plain one."""
    return x if isinstance(x, Staged) else np.array(x)[()]
