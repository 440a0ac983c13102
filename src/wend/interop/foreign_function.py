"""Functions of another library inside wend programs, with the derivatives that it computes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import StructureError, explain
from wend.base.lazy.dataclass import dataclass
from wend.base.source import Source, user_source
from wend.function.function import Function
from wend.function.host.host_function import HostFunction
from wend.function.signature.spec import TensorSpec
from wend.ops import hosting
from wend.trace.recording.recording import current

Arrays = Sequence[Any]


@dataclass(frozen=True)
class ArrayLibrary:
    """How functions of a library are called and differentiated.

    Attributes:
        flatten: returns the leaves and the structure of a pytree of its arrays.
        on_numpy: turns a function of its arrays into one of NumPy arrays, whose results are a
            tuple of NumPy arrays.
        vjp: takes a function of its arrays, which returns a tuple, and the arrays; returns the
            pullback, from cotangents of the results to those of the arrays. It is differentiable.
        is_float: returns whether an array has derivatives.
    """

    flatten: Callable[[Any], tuple[Sequence[Any], Any]]
    on_numpy: Callable[[Callable[..., Any]], Callable[..., tuple[np.ndarray, ...]]]
    vjp: Callable[[Callable[..., Any], Arrays], Callable[[Arrays], tuple[Any, ...]]]
    is_float: Callable[[Any], bool]


def as_wend(
    library: ArrayLibrary, fun: Callable[..., Any], result_specs: Any
) -> Callable[..., Any]:
    """Return a function for wend programs that runs a function of a library.

    Args:
        library: the library.
        fun: a function of pytrees of its arrays.
        result_specs: a pytree of `TensorSpec`s or of arrays like the results.

    Raises:
        TypeError: `fun` is not callable.
    """
    if not callable(fun):
        raise TypeError(f"as_wend takes a function, not {fun!r}")
    name = str(getattr(fun, "__name__", type(fun).__name__))
    by_structure: dict[Any, ForeignFunction] = {}
    specs, result_tree = trees.flatten(result_specs)
    # A library may sort the keys of dicts: its order of the results, as positions in `specs`
    order, library_tree = library.flatten(trees.numbered(result_tree))

    def results_of(args: Any) -> tuple[Any, ...]:
        results, own_tree = library.flatten(fun(*args))
        if own_tree != library_tree:
            problem = f"as_wend of {name}: it returned {own_tree}, result_specs is {library_tree}."
            raise StructureError(explain(problem, cure="declare what is returned in result_specs."))
        return tuple(results[order.index(k)] for k in range(len(specs)))

    @functools.wraps(fun, updated=())
    def call(*args: Any) -> Any:
        leaves, structure = trees.flatten(args)
        if structure not in by_structure:
            by_structure[structure] = ForeignFunction(
                library,
                name,
                lambda *arrays: results_of(trees.unflatten(structure, arrays)),
                tuple(specs),
            )
        return trees.unflatten(result_tree, by_structure[structure].call(leaves))

    return call


class ForeignFunction:
    """A function of a library's arrays, and its pullbacks."""

    def __init__(
        self,
        library: ArrayLibrary,
        name: str,
        fun: Callable[..., Any],
        specs: Sequence[TensorSpec] = (),
    ) -> None:
        self.__name__, self.fun, self._specs, self._library = name, fun, specs, library
        self._recorded = Function(self._record, name=name)
        self._run = library.on_numpy(fun)
        self._pulls: dict[Any, ForeignFunction] = {}

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
        return self._run(*arrays)

    def pull(
        self, sources: Sequence[int], seeded: Sequence[int], wrt: Sequence[int]
    ) -> ForeignFunction:
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
                    floats = [x for x in self.fun(*whole) if self._library.is_float(x)]
                    return tuple(floats[k] for k in seeded)

                pull_back = self._library.vjp(restricted, [arrays[k] for k in positions])
                return pull_back(operands[len(arrays) :])

            self._pulls[key] = ForeignFunction(self._library, f"vjp of {self.__name__}", pulled)
        return self._pulls[key]


class _Callee(HostFunction):
    """The callee of a `py_function` node whose derivatives a library computes."""

    def __init__(
        self,
        function: ForeignFunction,
        leaves: Sequence[Any],
        result_specs: Any,
        where: Source | None,
    ) -> None:
        super().__init__(function, leaves, result_specs, where)
        self._function = function

    def call_recorded(self, arrays: Sequence[Any]) -> tuple[list[Any], _ForeignRun]:
        """Run the function; keep the arrays, from which the library computes derivatives."""
        return self.call(arrays), _ForeignRun(self._function, [np.array(x) for x in arrays])


class _ForeignRun:
    """A run of a library's function, which can be pulled back repeatedly."""

    def __init__(self, function: ForeignFunction, arrays: Sequence[np.ndarray]) -> None:
        self._function, self._arrays = function, arrays
        self._sources = [k for k, x in enumerate(arrays) if x.dtype.kind in "fc"]

    def pull(self, seeded: Sequence[int], wrt: Sequence[int], cts: Sequence[Any]) -> list[Any]:
        """Return the cotangents of some sources, from those of some results."""
        return list(self._function.pull(self._sources, seeded, wrt)(*self._arrays, *cts))

    def pull_recorded(
        self, seeded: Sequence[int], wrt: Sequence[int], cts: Sequence[Any]
    ) -> tuple[list[Any], _ForeignRun]:
        """Pull back like `pull`; the run of the pullback can be pulled back in turn."""
        pulled = self._function.pull(self._sources, seeded, wrt)
        operands = [*self._arrays, *map(np.array, cts)]
        return list(pulled(*operands)), _ForeignRun(pulled, operands)
