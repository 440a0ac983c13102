"""Reading and writing at positions: known ones say which element it is, others choose.

Whether a position is there is left to a read at it in an array that holds the numbers of the rows:
so it is checked, counted from the end, and refused, as in the array itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wend.backends.native.scalarize import permute
from wend.backends.native.scalarize.rule import Rule
from wend.backends.native.scalarize.scope import Elements, Scope
from wend.backends.native.target.small_arrays import constant_of, is_small, size
from wend.ir.graph import Node, Value
from wend.ir.op import Op
from wend.ops import indexing, shaping, updating


def _rows(node: Node, count: int) -> int:
    """How many rows an array has that is indexed by some operands."""
    dims = node.operands[0].tensor.dims[: len(node.operands) - count]
    return math.prod(dims)  # type: ignore[arg-type]


def _is_known(node: Node, first: int) -> bool:
    return all(constant_of(value) is not None for value in node.operands[first:])


def _one_row(node: Node, first: int) -> bool:
    """Whether the positions are numbers, and there is a choice."""
    indices = node.operands[first:]
    if not indices or any(value.tensor.dims for value in indices):
        return False
    return not is_small(node.operands[0].type) or _rows(node, first) > 1


def _flags(scope: Scope, node: Node, first: int) -> list[Value]:
    """For each row but the last whether it is the one at the positions."""
    b, indices = scope.b, [scope.whole(value) for value in node.operands[first:]]
    dims = node.operands[0].tensor.dims[: len(indices)]
    rows = _rows(node, first)
    place = b.gather(b.constant(np.arange(rows).reshape(dims)), *indices)
    return [b.eq(place, b.integer(row)) for row in range(rows)]


# x[i]
def _gather_fits(node: Node) -> bool:
    if len(node.operands) == 1:
        return False
    if is_small(node.operands[0].type) and _is_known(node, 1):
        return permute.sources(node) is not None
    return _one_row(node, 1)


def _write_gather(scope: Scope, node: Node) -> Sequence[Elements]:
    x, b = node.operands[0], scope.b
    if not is_small(x.type):
        return [_read(scope, node)]
    given = scope.elements(x)
    if _is_known(node, 1):
        (numbers,) = permute.sources(node) or [[]]
        return [tuple(given[number] for number in numbers)]
    row = size(node.results[0].type)
    if given == given[-row:] * (len(given) // row):
        return [_read(scope, node)]  # what does not depend on a position would not look at it
    flags = _flags(scope, node, 1)
    found = list(given[-row:])
    for k in reversed(range(len(flags) - 1)):
        mine = given[k * row : (k + 1) * row]
        pairs = zip(mine, found, strict=True)
        found = [b.select(flags[k], one, other) for one, other in pairs]
    return [tuple(found)]


def _read(scope: Scope, node: Node) -> Elements:
    """The elements of a row, one by one out of memory."""
    x, *indices = map(scope.whole, node.operands)
    return _elements(scope, x, indices, node.results[0])


def _elements(scope: Scope, whole: Value, first: Sequence[Value], part: Value) -> Elements:
    """The elements of a part of an array, which is at some first positions."""
    places = np.ndindex(*part.tensor.dims)  # type: ignore[arg-type]
    return tuple(scope.b.gather(whole, *first, *map(scope.b.integer, place)) for place in places)


def _chosen(node: Node) -> int:
    if not is_small(node.operands[0].type):
        return size(node.results[0].type)
    known = _is_known(node, 1 if node.op is indexing.gather else 2)
    return 0 if known else size(node.operands[0].type)


# x[i] = y
def _set_fits(node: Node) -> bool:
    if len(node.operands) == 2:
        return False
    if _is_known(node, 2):
        return permute.sources(node) is not None
    return _one_row(node, 2)


def _write_set(scope: Scope, node: Node) -> Sequence[Elements]:
    into, x = scope.elements(node.operands[0]), scope.elements(node.operands[1])
    if _is_known(node, 2):
        (numbers,) = permute.sources(node) or [[]]
        both = (*into, *x)
        return [tuple(both[number] for number in numbers)]
    if into == x * (len(into) // len(x)):
        whole = scope.b.emit(node.op, *map(scope.whole, node.operands))
        return [_elements(scope, whole, (), whole)]
    flags = _flags(scope, node, 2)
    pairs = enumerate(into)
    return [tuple(scope.b.select(flags[k // len(x)], x[k % len(x)], old) for k, old in pairs)]


# x[i] += y
def _part(node: Node) -> Any:
    """What is added to, as NumPy's key; None where it is not known."""
    known = [constant_of(value) for value in node.operands[2:]]
    if node.op is shaping.add_slice:
        return tuple(slice(*bounds) for bounds in node.attrs["slices"])
    if any(position is None for position in known):
        return None
    if node.op is shaping.add_narrow:
        return (slice(None),) * node.attrs["axis"] + (slice(*map(int, known)),)
    return tuple(position[()] for position in known) or None


def _targets(node: Node) -> list[int] | None:
    """The numbers of the elements that are added to, one for each of what is added, in order."""
    into, x = node.operands[:2]
    part = _part(node)
    if part is None:
        return None
    try:
        found = np.arange(size(into.type)).reshape(into.tensor.dims)[part]  # type: ignore[arg-type]
    except IndexError:
        return None  # the run says what is wrong
    return np.ravel(found).tolist() if np.shape(found) == x.tensor.dims else None


def _add_fits(node: Node) -> bool:
    into, x = node.operands[:2]
    if into.tensor.dtype.kind == "b":
        return False
    if _targets(node) is not None:
        return True
    if node.op is not indexing.scatter_add or not _one_row(node, 2):
        return False
    return x.tensor.dims == into.tensor.dims[len(node.operands) - 2 :]


def _write_add(scope: Scope, node: Node) -> Sequence[Elements]:
    total, x = list(scope.elements(node.operands[0])), scope.elements(node.operands[1])
    b, targets = scope.b, _targets(node)
    if targets is not None:
        for target, part in zip(targets, x, strict=True):
            total[target] = b.add(total[target], part)
        return [tuple(total)]
    flags = _flags(scope, node, 2)
    for k, old in enumerate(total):
        more = b.add(old, x[k % len(x)])
        total[k] = b.select(flags[k // len(x)], more, old)
    return [tuple(total)]


def _added(node: Node) -> int:
    return size(node.operands[0].type) * 2


RULES: Mapping[Op, Rule] = {
    indexing.gather: Rule(_write_gather, _gather_fits, _chosen, reads=1),
    updating.scatter_set: Rule(_write_set, _set_fits, _chosen),
    indexing.scatter_add: Rule(_write_add, _add_fits, _added),
    shaping.add_slice: Rule(_write_add, _add_fits, _added),
    shaping.add_narrow: Rule(_write_add, _add_fits, _added),
}
