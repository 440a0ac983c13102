"""Indexing of small arrays: constant indices pick elements, dynamic ones become selects.

Arrays of more than a few elements stay in memory where an index is dynamic.

Bounds are checked by a gather at the same index from a constant array of row numbers: it wraps
negative indices and traps as indexing into the array itself would.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wend.backends.native.scalarize import permute
from wend.backends.native.scalarize.rule import ExpansionRule
from wend.backends.native.scalarize.scope import ScalarElements, ScalarScope
from wend.backends.native.target.small_arrays import constant_of, is_small, size
from wend.ir.graph import Node, Value
from wend.ir.op import Op
from wend.ops import indexing, shaping, updating

# Larger arrays stay in memory where an index is dynamic: a load takes less time than that many
# selects, each of which waits for the one before.
MAX_SELECTED_ELEMENTS = 4


def _num_rows(node: Node, count: int) -> int:
    """Return the number of rows of an array that is indexed by all but `count` operands."""
    dims = node.operands[0].tensor.dims[: len(node.operands) - count]
    return math.prod(dims)  # type: ignore[arg-type]


def _has_constant_indices(node: Node, first: int) -> bool:
    return all(constant_of(value) is not None for value in node.operands[first:])


def _selects_row(node: Node, first: int) -> bool:
    """Return whether the indices are scalars and there is more than one row to select from."""
    indices = node.operands[first:]
    if not indices or any(value.tensor.dims for value in indices):
        return False
    x = node.operands[0].type
    return not is_small(x) or (_num_rows(node, first) > 1 and size(x) <= MAX_SELECTED_ELEMENTS)


def _flags(scope: ScalarScope, node: Node, first: int) -> list[Value]:
    """Return, for each row, whether it is the indexed one."""
    b, indices = scope.b, [scope.whole(value) for value in node.operands[first:]]
    dims = node.operands[0].tensor.dims[: len(indices)]
    rows = _num_rows(node, first)
    row_number = b.gather(b.constant(np.arange(rows).reshape(dims)), *indices)
    return [b.eq(row_number, b.integer(row)) for row in range(rows)]


# x[i]
def _gather_fits(node: Node) -> bool:
    if len(node.operands) == 1:
        return False
    if is_small(node.operands[0].type) and _has_constant_indices(node, 1):
        return permute.index_maps(node) is not None
    return _selects_row(node, 1)


def _expand_gather(scope: ScalarScope, node: Node) -> Sequence[ScalarElements]:
    x, b = node.operands[0], scope.b
    if not is_small(x.type):
        return [_read_row(scope, node)]
    elements = scope.elements(x)
    if _has_constant_indices(node, 1):
        (numbers,) = permute.index_maps(node) or [[]]
        return [tuple(elements[number] for number in numbers)]
    row_size = size(node.results[0].type)
    if elements == elements[-row_size:] * (len(elements) // row_size):
        return [_read_row(scope, node)]  # equal rows: a select would not check the index
    flags = _flags(scope, node, 1)
    selected = list(elements[-row_size:])
    for k in reversed(range(len(flags) - 1)):
        candidates = elements[k * row_size : (k + 1) * row_size]
        pairs = zip(candidates, selected, strict=True)
        selected = [b.select(flags[k], candidate, previous) for candidate, previous in pairs]
    return [tuple(selected)]


def _read_row(scope: ScalarScope, node: Node) -> ScalarElements:
    """Return the elements of a row, read one by one from memory."""
    x, *indices = map(scope.whole, node.operands)
    return _read_elements(scope, x, indices, node.results[0])


def _read_elements(
    scope: ScalarScope, whole: Value, first: Sequence[Value], part: Value
) -> ScalarElements:
    """Return the elements of a part of an array at the given leading indices."""
    positions = np.ndindex(*part.tensor.dims)  # type: ignore[arg-type]
    return tuple(
        scope.b.gather(whole, *first, *map(scope.b.integer, position)) for position in positions
    )


def _num_selects(node: Node) -> int:
    if not is_small(node.operands[0].type):
        return size(node.results[0].type)
    is_static = _has_constant_indices(node, 1 if node.op is indexing.gather else 2)
    return 0 if is_static else size(node.operands[0].type)


# x[i] = y
def _set_fits(node: Node) -> bool:
    if len(node.operands) == 2:
        return False
    if _has_constant_indices(node, 2):
        return permute.index_maps(node) is not None
    return _selects_row(node, 2)


def _expand_set(scope: ScalarScope, node: Node) -> Sequence[ScalarElements]:
    into, x = scope.elements(node.operands[0]), scope.elements(node.operands[1])
    if _has_constant_indices(node, 2):
        (numbers,) = permute.index_maps(node) or [[]]
        candidates = (*into, *x)
        return [tuple(candidates[number] for number in numbers)]
    if into == x * (len(into) // len(x)):
        whole = scope.b.emit(node.op, *map(scope.whole, node.operands))
        return [_read_elements(scope, whole, (), whole)]
    flags = _flags(scope, node, 2)
    pairs = enumerate(into)
    return [tuple(scope.b.select(flags[k // len(x)], x[k % len(x)], old) for k, old in pairs)]


# x[i] += y
def _target_key(node: Node) -> Any:
    """Return the updated part as a NumPy index, or None if it is dynamic."""
    constants = [constant_of(value) for value in node.operands[2:]]
    if node.op is shaping.add_slice:
        return tuple(slice(*bounds) for bounds in node.attrs["slices"])
    if any(position is None for position in constants):
        return None
    if node.op is shaping.add_narrow:
        return (slice(None),) * node.attrs["axis"] + (slice(*map(int, constants)),)
    return tuple(position[()] for position in constants) or None


def _targets(node: Node) -> list[int] | None:
    """Return the numbers of the updated elements, in the order of the addends, or None."""
    into, x = node.operands[:2]
    key = _target_key(node)
    if key is None:
        return None
    try:
        numbers = np.arange(size(into.type)).reshape(into.tensor.dims)[key]  # type: ignore[arg-type]
    except IndexError:
        return None  # raised at run time
    return np.ravel(numbers).tolist() if np.shape(numbers) == x.tensor.dims else None


def _add_fits(node: Node) -> bool:
    into, x = node.operands[:2]
    if into.tensor.dtype.kind == "b":
        return False
    if _targets(node) is not None:
        return True
    if node.op is not indexing.scatter_add or not _selects_row(node, 2):
        return False
    return x.tensor.dims == into.tensor.dims[len(node.operands) - 2 :]


def _expand_add(scope: ScalarScope, node: Node) -> Sequence[ScalarElements]:
    total, x = list(scope.elements(node.operands[0])), scope.elements(node.operands[1])
    b, targets = scope.b, _targets(node)
    if targets is not None:
        for target, addend in zip(targets, x, strict=True):
            total[target] = b.add(total[target], addend)
        return [tuple(total)]
    flags = _flags(scope, node, 2)
    for k, old in enumerate(total):
        increased = b.add(old, x[k % len(x)])
        total[k] = b.select(flags[k // len(x)], increased, old)
    return [tuple(total)]


def _add_cost(node: Node) -> int:
    return size(node.operands[0].type) * 2


RULES: Mapping[Op, ExpansionRule] = {
    indexing.gather: ExpansionRule(_expand_gather, _gather_fits, _num_selects, reads=1),
    updating.scatter_set: ExpansionRule(_expand_set, _set_fits, _num_selects),
    indexing.scatter_add: ExpansionRule(_expand_add, _add_fits, _add_cost),
    shaping.add_slice: ExpansionRule(_expand_add, _add_fits, _add_cost),
    shaping.add_narrow: ExpansionRule(_expand_add, _add_fits, _add_cost),
}
