"""Public functions of NumPy's ufuncs, which follow NumPy's dtype promotion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wend.base.errors import TypeMismatchError
from wend.eager.dispatch import Staged, any_staged, apply, read_all
from wend.eager.promotion import as_array, broadcast, cast, promotion_kinds, tensor_type
from wend.ir.dtypes import BOOL
from wend.ir.op import Op
from wend.numpy.public import STAGED


def make_ufunc(
    original: np.ufunc,
    compute: Callable[..., Any],
    note: str = "",
    *,
    prepare: Callable[[Any], Any] = as_array,
) -> Callable[..., Any]:
    """Make the public function of a ufunc.

    Args:
        original: the ufunc, which resolves the dtypes of operands and results.
        compute: its staged form; gets operands of the resolved dtypes, broadcast to one shape.
        note: text to append to the docstring.
        prepare: is applied to each operand first.
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
        input_dtypes, output_dtypes = dtypes[: original.nin], dtypes[original.nin :]
        operands = broadcast(*(cast(x, d) for x, d in zip(arrays, input_dtypes, strict=True)))
        results = compute(*operands)
        if original.nout == 1:
            return copy_if_operand(cast(results, output_dtypes[0]), xs)
        return tuple(
            copy_if_operand(cast(x, d), xs) for x, d in zip(results, output_dtypes, strict=True)
        )

    function.__name__ = function.__qualname__ = original.__name__
    function.__doc__ = (
        f"Compute `numpy.{original.__name__}` elementwise, of plain and traced arrays.{note}"
    )
    STAGED[original] = function
    return function


def copy_if_operand(result: Any, operands: Sequence[Any]) -> Any:
    """Return the result, copied if it is one of the operands."""
    is_staged_array = isinstance(result, Staged) and result.zero_dim is not False
    is_array = tensor_type(result).shape != () or is_staged_array
    if not is_array or not any(result is x for x in operands):
        return result
    copied: Any = result.copy()
    if is_staged_array:
        copied.zero_dim = False  # a scalar
    return copied


def ufunc(original: np.ufunc, op: Op, *, bools: Op | None = None) -> Callable[..., Any]:
    """Make the public function of a ufunc that is one op; `bools` is its op for bools."""

    def compute(*operands: Any) -> Any:
        is_bool = bools is not None and tensor_type(operands[0]).dtype == BOOL
        return apply(bools if is_bool and bools is not None else op, *operands)

    return make_ufunc(original, compute)
