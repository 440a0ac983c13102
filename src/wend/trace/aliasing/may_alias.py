"""Arrays of which only the run tells which one they are: what a branch or a loop gives.

`y = x if test else z` is another name for x, or for z. Its elements are a new value of the graph,
so they may be read until x or z changes; and they may be changed where nobody else holds x or z,
for then nobody can tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wend.base.errors import AliasError, explain
from wend.eager.dispatch import recorder
from wend.trace.aliasing.referrers import find_referrers
from wend.trace.arrays.concrete_array import ConcreteTracedArray, ref_of
from wend.trace.arrays.tracer import Tracer
from wend.trace.arrays.view_link import CURE_OF_ALIASES


def is_array(leaf: Any) -> bool:
    """Whether a leaf has elements that can change."""
    if isinstance(leaf, Tracer):
        return leaf.value.type.shape != () if hasattr(leaf.value.type, "shape") else True
    return bool(getattr(leaf, "ndim", 0))


def roots(leaf: Any) -> list[Any]:
    """The arrays whose elements may be those of an array: itself, what it looks at, may be."""
    if isinstance(leaf, ConcreteTracedArray):
        root = leaf.root()
        ref = root._early if root._ref is None else root._ref
        return [root] if ref is None else roots(ref)
    if not isinstance(leaf, Tracer):
        return [leaf]
    whole = leaf.base()
    return [whole, *whole.choices] if isinstance(whole, Tracer) else [whole]


def settle(
    results: Sequence[Any],
    options: Sequence[Sequence[Any]],
    outer: Any,
    params: Sequence[Any] = (),
) -> list[dict[int, Any]]:
    """Note what arrays results may be; call it when variables hold the results.

    Args:
        results: traced arrays, one for each place.
        options: what a branch leaves in each place; of a loop, what enters it and what a trip
            leaves.
        outer: the recording of the results.
        params: of a loop, what stands in each place in a trip.

    Returns:
        for each place, the arrays that it may be and that somebody else holds too.
    """
    places = [k for k, result in enumerate(results) if is_array(result)]
    if not places:
        return [{} for _ in results]
    found = [[{id(r): r for r in roots(row[k])} for row in options] for k in range(len(results))]
    known: dict[int, dict[int, Any]] = {
        k: {i: r for row in found[k] for i, r in row.items() if _is_outer(r, outer)} for k in places
    }
    numbers = {id(param): k for k, param in enumerate(params)}
    for _ in places if params else ():
        for k in places:
            for row in found[k]:
                for i in row.keys() & numbers.keys():
                    known[k].update(known.get(numbers[i], {}))
    held = _held({i: r for k in places for i, r in known[k].items()})
    shared: list[dict[int, Any]] = [{} for _ in results]
    for k in places:
        result = results[k]
        result.origins = tuple(known[k].values())
        shared[k] = {i: r for i, r in known[k].items() if i in held}
        for j in places:
            pairs = zip(found[k], found[j], strict=True)
            if j != k and any(mine.keys() & theirs.keys() for mine, theirs in pairs):
                shared[k][id(results[j])] = results[j]
        if shared[k]:
            may_be(result, list(shared[k].values()))
    return shared


def may_be(result: Tracer, arrays: Sequence[Any]) -> None:
    """Note that a result may be any of some arrays, or a view of it."""
    for array in arrays:
        if (
            type(array) is ConcreteTracedArray
            and array.can_promote()
            and _is_outer(array, recorder.get())
        ):
            array.promote()
    refs = [ref_of(array) if isinstance(array, ConcreteTracedArray) else array for array in arrays]
    result.choices = (*result.choices, *(b for b in refs if b is not None and b is not result))
    for ref in result.choices:
        if isinstance(ref, Tracer):
            ref.watch(result)


def may_be_one(a: Tracer, b: Tracer) -> bool:
    """Whether only the run tells if two arrays are one."""
    return not _may_be(a).isdisjoint(_may_be(b))


def _may_be(array: Tracer) -> set[int]:
    """An array and those that it may be, by id."""
    found, todo = {id(array)}, list(array.origins)
    while todo:
        origin = todo.pop()
        if id(origin) not in found:
            found.add(id(origin))
            todo += getattr(origin, "origins", ())
    return found


def _is_outer(root: Any, outer: Any) -> bool:
    if isinstance(root, Tracer):
        return bool(outer.can_lift(root))
    if isinstance(root, ConcreteTracedArray):
        made_in = root._made_in()
        return made_in is None or outer.is_in(made_in)
    return is_array(root)


def _held(meant: dict[int, Any]) -> set[int]:
    """Which of some arrays a variable holds, or the caller of the function."""
    found = {i for i, root in meant.items() if _is_callers(root)}

    def note(value: Any) -> bool:
        if isinstance(value, (Tracer, np.ndarray)):
            found.update(id(root) for root in roots(value) if id(root) in meant)
        return False

    for _ in find_referrers(note) if len(found) < len(meant) else ():
        pass
    return found


def _is_callers(root: Any) -> bool:
    if isinstance(root, Tracer):
        recording: Any = root.recording
        return any(root is argument for argument in recording.arguments)
    return not isinstance(root, ConcreteTracedArray)


def refusal(what: str, cure: str = CURE_OF_ALIASES) -> AliasError:
    """The error for a change that another array may show, or not."""
    return AliasError(explain(what, cure=cure))
