"""Python functions that graphs call, and recorded runs of them."""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.context_values import scoped
from wend.base.errors import StructureError, TypeMismatchError, explain
from wend.base.lazy.cached_property import cached_property
from wend.base.pytree_codegen import Flatten, Unflatten, compile_flatten, compile_unflatten
from wend.base.source import Source, at, raised_at
from wend.eager.dispatch import Staged, recorder
from wend.eager.promotion import as_array, tensor_type
from wend.function.signature.signature import callable_name
from wend.function.signature.spec import TensorSpec
from wend.ir.dtypes import INEXACT
from wend.ops.hosting import Declared, Handle
from wend.tape.eager_tape import EagerTape
from wend.tape.recorded_array import RecordedArray
from wend.tape.recorded_value import RecordedValue
from wend.trace.recording.arguments import is_array_leaf, leaf_type
from wend.trace.state.variable import variables_in_use


class HostFunction:
    """The callee of a `py_function` node: a function with all its arguments except arrays.

    `result_specs` are the structure and types of its results, `where` is the user's line.
    """

    def __init__(
        self, fun: Callable[..., Any], args: Sequence[Any], result_specs: Any, where: Source | None
    ) -> None:
        self._fun, self.where = _method_reference(fun), where
        self.name = callable_name(fun)
        self._leaves, self._tree = trees.flatten_deep(tuple(args))
        self._array_positions = [k for k, leaf in enumerate(self._leaves) if is_array_leaf(leaf)]
        self.arrays = [self._leaves[k] for k in self._array_positions]
        self._leaves = [None if is_array_leaf(leaf) else leaf for leaf in self._leaves]
        specs, self.result_tree = trees.flatten_deep(result_specs)
        self.paths = trees.paths(self.result_tree, "result")
        self.specs = [self._spec_of(x, path) for x, path in zip(specs, self.paths, strict=True)]

    def __repr__(self) -> str:
        return f"<host function {self.name}{at(self.where)}>"

    def _spec_of(self, x: Any, path: str) -> TensorSpec:
        if isinstance(x, TensorSpec):
            return x
        if is_array_leaf(x):
            type = tensor_type(x)
            if type.shape is None:
                return TensorSpec(None, type.dtype)
            return TensorSpec([n if isinstance(n, int) else None for n in type.shape], type.dtype)
        spec_path = path.replace("result", "result_specs", 1)
        raise TypeMismatchError(
            explain(
                f"py_function{at(self.where)}: {spec_path} is {x!r:.60}, not a description of an "
                "array.",
                cure="describe each returned array by wend.TensorSpec(shape, dtype), or by an "
                "array like it; None if nothing is returned.",
            )
        )

    def declared(self) -> tuple[Declared, ...]:
        """Return the declared results, as an attribute of the node."""
        return tuple((spec.dtype, spec.shape) for spec in self.specs)

    # Graphs use generated functions instead of optree: optree releases the GIL, and a daemon thread
    # inside it aborts the process when the interpreter shuts down.
    @cached_property
    def _unflatten_arguments(self) -> Unflatten | None:
        return compile_unflatten(trees.numbered(self._tree))

    @cached_property
    def _flatten_result(self) -> Flatten | None:
        return compile_flatten(trees.numbered(self.result_tree))

    def _run_flat(self, arrays: Sequence[Any]) -> list[Any]:
        return self.run(arrays, self._unflatten_arguments, self._flatten_result)

    def run(
        self,
        arrays: Sequence[Any],
        unflatten: Unflatten | None = None,
        flatten: Flatten | None = None,
    ) -> list[Any]:
        """Call the function outside of any recording; return the checked leaves of its result.

        Args:
            arrays: its array arguments.
            unflatten: builds its arguments from leaves, if there is a generated function for that.
            flatten: returns the leaves of its result, likewise.

        Raises:
            TypeMismatchError: the results differ from the declared ones, or it assigned to a
                variable that the function around it uses.
        """
        fun = self._fun()
        if fun is None:
            raise ReferenceError(
                explain(
                    f"py_function{at(self.where)}: the object of the method `{self.name}` is gone.",
                    cure="keep it as long as the function is used: graphs do not hold it.",
                )
            )
        leaves = list(self._leaves)
        for position, array in zip(self._array_positions, arrays, strict=True):
            leaves[position] = array
        versions = [(variable, variable.version) for variable in variables_in_use()]
        try:
            result = fun(*(unflatten(leaves) if unflatten else trees.unflatten(self._tree, leaves)))
        except Exception as error:
            error.add_note(f"raised in `{self.name}`{at(raised_at(error))}")
            raise
        for variable, version in versions:
            if variable.version != version:
                raise TypeMismatchError(
                    explain(
                        f"py_function{at(self.where)}: `{self.name}` assigned to {variable!r}, "
                        "which the function around it uses.",
                        "that function keeps the value that it read before",
                        cure=f"return the new value from `{self.name}`, and assign it in the "
                        "function around it.",
                    )
                )
        return self._checked_leaves(result, flatten)

    def call(self, arrays: Sequence[Any]) -> list[Any]:
        with _not_recording():
            return [_to_numpy(x) for x in self._run_flat([_private_copy(x) for x in arrays])]

    def call_recorded(self, arrays: Sequence[Any]) -> tuple[list[Any], Handle]:
        with _not_recording():
            tape = EagerTape(watches_variables=False)
            watched = [
                tape.watch_separately(x) if x.dtype in INEXACT else _private_copy(x) for x in arrays
            ]
            sources = [x.value for x in watched if isinstance(x, RecordedArray)]
            tape.enter()
            try:
                results = self._run_flat(watched)
            finally:
                tape.leave()
        targets = [x for x in results if tensor_type(x).dtype in INEXACT]
        return [_to_numpy(x) for x in results], HostRun(tape, sources, targets)

    def _checked_leaves(self, result: Any, flatten: Flatten | None) -> list[Any]:
        if not self.specs:
            return []  # the result is ignored
        flat_leaves = flatten(result) if flatten else None
        if flat_leaves is not None and all(map(is_array_leaf, flat_leaves)):
            return list(map(self._coerced, self.paths, self.specs, flat_leaves))
        leaves, tree = trees.flatten_deep(result)
        if not trees.is_same_structure(tree, self.result_tree):
            expected = trees.unflatten(self.result_tree, [0.0] * len(self.specs))
            raise StructureError(
                explain(
                    f"py_function{at(self.where)}: `{self.name}` returned {trees.described(result)}"
                    f", result_specs is {trees.described(expected)}.",
                    trees.first_difference(expected, result, "result"),
                    cure="return that structure, or declare what is returned in result_specs.",
                )
            )
        return list(map(self._coerced, self.paths, self.specs, leaves))

    def _coerced(self, path: str, spec: TensorSpec, leaf: Any) -> Any:
        """Return a returned leaf as an array of its declared type."""
        is_numpy = isinstance(leaf, (np.ndarray, np.generic))
        if is_numpy and (leaf.dtype, leaf.shape) == (spec.dtype, spec.shape):
            return leaf  # fast path for the common case
        is_array = is_array_leaf(leaf)
        if not is_array or not spec.accepts(leaf_type(leaf)):
            actual = str(tensor_type(leaf)) if is_array else f"{type(leaf).__name__} {leaf!r:.40}"
            raise TypeMismatchError(
                explain(
                    f"py_function{at(self.where)}: `{self.name}` returned {actual} at {path}, "
                    f"expected {spec}.",
                    cure=f"cast or reshape it in `{self.name}`, or declare it in result_specs.",
                )
            )
        if not isinstance(leaf, Staged):
            return np.asarray(leaf, spec.dtype)
        array = as_array(leaf.read())
        if isinstance(array, Staged) and not isinstance(array, RecordedArray):
            raise array.leaked()
        return array


