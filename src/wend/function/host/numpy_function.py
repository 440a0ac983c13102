"""`numpy_function`: calls Python when the function around it runs, without a derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wend.base import trees
from wend.function.host.py_function import py_function
from wend.numpy.elementwise import stop_gradient


def numpy_function(fun: Callable[..., Any], result_specs: Any, *args: Any) -> Any:
    """Call Python as `py_function` does, with results that are constants to derivatives.

    Args:
        fun: the function. Its array arguments are NumPy arrays of its own; also where a derivative
            is taken, so it may convert them to numbers.
        result_specs: the results, as those of `py_function`.
        *args: pytrees; arrays and numbers in them may be traced, the rest is passed as it is.

    Returns:
        Arrays in the structure of `result_specs`.

    Raises:
        TypeMismatchError: it returns an array of another dtype or shape.
        StructureError: it returns another structure.

    Example:
        >>> import math, wend
        >>> wend.grad(lambda x: x * wend.numpy_function(math.floor, wend.TensorSpec([]), x))(2.5)
        np.float64(2.0)
    """
    leaves, tree = trees.flatten_deep(args)
    constant = trees.unflatten(tree, [stop_gradient(leaf) for leaf in leaves])
    return py_function(fun, result_specs, *constant)
