"""May-alias analysis: the arrays that the result of a branch or a loop may be.

After `y = x if test else z` it is only known at run time whether y is x or z. The elements of y are
a new value of the graph. They may be read until x or z changes. They may be changed if nothing else
refers to x or z, for then the difference cannot be observed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wend.base.errors import AliasError, explain
from wend.eager.dispatch import recorder
from wend.ir.types import TensorType
from wend.trace.aliasing.referrers import find_referrers
from wend.trace.arrays.concrete_array import ConcreteTracedArray, ref_of
from wend.trace.arrays.tracer import Tracer
from wend.trace.arrays.view_link import CURE_OF_ALIASES
from wend.trace.arrays.view_transforms import ViewTransform


def is_array(leaf: Any) -> bool:
    """Return whether a leaf has elements that can change."""
    if isinstance(leaf, Tracer):
        is_number = isinstance(leaf.value.type, TensorType) and leaf.value.type.shape == ()
        return not is_number or leaf.zero_dim is not False
    return isinstance(leaf, np.ndarray)


def roots(leaf: Any) -> list[Any]:
    """Return the arrays whose elements an array may have: itself, its base, its may-aliases."""
    if isinstance(leaf, ConcreteTracedArray):
        root = leaf.root()
        ref = root._lazy if root._ref is None else root._ref
        return [root] if ref is None else roots(ref)
    if not isinstance(leaf, Tracer):
        return [leaf]
    whole = leaf.base()
    return [whole, *whole.held_aliases] if isinstance(whole, Tracer) else [whole]


def record_merge(
    results: Sequence[Any],
    options: Sequence[Sequence[Any]],
    outer: Any,
    params: Sequence[Any] = (),
) -> list[dict[int, Any]]:
    """Record what arrays the results may be; to be called when variables hold the results.

    Args:
        results: traced arrays.
        options: rows of the arrays that each result may be: for a branch one row for each region,
            for a loop the carry on entry and after a trip.
        outer: the recording of the results.
        params: of a loop, what stands for each result during a trip.

    Returns:
        for each result, the arrays that it may be and that are also referenced elsewhere.
    """
    positions = [k for k, result in enumerate(results) if is_array(result)]
    if not positions:
        return [{} for _ in results]
    row_roots = [
        [{id(r): r for r in roots(row[k])} for row in options] for k in range(len(results))
    ]
    aliases: dict[int, dict[int, Any]] = {
        k: {i: r for row in row_roots[k] for i, r in row.items() if _is_outer(r, outer)}
        for k in positions
    }
    param_positions = {id(param): k for k, param in enumerate(params)}
    for _ in positions if params else ():
        for k in positions:
            for row in row_roots[k]:
                for i in row.keys() & param_positions.keys():
                    aliases[k].update(aliases.get(param_positions[i], {}))
    referenced = _referenced({i: r for k in positions for i, r in aliases[k].items()})
    shared: list[dict[int, Any]] = [{} for _ in results]
    for k in positions:
        result = results[k]
        result.may_aliases = tuple(aliases[k].values())
        shared[k] = {i: r for i, r in aliases[k].items() if i in referenced}
        for j in positions:
            pairs = zip(row_roots[k], row_roots[j], strict=True)
            if j != k and any(lhs.keys() & rhs.keys() for lhs, rhs in pairs):
                shared[k][id(results[j])] = results[j]
        if shared[k]:
            add_may_aliases(result, list(shared[k].values()))
    return shared


def add_may_aliases(result: Tracer, arrays: Sequence[Any]) -> None:
    """Record that a result may be any of some arrays, or a view of one."""
    for array in arrays:
        if (
            type(array) is ConcreteTracedArray
            and array.can_promote()
            and _is_outer(array, recorder.get())
        ):
            array.promote()
    refs = [ref_of(array) if isinstance(array, ConcreteTracedArray) else array for array in arrays]
    result.held_aliases = (
        *result.held_aliases,
        *(b for b in refs if b is not None and b is not result),
    )
    for ref in result.held_aliases:
        if isinstance(ref, Tracer):
            ref.add_alias(result)


def may_alias(a: Tracer, b: Tracer) -> bool:
    """Return whether two arrays may be the same at run time."""
    return not _alias_closure(a).isdisjoint(_alias_closure(b))


def may_overlap(a: Tracer, b: Tracer) -> bool:
    """Return whether two arrays, or the arrays that they are views of, may have an element alike.

    Parts of one array that are known not to overlap do not.
    """
    whole, other_whole = a.base(), b.base()
    if whole is other_whole:
        parts = _elements(a), _elements(b)
        return any(part is None for part in parts) or np.shares_memory(*parts)
    if isinstance(whole, Tracer) and isinstance(other_whole, Tracer):
        return may_alias(whole, other_whole)
    return False


def _elements(array: Tracer) -> np.ndarray | None:
    """Return a picture of the memory of an array, as a view of one origin; None if unknown."""
    link = array._part
    if link is None:
        shape = array.type.shape
        if array._base is not None or shape is None or not all(isinstance(n, int) for n in shape):
            return None
        strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]  # type: ignore[arg-type]
        return np.lib.stride_tricks.as_strided(_ORIGIN, shape, strides)  # type: ignore[arg-type]
    whole, key = link
    elements = _elements(whole)
    if elements is None:
        return None
    if isinstance(key, ViewTransform):
        return None if key.is_reshape() else elements.transpose(key.attrs["perm"])
    indices = key if isinstance(key, tuple) else (key,)
    if not all(map(_is_known, indices)):
        return None
    # The ellipsis keeps an element a view.
    return elements[indices if any(i is ... for i in indices) else (*indices, ...)]


def _is_known(index: Any) -> bool:
    """Return whether an index takes a view, and Python knows its numbers."""
    parts = (index.start, index.stop, index.step) if isinstance(index, slice) else (index,)
    return all(type(part) is int or part is None or part is ... for part in parts)


# Nothing is read from its memory, which is too small.
_ORIGIN = np.empty(1, np.int8)


def _alias_closure(array: Tracer) -> set[int]:
    """Return the ids of an array and of all that it may be."""
    closure, worklist = {id(array)}, list(array.may_aliases)
    while worklist:
        alias = worklist.pop()
        if id(alias) not in closure:
            closure.add(id(alias))
            worklist += getattr(alias, "may_aliases", ())
    return closure


def _is_outer(root: Any, outer: Any) -> bool:
    if isinstance(root, Tracer):
        return bool(outer.can_lift(root))
    if isinstance(root, ConcreteTracedArray):
        recording = root._recording_ref()
        return recording is None or outer.is_within(recording)
    return is_array(root)


def _referenced(candidates: dict[int, Any]) -> set[int]:
    """Return the ids of the arrays that a variable refers to, or that the caller owns."""
    referenced = {i for i, root in candidates.items() if _is_callers_array(root)}

    def add_match(value: Any) -> bool:
        if isinstance(value, (Tracer, np.ndarray)):
            referenced.update(id(root) for root in roots(value) if id(root) in candidates)
        return False

    for _ in find_referrers(add_match) if len(referenced) < len(candidates) else ():
        pass
    return referenced


def _is_callers_array(root: Any) -> bool:
    if isinstance(root, Tracer):
        recording: Any = root.recording
        return any(root is argument for argument in recording.arguments)
    return not isinstance(root, ConcreteTracedArray)


def alias_error(what: str, cure: str = CURE_OF_ALIASES) -> AliasError:
    """Return the error for a change that another array may show."""
    return AliasError(explain(what, cure=cure))