class HostRun:
    """A recorded run of a host function, or of a pullback, which can be pulled back repeatedly."""

    __slots__ = ("sources", "tape", "targets")

    def __init__(
        self, tape: EagerTape, sources: Sequence[RecordedValue], targets: Sequence[Any]
    ) -> None:
        self.tape, self.sources, self.targets = tape, sources, targets

    def pull(self, seeded: Sequence[int], wrt: Sequence[int], cts: Sequence[Any]) -> list[Any]:
        with _not_recording():
            return [_to_numpy(x) for x in self._cotangents(seeded, wrt, cts)]

    def pull_recorded(
        self, seeded: Sequence[int], wrt: Sequence[int], cts: Sequence[Any]
    ) -> tuple[list[Any], HostRun]:
        with _not_recording():
            watched = [self.tape.watch_separately(ct) for ct in cts]
            self.tape.enter()
            try:
                cotangents = self._cotangents(seeded, wrt, watched)
            finally:
                self.tape.leave()
        sources = [*self.sources, *(x.value for x in watched)]
        return [_to_numpy(x) for x in cotangents], HostRun(self.tape, sources, cotangents)

    def _cotangents(
        self, seeded: Sequence[int], wrt: Sequence[int], cts: Sequence[Any]
    ) -> list[Any]:
        """Return the cotangents of sources, zeros for those that the run does not depend on."""
        values = [self.tape.value_of(self.targets[k]) for k in seeded]
        seeds = [(v, ct) for v, ct in zip(values, cts, strict=True) if v is not None]
        sources = [self.sources[k] for k in wrt]
        cotangents = self.tape.pull_back(seeds, sources)
        return [
            np.zeros_like(source.concrete) if ct is None else ct
            for ct, source in zip(cotangents, sources, strict=True)
        ]


def _not_recording() -> AbstractContextManager[Any]:
    """Return a context in which no recording of the surroundings is active."""
    return scoped(recorder, None)


def _method_reference(fun: Callable[..., Any]) -> Callable[[], Callable[..., Any] | None]:
    """Return a getter of `fun` that holds a method weakly, so that no trace keeps its object."""
    if isinstance(fun, types.MethodType):
        with suppress(TypeError):  # the object is not weakly referenceable
            return weakref.WeakMethod(fun)
    return lambda: fun


def _private_copy(x: Any) -> Any:
    """Return a copy that the host function may keep or change; a NumPy scalar for a 0-d array."""
    return np.array(x)[()]


def _to_numpy(x: Any) -> Any:
    """Return a copy of a result that shares nothing with the host function."""
    return np.array(x.concrete if isinstance(x, RecordedArray) else x)[()]
