"""`jvp`: the value of a function, and how it moves as its arguments move."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wend.base import trees
from wend.base.errors import StructureError, explain
from wend.function.derivatives.differentiated import weak_float
from wend.function.derivatives.primal_point import PrimalPoint
from wend.trace.recording.arguments import is_array_leaf, leaf_type


def jvp(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool = False,
) -> Any:
    """The value of `fun` at `primals`, and its derivative along `tangents`.

    Value and derivative are computed side by side; nothing is recorded.

    Args:
        fun: returns a pytree of arrays, or with `has_aux` a pair of that and another.
        primals: a tuple of pytrees of arrays, the arguments.
        tangents: a tuple of the same structure; each array of the dtype and shape of its primal,
            None for integers.
        has_aux: whether `fun` returns more than what is differentiated.

    Returns:
        `(value, tangent)`, or `(value, tangent, aux)`. The tangent has the structure of the value:
        zeros where it does not move, None for integers.

    Raises:
        StructureError, TypeMismatchError, ShapeError: the tangents do not fit the primals.
        NotDifferentiableError: there is a tangent for integers.

    Example:
        >>> import wend
        >>> wend.jvp(lambda x, y: x * y, (2.0, 3.0), (1.0, 0.5))
        (np.float64(6.0), np.float64(4.0))
    """
    for role, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, (tuple, list)):
            cure = f"pass ({role},), a tuple with one for each argument of the function."
            found = type(given).__name__
            raise TypeError(explain(f"jvp: {role} must be a tuple, not {found}.", cure=cure))
    if len(primals) != len(tangents):
        cure = "pass one tangent for each primal, None for integers."
        found = f"jvp: {len(primals)} primals and {len(tangents)} tangents."
        raise StructureError(explain(found, cure=cure))
    moved = [_floating(*pair) for pair in zip(primals, tangents, strict=True)]
    point = PrimalPoint("jvp", fun, moved, has_aux)
    given = point.tangents(tuple(tangents))
    wrt = tuple(point.moving)
    forms = point.concrete.compiled.jvp(wrt)
    value, found_tangents, aux = point.start(forms.graph, given, keeps=False)
    tangent = point.tangent_of_value(forms.connected, found_tangents)
    return (value, tangent, aux) if has_aux else (value, tangent)


def _floating(primal: Any, tangent: Any) -> Any:
    """A primal; Python ints in it that move become floats, as in `grad`."""
    leaves, treedef = trees.flatten(primal)
    try:
        moves = trees.flatten_up_to(treedef, tangent)
    except ValueError:
        return primal  # refused with the other tangents
    floats = [
        weak_float(leaf) if move is not None and _is_weak_int(leaf) else leaf
        for leaf, move in zip(leaves, moves, strict=True)
    ]
    return trees.unflatten(treedef, floats)


def _is_weak_int(leaf: Any) -> bool:
    if not is_array_leaf(leaf) or type(leaf) is bool:
        return False
    return leaf_type(leaf).weak and leaf_type(leaf).type.dtype.kind == "i"
