"""`associative_scan`: partial results of associative operations; signature as in `jax.lax`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from wend.base import trees
from wend.base.errors import ShapeError, StructureError, explain
from wend.base.source import at, user_source
from wend.eager.promotion import tensor_type
from wend.numpy import concatenate, flip, moveaxis, reshape, stack
from wend.trace.immediate import run_now
from wend.trace.recording.checks import check_functions, check_leaves
from wend.trace.recording.recording import current

_Arrays: TypeAlias = Sequence[Any]
_Combine: TypeAlias = Callable[[_Arrays, _Arrays], _Arrays]


def associative_scan(
    fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0
) -> Any:
    """Return the partial results of an associative operation along an axis.

    Row k of the result combines the rows 0 to k. `fn` is called for many pairs of rows at once, of
    which there are at most two a row, in about 2 log₂ n calls (G. Blelloch, Prefix sums and their
    applications, 1990).

    Args:
        fn: (earlier, later) → combined, where `fn(fn(a, b), c)` is `fn(a, fn(b, c))`: two pytrees
            of arrays like `elems` with k rows along the axis → one of the same kind, row by row.
        elems: a pytree of arrays that have one known size along the axis.
        reverse: combine from the last row to the first.
        axis: the axis of the rows.

    Raises:
        ShapeError: the sizes along the axis differ, only the run knows them, or `fn` changes
            a shape.
        StructureError: `fn` returns another structure.

    Example:
        >>> import wend, wend.numpy as wnp
        >>> wend.associative_scan(wnp.add, wnp.arange(1.0, 5.0))
        array([ 1.,  3.,  6., 10.])
        >>> def after(f, g):  # x → a·x + b
        ...     return f[0] * g[0], f[1] * g[0] + g[1]
        >>> wend.associative_scan(after, (wnp.full(3, 2.0), wnp.ones(3)))[1]
        array([1., 3., 7.])
    """
    check_functions(fn=fn)
    if current() is None:
        return run_now(lambda xs: associative_scan(fn, xs, reverse, axis), elems)
    where = f"associative_scan{at(user_source())}"
    leaves, treedef = trees.flatten_deep(elems)
    paths = trees.paths(treedef, "elems")
    check_leaves(where, leaves, paths)
    size = _size(leaves, paths, axis, where)
    rows = [moveaxis(leaf, axis, 0) for leaf in leaves]

    def combine(earlier: _Arrays, later: _Arrays) -> _Arrays:
        parts = [[moveaxis(x, 0, axis) for x in rows] for rows in (earlier, later)]
        results, structure = trees.flatten_deep(fn(*(trees.unflatten(treedef, x) for x in parts)))
        if not trees.is_same_structure(structure, treedef):
            raise StructureError(
                explain(
                    f"{where}: fn returns another structure than elems.",
                    cure="return a pytree like its arguments.",
                )
            )
        for result, part, path in zip(results, parts[0], paths, strict=True):
            shape, wanted_shape = tensor_type(result).shape, tensor_type(part).shape
            if shape != wanted_shape:
                raise ShapeError(
                    f"{where}: fn gives {path} the shape {shape}, where its arguments have "
                    f"{wanted_shape}."
                )
        return [moveaxis(x, axis, 0) for x in results]

    if size > 1:
        ordered = [flip(x, 0) for x in rows] if reverse else rows
        scanned = _partial(combine, ordered, size)
        rows = [flip(x, 0) for x in scanned] if reverse else [*scanned]
    return trees.unflatten(treedef, [moveaxis(x, 0, axis) for x in rows])


def _size(leaves: _Arrays, paths: Sequence[str], axis: int, where: str) -> int:
    """Return the number of rows."""
    sizes: dict[str, Any] = {}
    for leaf, path in zip(leaves, paths, strict=True):
        dims = tensor_type(leaf).dims
        if not -len(dims) <= axis < len(dims):
            raise ShapeError(f"{where}: {path} has no axis {axis}, it is {tensor_type(leaf)}.")
        sizes[path] = dims[axis]
    if len({*sizes.values()}) > 1:
        listed = ", ".join(f"{path}: {size}" for path, size in sizes.items())
        raise ShapeError(f"{where}: the sizes along axis {axis} differ: {listed}.")
    size = next(iter(sizes.values()), 0)
    if not isinstance(size, int):
        raise ShapeError(
            explain(
                f"{where}: only the run knows how many rows there are.",
                cure="use wend.scan, which takes one row a trip.",
            )
        )
    return size


def _partial(combine: _Combine, rows: _Arrays, size: int) -> _Arrays:
    """Return the partial results of two rows or more.

    Pairs are combined, and scanned: these are the rows with odd numbers. The others combine with
    the one before.
    """
    pairs = size // 2
    odd = combine([x[: 2 * pairs : 2] for x in rows], [x[1 : 2 * pairs : 2] for x in rows])
    odd = _partial(combine, odd, pairs) if pairs > 1 else odd
    first = [x[:1] for x in rows]
    if size == 2:
        return [concatenate([x, y]) for x, y in zip(first, odd, strict=True)]
    later = [x[2::2] for x in rows]
    others = combine([x[: (size - 1) // 2] for x in odd], later)
    even = [concatenate([x, y]) for x, y in zip(first, others, strict=True)]
    return [_interleaved(x, y, size) for x, y in zip(even, odd, strict=True)]


def _interleaved(even: Any, odd: Any, size: int) -> Any:
    """Return the rows of two arrays in turn; the first may have one more."""
    pairs, inner = size // 2, tensor_type(even).dims[1:]
    joined = reshape(stack([even[:pairs], odd], axis=1), (2 * pairs, *inner))
    return concatenate([joined, even[pairs:]]) if size % 2 else joined
