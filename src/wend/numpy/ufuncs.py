"""Public functions of NumPy's ufuncs, which follow NumPy's dtype promotion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wend.eager.dispatch import Staged, any_staged, apply, read_all
from wend.eager.promotion import (
    are_unified,
    as_array,
    broadcast,
    cast,
    is_weak,
    promotion_kinds,
    tensor_type,
)
from wend.ir.dtypes import BOOL
from wend.ir.op import Op
from wend.numpy.outputs import check_takes, put_into
from wend.numpy.public import STAGED
from wend.numpy.signatures import not_taken

# Calls a ufunc of operands of which one has ufuncs of its own; a higher layer sets it
ask: Callable[..., Any] = lambda ufunc, *xs, **options: ufunc(*xs, **options)  # noqa: E731


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
        if any(map(has_own_ufuncs, xs)):
            return ask(original, *xs, **options)
        if not any_staged(xs) and not (options and any_staged(options.values())):
            return original(*xs, **options)
        if options or len(xs) != original.nin:
            return call_ufunc(original, function, xs, options)
        arrays = [prepare(x) for x in xs]
        dtypes = original.resolve_dtypes((*promotion_kinds(arrays), *(None,) * original.nout))
        input_dtypes, output_dtypes = dtypes[: original.nin], dtypes[original.nin :]
        operands = arrays
        if not are_unified(arrays, input_dtypes):
            operands = broadcast(*map(cast, arrays, input_dtypes))
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


def has_own_ufuncs(x: Any) -> bool:
    """Return whether NumPy asks the class of an operand for what a ufunc gives (NEP 13)."""
    return not isinstance(x, (Staged, np.ndarray, np.generic)) and hasattr(
        type(x), "__array_ufunc__"
    )


_OPTIONS = {"out", "where", "dtype", "casting", "order", "subok"}


def call_ufunc(
    original: np.ufunc, function: Callable[..., Any], xs: Sequence[Any], options: dict[str, Any]
) -> Any:
    """Call the public function of a ufunc as NumPy's is called, with its options."""
    name, inputs, outs = original.__name__, xs[: original.nin], xs[original.nin :]
    if len(inputs) < original.nin or len(outs) > original.nout or (outs and "out" in options):
        raise TypeError(f"{name}() takes {original.nin} arrays, and an out= for each result")
    for option in options.keys() - _OPTIONS:
        if option in ("signature", "sig"):
            raise not_taken(name, option, "cast the operands: x.astype(dtype).")
        if original.signature:
            raise not_taken(name, option, "move the axes: np.moveaxis(x, axis, -1).")
        raise TypeError(f"{name}() got an unexpected keyword argument {option!r}")
    outs = outs or options.get("out") or (None,) * original.nout
    outs = outs if isinstance(outs, tuple) else (outs,)
    for out in outs:
        if isinstance(out, Staged):
            out.check_writeable("output array")
    dtype, casting = options.get("dtype"), options.get("casting", "same_kind")
    if dtype is not None or casting != "same_kind":
        inputs = _as_dtype(original, inputs, dtype, casting)
    where = options.get("where", True)
    if where is not True:
        inputs = [_defined_where(original, where, x) for x in inputs]
    returned = function(*inputs)
    results = returned if isinstance(returned, tuple) else (returned,)
    if where is not True and None in [out if out is None else 0 for out in outs]:
        raise not_taken(
            name, "where", "give out=, too; or choose: np.where(condition, result, other)."
        )
    rules = {"broadcasts": not original.signature, "casting": casting}
    stored = tuple(
        result if out is None else _put_where(where, out, result, **rules)
        for result, out in zip(results, outs, strict=True)
    )
    return stored if isinstance(returned, tuple) else stored[0]


def _defined_where(original: np.ufunc, where: Any, x: Any) -> Any:
    """Return an operand, in the place of elements that are not computed a number that has a result.

    NumPy does not look at those, so they must not make a derivative NaN, nor raise.
    """
    x = as_array(x)
    kind = tensor_type(x).dtype.kind
    if is_weak(x) or kind == "b":
        return x
    real = 2.0 if original is np.arccosh else 0.5
    return STAGED[np.where](where, x, real if kind in "fc" else 1)


def _put_where(where: Any, out: Any, result: Any, **rules: Any) -> Any:
    """Store the elements of a result that are computed; return the array."""
    if where is not True:  # in the dtype of the array: that of both might hold neither
        check_takes(out, result, **rules)
        result = STAGED[np.where](where, cast(result, tensor_type(out).dtype), out)
    return put_into(out, result, **rules)


def _as_dtype(original: np.ufunc, xs: Sequence[Any], dtype: Any, casting: Any) -> list[Any]:
    """Return the operands in the dtypes that `dtype=` and `casting=` ask for."""
    arrays = [as_array(x) for x in xs]
    dtypes = original.resolve_dtypes(
        (*promotion_kinds(arrays), *(None,) * original.nout),
        signature=(*(None,) * original.nin, *(dtype and np.dtype(dtype),) * original.nout),
        casting=casting,
    )
    if dtype is None:  # and Python's numbers stay: comparisons take those that do not fit
        return arrays
    return [cast(x, d) for x, d in zip(arrays, dtypes[: original.nin], strict=True)]


def copy_if_operand(result: Any, operands: Sequence[Any]) -> Any:
    """Return the result, copied if it is one of the operands: a Python number is one of NumPy's."""
    if isinstance(result, Staged) and is_weak(result):
        return scalar(result)
    is_staged_array = isinstance(result, Staged) and result.zero_dim is not False
    is_array = tensor_type(result).shape != () or is_staged_array
    if not is_array or not any(result is x for x in operands):
        return result
    copied: Any = result.copy()
    return scalar(copied) if is_staged_array else copied


def scalar(x: Any) -> Any:
    """Return a number or array without axes as one of NumPy's scalars."""
    if not isinstance(x, Staged):
        return x[()]
    if is_weak(x):
        x = x.as_zero_dim()  # type: ignore[attr-defined]  # a traced number
    x.zero_dim = False
    return x


def ufunc(original: np.ufunc, op: Op, *, bools: Op | None = None) -> Callable[..., Any]:
    """Make the public function of a ufunc that is one op; `bools` is its op for bools."""

    def compute(*operands: Any) -> Any:
        is_bool = bools is not None and tensor_type(operands[0]).dtype == BOOL
        return apply(bools if is_bool and bools is not None else op, *operands)

    return make_ufunc(original, compute)
