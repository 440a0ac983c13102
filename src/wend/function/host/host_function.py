"""A Python function that graphs call, and what is recorded of a run of it."""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.context_values import scoped
from wend.base.errors import StructureError, TypeMismatchError, explain
from wend.base.pytree_codegen import (
    Flatten,
    Unflatten,
    compile_flatten,
    compile_unflatten,
)
from wend.base.source import Source, at, raised_at
from wend.eager.dispatch import Staged, recorder
from wend.eager.promotion import as_array, tensor_type
from wend.function.signature.spec import TensorSpec
from wend.ir.dtypes import INEXACT
from wend.ops.hosting import Declared
from wend.tape.eager_tape import EagerTape
from wend.tape.recorded_array import Recorded
from wend.tape.recorded_value import RecordedValue
from wend.trace.recording.arguments import is_array_leaf, leaf_type
from wend.trace.state.variable import variables_in_use


class HostFunction:
    """What a `py_function` node calls: a function with its arguments but for the arrays.

    Args:
        fun: the function.
        args: its arguments; their array leaves are given at each call.
        result_specs: what it returns.
        where: the user's line.
    """

    def __init__(
        self, fun: Callable[..., Any], args: Sequence[Any], result_specs: Any, where: Source | None
    ) -> None:
        self._fun, self.where = _held(fun), where
        self.name = _name_of(fun)
        self._leaves, self._tree = trees.flatten(tuple(args))
        self._places = [k for k, leaf in enumerate(self._leaves) if is_array_leaf(leaf)]
        self.arrays = [self._leaves[k] for k in self._places]
        self._leaves = [None if is_array_leaf(leaf) else leaf for leaf in self._leaves]
        specs, self.result_tree = trees.flatten(result_specs)
        paths = trees.paths(self.result_tree, "result")
        self.specs = [self._spec(x, path) for x, path in zip(specs, paths, strict=True)]
        self.paths = paths

    def __repr__(self) -> str:
        return f"<host function {self.name}{at(self.where)}>"

    def _spec(self, x: Any, path: str) -> TensorSpec:
        if isinstance(x, TensorSpec):
            return x
        if is_array_leaf(x):
            type = tensor_type(x)
            if type.shape is None:
                return TensorSpec(None, type.dtype)
            sizes = [n if isinstance(n, int) else None for n in type.shape]
            return TensorSpec(sizes, type.dtype)
        found = path.replace("result", "result_specs", 1)
        raise TypeMismatchError(
            explain(
                f"py_function{at(self.where)}: {found} is {x!r:.60}, no description of an array.",
                cure="describe each array that is returned by wend.TensorSpec(shape, dtype), or "
                "by an array like it; None: nothing is returned.",
            )
        )

    def declared(self) -> tuple[Declared, ...]:
        """The results as the node declares them."""
        return tuple((spec.dtype, spec.shape) for spec in self.specs)

    # Running. Graphs go by plans: a daemon thread that is in optree, which lets go of the
    # interpreter's lock, while the interpreter ends aborts the process.
    @cached_property
    def _build(self) -> Unflatten | None:
        return compile_unflatten(trees.numbered(self._tree))

    @cached_property
    def _take(self) -> Flatten | None:
        return compile_flatten(trees.numbered(self.result_tree))

    def _run_again(self, arrays: Sequence[Any]) -> list[Any]:
        return self.run(arrays, self._build, self._take)

    def run(
        self, arrays: Sequence[Any], build: Unflatten | None = None, take: Flatten | None = None
    ) -> list[Any]:
        """Call the function where nothing else records; the leaves that it returns, checked.

        Args:
            arrays: its array arguments.
            build: what makes its arguments of leaves, if there is something quick.
            take: what takes apart what it returns, likewise.

        Raises:
            TypeMismatchError: they are not what was declared; or it assigned to a variable that the
                function around it uses.
        """
        fun = self._fun()
        if fun is None:
            raise ReferenceError(
                explain(
                    f"py_function{at(self.where)}: the object is gone whose method `{self.name}` "
                    "is to be called.",
                    cure="keep it as long as the function is used: graphs do not hold it.",
                )
            )
        leaves = list(self._leaves)
        for place, array in zip(self._places, arrays, strict=True):
            leaves[place] = array
        held = [(variable, variable.version) for variable in variables_in_use()]
        try:
            result = fun(*(build(leaves) if build else trees.unflatten(self._tree, leaves)))
        except Exception as error:
            error.add_note(f"raised in `{self.name}`{at(raised_at(error))}")
            raise
        for variable, version in held:
            if variable.version != version:
                raise TypeMismatchError(
                    explain(
                        f"py_function{at(self.where)}: `{self.name}` assigned to {variable!r}, "
                        "which the function around it uses.",
                        "that function goes on with what it read before",
                        cure=f"return the new value from `{self.name}`, and assign it in the "
                        "function around it.",
                    )
                )
        return self._checked(result, take)

    def call(self, arrays: Sequence[Any]) -> list[Any]:
        with _alone():
            return [_plain(x) for x in self._run_again([_own(x) for x in arrays])]

    def call_recorded(self, arrays: Sequence[Any]) -> tuple[list[Any], HostRun]:
        with _alone():
            tape = EagerTape(watches_variables=False)
            given = [tape.watch_apart(x) if x.dtype in INEXACT else _own(x) for x in arrays]
            sources = [x.value for x in given if isinstance(x, Recorded)]
            tape.enter()
            try:
                found = self._run_again(given)
            finally:
                tape.leave()
        targets = [x for x in found if tensor_type(x).dtype in INEXACT]
        return [_plain(x) for x in found], HostRun(tape, sources, targets)

    def _checked(self, result: Any, take: Flatten | None) -> list[Any]:
        if not self.specs:
            return []  # nothing is wanted of what it returns
        taken = take(result) if take else None
        if taken is not None and all(map(is_array_leaf, taken)):
            return list(map(self._fitted, self.paths, self.specs, taken))
        leaves, tree = trees.flatten(result)
        if tree != self.result_tree:
            expected = trees.unflatten(self.result_tree, [0.0] * len(self.specs))
            raise StructureError(
                explain(
                    f"py_function{at(self.where)}: `{self.name}` returned {trees.described(result)}"
                    f", result_specs is {trees.described(expected)}.",
                    trees.first_difference(expected, result, "result"),
                    cure="return that structure, or declare what is returned in result_specs.",
                )
            )
        return list(map(self._fitted, self.paths, self.specs, leaves))

    def _fitted(self, path: str, spec: TensorSpec, leaf: Any) -> Any:
        """A leaf that was returned, as an array of its declared type."""
        is_plain = isinstance(leaf, (np.ndarray, np.generic))
        if is_plain and (leaf.dtype, leaf.shape) == (spec.dtype, spec.shape):
            return leaf  # the usual case, quickly
        is_array = is_array_leaf(leaf)
        if not is_array or not spec.accepts(leaf_type(leaf)):
            found = str(tensor_type(leaf)) if is_array else f"{type(leaf).__name__} {leaf!r:.40}"
            raise TypeMismatchError(
                explain(
                    f"py_function{at(self.where)}: `{self.name}` returned {found} at {path}, "
                    f"expected {spec}.",
                    cure=f"cast or reshape it in `{self.name}`, or declare it in result_specs.",
                )
            )
        if not isinstance(leaf, Staged):
            return np.asarray(leaf, spec.dtype)
        array = as_array(leaf.read())
        if isinstance(array, Staged) and not isinstance(array, Recorded):
            raise array.leaked()
        return array


