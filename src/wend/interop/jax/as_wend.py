"""`as_wend`: a JAX function as a function of wend programs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from wend.base import trees
from wend.base.errors import StructureError, explain
from wend.base.source import Source, user_source
from wend.function.function import Function
from wend.function.host.host_function import HostFunction
from wend.function.signature.spec import TensorSpec
from wend.ops import hosting
from wend.trace.recording.recording import current


def as_wend(fun: Callable[..., Any], result_specs: Any) -> Callable[..., Any]:
    """Return a function for wend programs that runs a JAX function.

    `jax.jit` compiles the function once for each signature. A recorded loop calls it in every trip,
    in program order with prints. Derivatives of any order and in both modes are JAX's.

    Args:
        fun: a function of pytrees of JAX arrays, without side effects.
        result_specs: the results: a pytree of `TensorSpec`s or of arrays like them.

    Returns:
        A function of pytrees of arrays, plain or traced.

    Raises:
        TypeMismatchError: `fun` returns an array of another dtype or shape.
        StructureError: it returns another structure.

    Example:
        >>> import jax.numpy as jnp, numpy as np, wend
        >>> from wend.interop.jax import as_wend
        >>> sine = as_wend(jnp.sin, wend.TensorSpec((), np.float32))
        >>> @wend.function
        ... def twice(x):
        ...     for _ in range(2):
        ...         x = sine(x)
        ...     return x
        >>> print(round(float(twice(np.float32(1.0))), 4))
        0.7456
    """
    if not callable(fun):
        raise TypeError(f"as_wend takes a function, not {fun!r}")
    name = str(getattr(fun, "__name__", "function"))
    compiled: dict[Any, _JaxFunction] = {}
    specs, result_tree = trees.flatten(result_specs)
    # JAX sorts the keys of dicts: its order of the results, as positions in that of `specs`
    order, jax_tree = jax.tree_util.tree_flatten(trees.numbered(result_tree))

    def results_of(args: Any) -> tuple[Any, ...]:
        results, own_tree = jax.tree_util.tree_flatten(fun(*args))
        if own_tree != jax_tree:
            problem = f"as_wend of {name}: it returned {own_tree}, result_specs is {jax_tree}."
            raise StructureError(explain(problem, cure="declare what is returned in result_specs."))
        return tuple(results[order.index(k)] for k in range(len(specs)))

    @functools.wraps(fun)
    def call(*args: Any) -> Any:
        leaves, structure = trees.flatten(args)
        if structure not in compiled:
            compiled[structure] = _JaxFunction(
                name, lambda *arrays: results_of(trees.unflatten(structure, arrays)), tuple(specs)
            )
        return trees.unflatten(result_tree, compiled[structure].call(leaves))

    return call


class _JaxFunction:
    """A JAX function of arrays, and its pullbacks, each compiled once for each signature."""

    def __init__(
        self, name: str, fun: Callable[..., Any], specs: Sequence[TensorSpec] = ()
    ) -> None:
        self.__name__, self.fun, self._specs = name, fun, specs
        self._recorded = Function(self._record, name=name)
        self._jitted = jax.jit(fun)
        self._pulls: dict[Any, _JaxFunction] = {}

    def call(self, leaves: Sequence[Any]) -> Sequence[Any]:
        """Call it where a wend program runs, or is recorded."""
        recording = current()
        if recording is None:
            return self._callee(leaves).call([np.asarray(x) for x in leaves])
        # A tape records the call of a graph.
        record = self._recorded if recording.runs_now() else self._record
        return record(*leaves)

    def _callee(self, leaves: Sequence[Any]) -> _Callee:
        return _Callee(self, leaves, self._specs, user_source())

    def _record(self, *leaves: Any) -> tuple[Any, ...]:
        recording = current()
        assert recording is not None
        callee = self._callee(leaves)
        attrs = {"function": callee, "results": callee.declared()}
        return recording.emit(hosting.py_function, callee.arrays, attrs)

    def __call__(self, *arrays: Any) -> Any:
        """Return its results as NumPy arrays."""
        return tuple(map(np.asarray, self._jitted(*arrays)))

    def pull(
        self, sources: Sequence[int], seeded: Sequence[int], wrt: Sequence[int]
    ) -> _JaxFunction:
        """Return the function (arrays, cotangents) → cotangents.

        Args:
            sources: the positions of the arrays that have derivatives.
            seeded: the results whose cotangents it takes, counted among those that have any.
            wrt: the arrays whose cotangents it returns, counted among the sources.
        """
        key = tuple(sources), tuple(seeded), tuple(wrt)
        if key not in self._pulls:
            positions = [sources[k] for k in wrt]

            def pulled(*operands: Any) -> tuple[Any, ...]:
                arrays = operands[: len(operands) - len(seeded)]

                def restricted(*some: Any) -> tuple[Any, ...]:
                    whole = list(arrays)
                    for k, x in zip(positions, some, strict=True):
                        whole[k] = x
                    floats = [
                        x
                        for x in trees.flatten(self.fun(*whole))[0]
                        if np.dtype(x.dtype).kind in "fc"
                    ]
                    return tuple(floats[k] for k in seeded)

                _, pull_back = jax.vjp(restricted, *(arrays[k] for k in positions))
                cts: tuple[Any, ...] = pull_back(tuple(operands[len(arrays) :]))
                return cts

            self._pulls[key] = _JaxFunction(f"vjp of {self.__name__}", pulled)
        return self._pulls[key]


class _Callee(HostFunction):
    """The callee of a `py_function` node whose derivatives JAX computes."""

    def __init__(
        self,
        function: _JaxFunction,
        leaves: Sequence[Any],
        result_specs: Any,
        where: Source | None,
    ) -> None:
        super().__init__(function, leaves, result_specs, where)
        self._function = function

    def call_recorded(self, arrays: Sequence[Any]) -> tuple[list[Any], _JaxRun]:
        """Run the function; keep the arrays, from which JAX computes derivatives."""
        return self.call(arrays), _JaxRun(self._function, [np.array(x) for x in arrays])


class _JaxRun:
    """A run of a JAX function, which can be pulled back repeatedly."""

    def __init__(self, function: _JaxFunction, arrays: Sequence[np.ndarray]) -> None:
        self._function, self._arrays = function, arrays
        self._sources = [k for k, x in enumerate(arrays) if x.dtype.kind in "fc"]

    def pull(self, seeded: Sequence[int], wrt: Sequence[int], cts: Sequence[Any]) -> list[Any]:
        """Return the cotangents of some sources, from those of some results."""
        return list(self._function.pull(self._sources, seeded, wrt)(*self._arrays, *cts))

    def pull_recorded(
        self, seeded: Sequence[int], wrt: Sequence[int], cts: Sequence[Any]
    ) -> tuple[list[Any], _JaxRun]:
        """Pull back like `pull`; the run of the pullback can be pulled back in turn."""
        pulled = self._function.pull(self._sources, seeded, wrt)
        operands = [*self._arrays, *map(np.array, cts)]
        return list(pulled(*operands)), _JaxRun(pulled, operands)
