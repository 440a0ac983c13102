"""`as_jax`: a wend function as a function of JAX arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wend.base.errors import TypeMismatchError, explain
from wend.capture.convert import capture
from wend.eager.promotion import cast
from wend.function.function import Function
from wend.interop.flat_function import PYTHON_DTYPES, ArrayType, Bridge, FlatFunction, as_weak
from wend.interop.jax.primitives import wend_call
from wend.interop.jax.pytrees import StaticLeaf, Structure, flatten, is_array


def _own_dtype(dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    own: np.dtype[Any] = np.dtype(jax.dtypes.canonicalize_dtype(dtype))
    return None if own != dtype and dtype.kind in "fc" else own


_JAX = Bridge(
    name="as_jax",
    compiler="XLA",
    arrays="arrays of JAX",
    own_dtype=_own_dtype,
    dtype_cure="cast the captured arrays to float32, or the result by .astype(np.float32); or call "
    'jax.config.update("jax_enable_x64", True).',
)


def as_jax(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for JAX programs that runs a wend function as native code.

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
    if not callable(fun):
        raise TypeError(f"as_jax takes a function, not {fun!r}")
    name = fun.name if isinstance(fun, Function) else str(getattr(fun, "__name__", "function"))
    traces: dict[Any, _Trace] = {}

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = flatten((args, kwargs))
        operands = [jnp.asarray(x) if is_array(x) else None for x in leaves]
        static = tuple(
            None if operand is not None else _static(name, leaf)
            for operand, leaf in zip(operands, leaves, strict=True)
        )
        arrays = [x for x in operands if x is not None]
        types = [ArrayType(tuple(x.shape), np.dtype(x.dtype)) for x in arrays]
        is_weak = tuple(bool(x.aval.weak_type) for x in arrays)
        key = structure, static, tuple(types), is_weak
        if key not in traces:
            traces[key] = _Trace(name, fun, structure, static, types, is_weak)
        return traces[key](arrays)

    return call


def _static(name: str, leaf: Any) -> StaticLeaf:
    try:
        hash(leaf)
    except TypeError:
        problem = f"as_jax of {name}: an argument holds a {type(leaf).__name__}, which has no hash."
        cure = "register its class with jax.tree_util or wend.tree, or pass its arrays."
        raise TypeMismatchError(explain(problem, cure=cure)) from None
    return StaticLeaf(leaf)


class _Trace:
    """A function for one signature."""

    def __init__(
        self,
        name: str,
        fun: Callable[..., Any],
        structure: Structure,
        static: Sequence[StaticLeaf | None],
        types: Sequence[ArrayType],
        is_weak: Sequence[bool],
    ) -> None:
        self._fun, self._structure, self._static, self._is_weak = fun, structure, static, is_weak
        self._result: Structure | None = None
        self._flat = FlatFunction(_JAX, name, self._call_flat, types)

    def __call__(self, arrays: Sequence[Any]) -> Any:
        self._flat.result_types  # noqa: B018 - what is refused is raised outside of JAX
        results = wend_call.bind(*arrays, callee=self._flat)
        assert self._result is not None
        return self._result.unflatten(results)

    def _call_flat(self, *arrays: Any) -> tuple[Any, ...]:
        """Call the function on arrays alone; note the structure of its result."""
        remaining = iter([_marked(x, weak) for x, weak in zip(arrays, self._is_weak, strict=True)])
        leaves = [next(remaining) if leaf is None else leaf.value for leaf in self._static]
        args, kwargs = self._structure.unflatten(leaves)
        fun = self._fun if isinstance(self._fun, Function) else capture(self._fun)
        results, self._result = flatten(fun(*args, **kwargs))
        return tuple(results)


def _marked(x: Any, weak: bool) -> Any:
    """Return a traced number that follows the dtype of what it meets, as in JAX.

    Without 64 bits a weak float of JAX has 32 and a Python float 64, so it keeps its dtype.
    """
    if not weak:
        return x
    if np.dtype(x.dtype) == np.int32:
        x = cast(x, np.dtype(np.int64))
    return as_weak(x) if np.dtype(x.dtype) in PYTHON_DTYPES else x