class HostRun:
    """A recorded run of a host function, or of a pull: it can be pulled back, as often as asked."""

    __slots__ = ("sources", "tape", "targets")

    def __init__(
        self, tape: EagerTape, sources: Sequence[RecordedValue], targets: Sequence[Any]
    ) -> None:
        self.tape, self.sources, self.targets = tape, sources, targets

    def pull(self, given: Sequence[int], wrt: Sequence[int], cts: Sequence[Any]) -> list[Any]:
        with _alone():
            return [_plain(x) for x in self._pulled(given, wrt, cts)]

    def pull_recorded(
        self, given: Sequence[int], wrt: Sequence[int], cts: Sequence[Any]
    ) -> tuple[list[Any], HostRun]:
        with _alone():
            watched = [self.tape.watch_apart(ct) for ct in cts]
            self.tape.enter()
            try:
                found = self._pulled(given, wrt, watched)
            finally:
                self.tape.leave()
        sources = [*self.sources, *(x.value for x in watched)]
        return [_plain(x) for x in found], HostRun(self.tape, sources, found)

    def _pulled(self, given: Sequence[int], wrt: Sequence[int], cts: Sequence[Any]) -> list[Any]:
        """Cotangents of sources; zeros where the run does not depend on one."""
        values = [self.tape.value_of(self.targets[k]) for k in given]
        seeds = [(v, ct) for v, ct in zip(values, cts, strict=True) if v is not None]
        sources = [self.sources[k] for k in wrt]
        found = self.tape.pull_back(seeds, sources)
        return [
            np.zeros_like(source.concrete) if ct is None else ct
            for ct, source in zip(found, sources, strict=True)
        ]


def _alone() -> AbstractContextManager[Any]:
    """Run Python outside of what is recorded around it."""
    return scoped(recorder, None)


def _held(fun: Callable[..., Any]) -> Callable[[], Callable[..., Any] | None]:
    """The function, or a method by a weak reference: a trace must not keep the object it is for."""
    if isinstance(fun, types.MethodType):
        with suppress(TypeError):  # of an object that cannot be held so
            return weakref.WeakMethod(fun)
    return lambda: fun


def _own(x: Any) -> Any:
    """An array for the host function to keep or change; a NumPy scalar for a 0-d one."""
    return np.array(x)[()]


def _plain(x: Any) -> Any:
    """A result, apart from what the host function keeps."""
    return np.array(x.concrete if isinstance(x, Recorded) else x)[()]


def _name_of(fun: Callable[..., Any]) -> str:
    if isinstance(fun, functools.partial):
        return _name_of(fun.func)
    return str(getattr(fun, "__name__", None) or type(fun).__name__)
