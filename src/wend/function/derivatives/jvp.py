"""`jvp`: the value of a function, and its derivative along tangents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wend.base import trees
from wend.base.errors import StructureError, explain
from wend.function.derivatives.differentiated import weak_float
from wend.function.derivatives.primal_point import PrimalPoint
from wend.trace.recording.arguments import is_array_leaf, leaf_type


def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> Any:
    """Return the value of `fun` at `primals`, and its derivative along `tangents`.

    Value and derivative are computed side by side; nothing is recorded.

    Args:
        fun: returns a pytree of arrays, or with `has_aux` a pair of that and another pytree.
        primals: a tuple of pytrees of arrays, the arguments.
        tangents: a tuple of the same structure; each array has the dtype and shape of its primal,
            integers have None.
        has_aux: whether `fun` returns auxiliary data after the differentiated value.

    Returns:
        `(value, tangent)`, or `(value, tangent, aux)`. The tangent has the structure of the value,
        with zeros where it does not depend on the tangents, and None for integers.

    Raises:
        StructureError, TypeMismatchError, ShapeError: the tangents do not fit the primals.
        NotDifferentiableError: there is a tangent for integers.

    Example:
        >>> import wend
        >>> wend.jvp(lambda x, y: x * y, (2.0, 3.0), (1.0, 0.5))
        (np.float64(6.0), np.float64(4.0))
    """
    for role, values in (("primals", primals), ("tangents", tangents)):
        if not isinstance(values, (tuple, list)):
            cure = f"pass ({role},), a tuple with one for each argument of the function."
            kind = type(values).__name__
            raise TypeError(explain(f"jvp: {role} must be a tuple, not {kind}.", cure=cure))
    if len(primals) != len(tangents):
        cure = "pass one tangent for each primal, None for integers."
        problem = f"jvp: {len(primals)} primals and {len(tangents)} tangents."
        raise StructureError(explain(problem, cure=cure))
    float_primals = [_as_floats(*pair) for pair in zip(primals, tangents, strict=True)]
    point = PrimalPoint("jvp", fun, float_primals, has_aux)
    tangent_leaves = point.tangent_leaves(tuple(tangents))
    pushforward = point.concrete.compiled.jvp(point.wrt)
    value, result_tangents, aux = point.run_forward(
        pushforward.graph, tangent_leaves, keeps_residuals=False
    )
    tangent = point.value_tangent(pushforward.connected, result_tangents)
    return (value, tangent, aux) if has_aux else (value, tangent)


def _as_floats(primal: Any, tangent: Any) -> Any:
    """Return a primal with floats for Python ints that have a tangent, as in `grad`."""
    leaves, treedef = trees.flatten_deep(primal)
    try:
        tangent_leaves = trees.flatten_up_to(treedef, tangent)
    except ValueError:
        return primal  # its structure is checked with that of the other tangents
    floats = [
        weak_float(leaf) if leaf_tangent is not None and _is_weak_int(leaf) else leaf
        for leaf, leaf_tangent in zip(leaves, tangent_leaves, strict=True)
    ]
    return trees.unflatten(treedef, floats)


def _is_weak_int(leaf: Any) -> bool:
    if not is_array_leaf(leaf) or type(leaf) is bool:
        return False
    return leaf_type(leaf).weak and leaf_type(leaf).type.dtype.kind == "i"
