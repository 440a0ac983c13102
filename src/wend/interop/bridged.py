"""A wend function as a function of another system's arrays: one trace for each signature."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from wend.base.errors import TypeMismatchError, explain
from wend.base.lazy.dataclass import dataclass
from wend.capture.convert import capture
from wend.function.function import Function
from wend.interop.flat_function import ArrayType, Bridge, FlatFunction


@dataclass(frozen=True, slots=True)
class StaticLeaf:
    """A leaf that is part of the key of a trace, by class and value."""

    value: Hashable

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, StaticLeaf)
            and type(self.value) is type(other.value)
            and self.value == other.value
        )

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


def bridged(bridge: Bridge, fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of pytrees of the other system's arrays.

    Raises:
        TypeError: `fun` is not callable.
    """
    traces = SignatureTraces(bridge, fun)

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        trace, arrays = traces.find(args, kwargs)
        return trace(arrays)

    return call


class SignatureTraces:
    """The traces of a function, one for each signature.

    Args:
        bridge: the system that calls it.
        fun: the function, of pytrees of arrays.

    Raises:
        TypeError: `fun` is not callable.
    """

    def __init__(self, bridge: Bridge, fun: Callable[..., Any]) -> None:
        if not callable(fun):
            raise TypeError(f"{bridge.name} takes a function, not {fun!r}")
        self._bridge, self._fun = bridge, fun
        self._name = (
            fun.name if isinstance(fun, Function) else str(getattr(fun, "__name__", "function"))
        )
        self._traces: dict[Any, SignatureTrace] = {}

    def find(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[SignatureTrace, list[Any]]:
        """Return the trace for arguments, and the arrays among these."""
        bridge, name = self._bridge, self._name
        leaves, structure = bridge.flatten((args, kwargs))
        operands = [bridge.as_operand(leaf) for leaf in leaves]
        pairs = list(zip(leaves, operands, strict=True))
        static = tuple(
            None if operand is not None else _static_leaf(bridge, name, leaf)
            for leaf, operand in pairs
        )
        arrays = [operand for operand in operands if operand is not None]
        types = tuple(map(bridge.type_of, arrays))
        is_weak = tuple(bridge.is_weak(*pair) for pair in pairs if pair[1] is not None)
        # What a result becomes depends on a setting of JAX
        own = bridge.own_dtype(np.dtype(np.int64))
        key = structure, static, types, is_weak, own
        if key not in self._traces:
            self._traces[key] = SignatureTrace(
                bridge, name, self._fun, structure, static, types, is_weak
            )
        return self._traces[key], arrays


def _static_leaf(bridge: Bridge, name: str, leaf: Any) -> StaticLeaf:
    try:
        hash(leaf)
    except TypeError:
        where, kind = f"{bridge.name} of {name}", type(leaf).__name__
        problem = f"{where}: an argument holds a {kind}, which has no hash."
        raise TypeMismatchError(explain(problem, cure=bridge.leaf_cure)) from None
    return StaticLeaf(leaf)


class SignatureTrace:
    """A function for one signature.

    Attributes:
        flat: the function of arrays alone.
        structure: the structure of its result, once it has run; None if that is one array.
    """

    def __init__(
        self,
        bridge: Bridge,
        name: str,
        fun: Callable[..., Any],
        structure: Any,
        static: Sequence[StaticLeaf | None],
        types: Sequence[ArrayType],
        is_weak: Sequence[bool],
    ) -> None:
        self._bridge, self._fun, self._arguments = bridge, fun, structure
        self._static, self._is_weak = static, is_weak
        self.structure: Any = None
        backend = fun.backend if isinstance(fun, Function) else None
        self.flat = FlatFunction(bridge, name, self._call_flat, types, backend)

    def __call__(self, arrays: Sequence[Any]) -> Any:
        self.flat.result_types  # noqa: B018 - what is refused is raised outside of the other system
        return self.result_of(self._bridge.call(self.flat, arrays))

    def result_of(self, results: Sequence[Any]) -> Any:
        """Return what the function returns, of its arrays."""
        if self.structure is None:
            return results[0]
        return self._bridge.unflatten(self.structure, results)

    def _call_flat(self, *arrays: Any) -> tuple[Any, ...]:
        """Call the function on arrays alone; note the structure of its result."""
        pairs = zip(arrays, self._is_weak, strict=True)
        remaining = iter([self._bridge.as_weak(x) if weak else x for x, weak in pairs])
        leaves = [next(remaining) if leaf is None else leaf.value for leaf in self._static]
        args, kwargs = self._bridge.unflatten(self._arguments, leaves)
        fun = self._fun if isinstance(self._fun, Function) else capture(self._fun)
        result = fun(*args, **kwargs)
        results, structure = self._bridge.flatten(result)
        is_one = len(results) == 1 and results[0] is result
        self.structure = None if is_one else structure
        return tuple(results)
