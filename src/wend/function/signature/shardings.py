"""`in_shardings` and `out_shardings`, as in `jax.jit`: where arguments and results lie."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from wend.backends.protocol import choose
from wend.base import trees
from wend.base.errors import StructureError, TypeMismatchError, UnsupportedError, explain
from wend.capture.convert import capture
from wend.function.signature.prefixes import spread
from wend.function.signature.signature import Signature
from wend.ir.graph import Value
from wend.ops.sharding import shard
from wend.trace.arrays.tracer import Tracer
from wend.trace.recording.arguments import is_array_leaf
from wend.trace.recording.recording import Recording, current


class ShardedFunction:
    """A function, as it is traced, that asks where the arrays of a call lie.

    Args:
        fun: the function.
        in_shardings: the shardings of its positional arguments, but static ones.
        out_shardings: those of its result.
        signature: how its calls are bound.
        backend: the backend that it names.
        captures: whether Python's control flow is recorded.

    Raises:
        UnsupportedError: the backend computes in the memory of the host.
        TypeMismatchError: an entry is no sharding.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        in_shardings: Any,
        out_shardings: Any,
        signature: Signature,
        backend: str | None,
        *,
        captures: bool,
    ) -> None:
        functools.update_wrapper(self, fun, updated=())
        self._fun = capture(fun) if captures else fun
        self._name = str(getattr(fun, "__name__", "function"))
        self._in, self._out, self._signature = in_shardings, out_shardings, signature
        if backend not in (None, "jax"):
            option = "out_shardings" if in_shardings is None else "in_shardings"
            raise UnsupportedError(
                explain(
                    f"{self._name}: {option} is given, but the {backend} backend computes in the "
                    "memory of the host.",
                    cure='leave it out, or use backend="jax".',
                )
            )
        self._types = choose("jax").boundary.sharding_types
        self._check("in_shardings", in_shardings)
        self._check("out_shardings", out_shardings)

    def _check(self, path: str, part: Any) -> None:
        if not self._is_sharding(part, path):
            for end, inner in trees.children_of(part) or ():
                self._check(path + end, inner)

    def _is_sharding(self, entry: Any, path: str) -> bool:
        if entry is None or isinstance(entry, self._types):
            return True
        if trees.children_of(entry) is not None:
            return False
        kind = type(entry).__name__
        cure = "give one such as jax.sharding.NamedSharding(mesh, spec), or None."
        problem = f"{self._name}: {path} is a {kind}, not a sharding."
        raise TypeMismatchError(explain(problem, cure=cure))

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        recording = current()
        assert recording is not None
        asked: list[tuple[Tracer, Value, str]] = []
        if self._in is not None:
            args = self._arguments(recording, args, kwargs, asked)
        result = self._fun(*args, **kwargs)
        for array, value, path in asked:
            if recording.lift(array) is not value:
                cure = "change a copy of it, x = x.copy(), and return that."
                problem = f"{self._name}: {path} has a sharding, and is changed in place."
                raise TypeMismatchError(explain(problem, cure=cure))
        if self._out is None:
            return result
        return self._with_shardings(recording, result, self._out, "out_shardings", "the result", [])

    def _arguments(
        self,
        recording: Recording,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        asked: list[tuple[Tracer, Value, str]],
    ) -> tuple[Any, ...]:
        """Return the positional arguments, with the shardings that are asked for."""
        if kwargs:
            cure = "pass them by position, or leave in_shardings out."
            keywords = ", ".join(kwargs)
            problem = (
                f"{self._name}: in_shardings are for positional arguments, not for {keywords}."
            )
            raise TypeMismatchError(explain(problem, cure=cure))
        names = [*self._signature.parameters, *map(str, range(len(args)))][: len(args)]
        traced = [k for k, name in enumerate(names) if name not in self._signature.static]
        shardings, results = self._in, list(args)
        if not isinstance(shardings, (tuple, list)):
            shardings = [shardings] * len(traced)
        if len(shardings) != len(traced):
            listed = ", ".join(names[k] for k in traced)
            raise StructureError(
                explain(
                    f"{self._name}: in_shardings has {len(shardings)} entries, but there are "
                    f"{len(traced)} positional arguments ({listed}).",
                    cure="give one entry for each, None where none is asked for; or one for all.",
                )
            )
        for i, k in enumerate(traced):
            path, of = f"in_shardings[{i}]", f"argument {names[k]}"
            results[k] = self._with_shardings(recording, args[k], shardings[i], path, of, asked)
        return tuple(results)

    def _with_shardings(
        self,
        recording: Recording,
        tree: Any,
        shardings: Any,
        path: str,
        of: str,
        asked: list[tuple[Tracer, Value, str]],
    ) -> Any:
        """Return a pytree whose arrays have shardings; note them."""
        leaves, treedef = trees.flatten_deep(tree, with_objects=True)
        entries = spread(shardings, tree, self._name, path, of, "sharding", self._is_sharding)
        paths = trees.paths(treedef, of)
        for k, (leaf, entry) in enumerate(zip(leaves, entries, strict=True)):
            if entry is None or not (isinstance(leaf, Tracer) or is_array_leaf(leaf)):
                continue
            what = f"{paths[k]} of {self._name}"
            value = recording.b.emit(shard, recording.lift(leaf), sharding=entry, what=what)
            array = recording.wrap(value, weak=isinstance(leaf, Tracer) and leaf.weak)
            if isinstance(leaf, Tracer):
                array.zero_dim = leaf.zero_dim
            leaves[k] = array
            asked.append((array, value, paths[k]))
        return trees.unflatten(treedef, leaves)
