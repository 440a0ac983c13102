"""A wend function as a function of another system's arrays: one trace for each signature."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from wend.base.errors import TypeMismatchError, explain
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
    if not callable(fun):
        raise TypeError(f"{bridge.name} takes a function, not {fun!r}")
    name = fun.name if isinstance(fun, Function) else str(getattr(fun, "__name__", "function"))
    traces: dict[Any, _SignatureTrace] = {}
    traces_of_arrays: dict[Any, _SignatureTrace] = {}  # by `key_of`, which is faster

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        arrays_key = None if kwargs else bridge.key_of(args)
        trace = traces_of_arrays.get(arrays_key)
        if trace is not None:
            result = None if trace.direct_call is None else trace.direct_call(args)
            return trace(args) if result is None else result
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
        key = structure, static, types, is_weak
        if key not in traces:
            traces[key] = _SignatureTrace(bridge, name, fun, structure, static, types, is_weak)
        if arrays_key is not None:
            traces_of_arrays[arrays_key] = traces[key]
        return traces[key](arrays)

    return call


def _static_leaf(bridge: Bridge, name: str, leaf: Any) -> StaticLeaf:
    try:
        hash(leaf)
    except TypeError:
        where, kind = f"{bridge.name} of {name}", type(leaf).__name__
        problem = f"{where}: an argument holds a {kind}, which has no hash."
        raise TypeMismatchError(explain(problem, cure=bridge.leaf_cure)) from None
    return StaticLeaf(leaf)


class _SignatureTrace:
    """A function for one signature.

    Attributes:
        direct_call: the fast path, once there is one.
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
        self._bridge, self._fun, self._structure = bridge, fun, structure
        self._static, self._is_weak = static, is_weak
        self._result: Any = None
        self._is_single = False  # whether the result is an array, not a tree of some
        self._flat = FlatFunction(bridge, name, self._call_flat, types)
        self.direct_call: Callable[[Sequence[Any]], Any] | None = None

    def __call__(self, arrays: Sequence[Any]) -> Any:
        self._flat.result_types  # noqa: B018 - what is refused is raised outside of the other system
        results = self._bridge.call(self._flat, arrays)
        if not self._is_single:
            return self._bridge.unflatten(self._result, results)
        if self.direct_call is None:
            self.direct_call = self._bridge.direct_call(self._flat)
        return results[0]

    def _call_flat(self, *arrays: Any) -> tuple[Any, ...]:
        """Call the function on arrays alone; note the structure of its result."""
        pairs = zip(arrays, self._is_weak, strict=True)
        remaining = iter([self._bridge.as_weak(x) if weak else x for x, weak in pairs])
        leaves = [next(remaining) if leaf is None else leaf.value for leaf in self._static]
        args, kwargs = self._bridge.unflatten(self._structure, leaves)
        fun = self._fun if isinstance(self._fun, Function) else capture(self._fun)
        result = fun(*args, **kwargs)
        results, self._result = self._bridge.flatten(result)
        self._is_single = len(results) == 1 and results[0] is result
        return tuple(results)
