"""`as_jax`: a wend function as a function of JAX arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wend.base.errors import explain
from wend.eager.promotion import cast
from wend.interop.bridged import bridged
from wend.interop.flat_function import PYTHON_DTYPES, ArrayType, Bridge, FlatFunction, as_weak
from wend.interop.jax.primitives import bind, wend_call
from wend.interop.jax.pytrees import Structure, flatten, is_array

_ENABLE = 'jax.config.update("jax_enable_x64", True)'
_RANGE_CURE = f"call {_ENABLE}; or pass and return integers that fit."


def _result_dtype(dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    result: np.dtype[Any] = np.dtype(jax.dtypes.canonicalize_dtype(dtype))
    return None if result != dtype and dtype.kind in "fc" else result


def _as_operand(leaf: Any) -> Any:
    """Return an argument as JAX has it, None if it is no array."""
    if not is_array(leaf):
        return None
    array = jnp.asarray(leaf)
    is_cut = array.dtype != getattr(leaf, "dtype", array.dtype) and array.dtype.kind in "iu"
    if is_cut and not np.array_equal(leaf, np.asarray(array)):
        limits = f"from {np.min(leaf)} to {np.max(leaf)}"
        problem = f"as_jax: an argument has integers {limits}, and XLA takes {array.dtype}."
        raise OverflowError(explain(problem, cure=_RANGE_CURE))
    return array


def _call(function: FlatFunction, arrays: Sequence[Any]) -> Sequence[Any]:
    results: Sequence[Any] = bind(wend_call, *arrays, callee=function)
    return results


def _as_weak(x: Any) -> Any:
    """Return a traced number that follows the dtype of what it meets, as in JAX.

    Without 64 bits a weak float of JAX has 32 and a Python float 64, so it keeps its dtype.
    """
    if np.dtype(x.dtype) == np.int32:
        x = cast(x, np.dtype(np.int64))
    return as_weak(x) if np.dtype(x.dtype) in PYTHON_DTYPES.values() else x


BRIDGE = Bridge(
    name="as_jax",
    compiler="XLA",
    arrays="arrays of JAX",
    call=_call,
    flatten=flatten,
    unflatten=Structure.unflatten,
    as_operand=_as_operand,
    type_of=lambda array: ArrayType(tuple(array.shape), np.dtype(array.dtype)),
    # Arrays of several elements have a dtype of their own here, weak or not
    is_weak=lambda leaf, array: bool(array.aval.weak_type) and not array.shape,
    as_weak=_as_weak,
    leaf_cure="register its class with jax.tree_util or wend.tree, or pass its arrays.",
    own_dtype=_result_dtype,
    dtype_cure="cast the captured arrays to float32, or the result by .astype(np.float32); or call "
    f"{_ENABLE}.",
    range_cure=_RANGE_CURE,
)


def as_jax(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for JAX programs that runs a wend function as native code.

    With `backend="jax"` XLA compiles it as a part of the program around, for any device.

    It works under `jax.jit`, `grad`, `jvp`, `vjp`, `linearize`, `hessian`, `vmap`, `scan` and
    `checkpoint`, in any nesting and to any order: loops whose trip count depends on the data have
    reverse derivatives. The function is traced once for each signature, at JAX's dtypes; what it
    reads outside is read then. Nothing is kept between calls: a derivative call computes from the
    operands.

    Args:
        fun: a function of pytrees of arrays, plain or a `wend.Function`. Nodes that are registered
            with JAX or with wend are taken; other leaves than arrays and numbers must be hashable,
            and are part of the signature.

    Returns:
        A function of the same arguments, with `jax.Array`s.

    Raises:
        VariableError: `fun` uses a variable.
        TypeMismatchError: it changes an argument in place, prints or calls Python, returns arrays
            whose size only a run can tell, or returns float64 while `jax_enable_x64` is off.
        OverflowError: an integer, which JAX takes in 32 bits then, does not fit.

    Example:
        >>> import jax, numpy as np
        >>> from wend.interop.jax import as_jax
        >>> def root(a):
        ...     x = a
        ...     while np.abs(x * x - a) > 1e-6 * a:
        ...         x = 0.5 * (x + a / x)
        ...     return x
        >>> round(float(jax.jit(jax.grad(as_jax(root)))(4.0)), 4)
        0.25
    """
    return bridged(BRIDGE, fun)
