"""Makes the public functions of NumPy's ufuncs, with NumPy's own choice of dtypes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wend.base.errors import TypeMismatchError
from wend.eager.dispatch import any_staged, apply, read_all
from wend.eager.promotion import as_array, broadcast, cast, promotion_kinds, tensor_type
from wend.ir.dtypes import BOOL
from wend.ir.op import Op
from wend.numpy.public import STAGED


def made_of(
    original: np.ufunc,
    compute: Callable[..., Any],
    note: str = "",
    *,
    prepare: Callable[[Any], Any] = as_array,
) -> Callable[..., Any]:
    """Make the public function of a ufunc.

    Args:
        original: the ufunc; it says which dtypes are taken and given.
        compute: the same for staged operands of the dtypes taken, spread over one shape.
        note: what else its users should know.
        prepare: what `compute` needs of each operand first.
    """

    def function(*xs: Any, **options: Any) -> Any:
        if any_staged(xs):
            xs = tuple(read_all(xs))
        if not any_staged(xs):
            return original(*xs, **options)
        if options:
            raise TypeMismatchError(
                f"{original.__name__} on a traced array takes no {', '.join(options)}; "
                "use the result, and wnp.where in place of where="
            )
        if len(xs) != original.nin:
            raise TypeError(f"{original.__name__} takes {original.nin} arrays, not {len(xs)}")
        arrays = [prepare(x) for x in xs]
        dtypes = original.resolve_dtypes((*promotion_kinds(arrays), *(None,) * original.nout))
        taken, given = dtypes[: original.nin], dtypes[original.nin :]
        operands = broadcast(*(cast(x, d) for x, d in zip(arrays, taken, strict=True)))
        found = compute(*operands)
        if original.nout == 1:
            return own(cast(found, given[0]), xs)
        return tuple(own(cast(x, d), xs) for x, d in zip(found, given, strict=True))

    function.__name__ = function.__qualname__ = original.__name__
    function.__doc__ = f"`numpy.{original.__name__}`, for traced arrays as well.{note}"
    STAGED[original] = function
    return function


def own(result: Any, xs: Sequence[Any]) -> Any:
    """The result as an array of its own, also where it has the numbers of an operand."""
    is_operand = any(result is x for x in xs) and tensor_type(result).shape != ()
    return result.copy() if is_operand else result


def ufunc(original: np.ufunc, op: Op, *, bools: Op | None = None) -> Callable[..., Any]:
    """Make the public function of a ufunc that is one operation; `bools`: on bools another."""

    def compute(*operands: Any) -> Any:
        is_bool = bools is not None and tensor_type(operands[0]).dtype == BOOL
        return apply(bools if is_bool and bools is not None else op, *operands)

    return made_of(original, compute)
