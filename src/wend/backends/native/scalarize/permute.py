"""Operations that move elements: nothing is computed, and no code is left of them.

Where elements go is what the operation's own kernel does to their numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wend.backends.native.scalarize.rule import Rule
from wend.backends.native.scalarize.scope import Elements, Scope
from wend.backends.native.target.small_arrays import constant_of, is_small, size
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import indexing, shaping, updating

# How many operands are moved; the others are positions and sizes, which must be known.
_MOVED: Mapping[Op, int | None] = {
    shaping.broadcast_to: 1,
    shaping.reshape: 1,
    shaping.refine: 1,
    shaping.transpose: 1,
    shaping.concat: None,
    shaping.split: 1,
    shaping.slice_: 1,
    shaping.narrow: 1,
    shaping.pad: 1,
    updating.set_slice: 2,
    updating.scatter_set: 2,
    indexing.gather: 1,
    indexing.take_along: 1,
}
_PADDING = -1  # the number of what an array is padded with


def sources(node: Node) -> list[list[int]] | None:
    """For each element of each result the number of the element that it is; None: not known."""
    count = _MOVED[node.op]
    moved, others = node.operands[:count], node.operands[len(node.operands[:count]) :]
    known = [constant_of(value) for value in others]
    if any(x is None for x in known):
        return None
    numbers: list[Any] = []
    total = 0
    for value in moved:
        here = size(value.type)
        numbers.append(np.arange(total, total + here).reshape(value.tensor.dims))
        total += here
    attrs = dict(node.attrs)
    if node.op is shaping.pad:
        attrs["value"] = _PADDING
    assert node.op.kernel is not None
    try:
        found = node.op.kernel(*numbers, *(x[()] for x in known), **attrs)
    except (IndexError, ValueError):
        return None  # the run says what is wrong
    results = found if isinstance(found, tuple) else (found,)
    return [np.ravel(x).tolist() for x in results]


def _fits(node: Node) -> bool:
    if node.op is shaping.slice_ and not is_small(node.operands[0].type):
        return node.operands[0].tensor.is_static
    found = sources(node)
    sizes = [size(result.type) for result in node.results]
    return found is not None and [len(x) for x in found] == sizes


def _write(scope: Scope, node: Node) -> Sequence[Elements]:
    if node.op is shaping.slice_ and not is_small(node.operands[0].type):
        return [_read_slice(scope, node)]
    given = [x for v in node.operands[: _MOVED[node.op]] for x in scope.elements(v)]
    if node.op is shaping.pad:
        dtype = node.results[0].tensor.dtype
        given.append(scope.b.constant(np.asarray(node.attrs["value"]).astype(dtype)))
    found = sources(node)
    assert found is not None
    return [tuple(given[number] for number in numbers) for numbers in found]


def _read_slice(scope: Scope, node: Node) -> Elements:
    """The elements of a part of a large array, one by one."""
    (x,) = node.operands
    pairs = zip(x.tensor.dims, node.attrs["slices"], strict=True)
    ranges = [range(*slice(*bounds).indices(dim)) for dim, bounds in pairs]  # type: ignore[arg-type]
    whole, b = scope.whole(x), scope.b
    return tuple(b.gather(whole, *map(b.integer, place)) for place in itertools.product(*ranges))


RULES: Mapping[Op, Rule] = {
    op: Rule(_write, _fits, reads=1 if op is shaping.slice_ else 0)
    for op in _MOVED
    if op not in (indexing.gather, updating.scatter_set)
}
