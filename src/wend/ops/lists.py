"""Immutable lists as values: a push gives a new list. Loops keep their residuals in them (D11).

A backward loop reads a finished list by position, so the adjoint of a read is an addition at
that position; the adjoint of a push is a pop.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.base.errors import ShapeError, TypeMismatchError
from wend.base.zero import ZERO
from wend.ir.dtypes import INT64
from wend.ir.op import Explicit, Linear, Op, no_gradient
from wend.ir.types import ListType, TensorType, Type, accepts, fresh
from wend.ops.shapes import check_scalar_index, tensor_of
from wend.runtime.sequence import Sequence, add_values, zeros_like


def _list_of(type: Type) -> ListType:
    if not isinstance(type, ListType):
        raise TypeMismatchError(f"the operand must be a list, not {type}")
    return type


def _check_element(type: ListType, element: Type) -> None:
    if not accepts(type.element, element):
        raise TypeMismatchError(f"{type} cannot hold {element}")


# Batch rules (`ops/batching.py`): an item holds the values of all elements
def _batch_at(c: Any, node: Any, operands: Any, flags: Any) -> Any:
    """Read or change the item at a position that all elements share."""
    if flags[1]:
        return None
    values = c.all([operands[0], *operands[2:]], [flags[0], *flags[2:]])
    return None if values is None else c.emit(node, [values[0], operands[1], *values[1:]])


def _batch_lists(c: Any, node: Any, operands: Any, flags: Any) -> Any:
    values = c.all(operands, flags)
    return None if values is None else c.b.emit_node(node.op, values, **node.attrs).results


def _batch_len(c: Any, node: Any, operands: Any, flags: Any) -> Any:
    length = c.emit(node, operands)
    c.shared.add(length)
    return length


def _swap_first_axes(c: Any, x: Any) -> Any:
    return c.b.transpose(x, perm=(1, 0, *range(2, len(x.tensor.dims))))


def _batch_stack(c: Any, node: Any, operands: Any, flags: Any) -> Any:
    list, *sizes = operands
    if not flags[0] or any(flags[1:]):
        return None
    return _swap_first_axes(c, c.b.list_stack(list, *map(c.sizes, sizes)))


def _batch_unstack(c: Any, node: Any, operands: Any, flags: Any) -> Any:
    return c.emit(node, [_swap_first_axes(c, operands[0])])


list_new = Op(
    "list_new",
    lambda *, element: ListType(element),
    lambda *, element: Sequence.of([]),
    no_gradient(),
)


def _infer_push(list: Type, x: Type) -> ListType:
    _check_element(_list_of(list), x)
    return _list_of(list)


def _pull_back_push(b: Any, node: Any, cts: Any) -> Any:
    return tuple(b.list_pop(cts[0]))


list_push = Op(
    "list_push",
    _infer_push,
    lambda l, x: l.push(x),
    Explicit(_pull_back_push, linear=(0, 1)),
    batch=_batch_lists,
)


def _infer_pop(list: Type) -> tuple[Type, Type]:
    return _list_of(list), _list_of(list).element


def _pull_back_pop(b: Any, node: Any, cts: Any) -> Any:
    remaining, last = (
        b.zeros_like(result) if ct is ZERO else ct
        for ct, result in zip(cts, node.results, strict=True)
    )
    return (b.list_push(remaining, last),)


# The list without its last element, and that element
list_pop = Op(
    "list_pop",
    _infer_pop,
    lambda l: l.pop(),
    Explicit(_pull_back_pop, linear=(0,)),
    updates=0,
    traps=True,
    batch=_batch_lists,
)


def _infer_get(list: Type, index: Type, *, in_bounds: bool = False) -> Type:
    check_scalar_index(index, "the position")
    return _list_of(list).element


def _accumulate_get(b: Any, node: Any, ct: Any, index: int, into: Any) -> Any:
    return b.list_add_at(into, node.operands[1], ct)


# With `in_bounds` the position is known to be in the list
list_get = Op(
    "list_get",
    _infer_get,
    lambda l, i, *, in_bounds=False: l[i],
    Linear.adding(_accumulate_get, (0,)),
    traps=True,
    batch=_batch_at,
)


def _infer_add_at(list: Type, index: Type, x: Type) -> ListType:
    check_scalar_index(index, "the position")
    _check_element(_list_of(list), x)
    return _list_of(list)


def _transpose_add_at(b: Any, node: Any, ct: Any, index: int) -> Any:
    return b.list_get(ct, node.operands[1]) if index == 2 else ct


# The list with x added to the element at a position
list_add_at = Op(
    "list_add_at",
    _infer_add_at,
    lambda l, i, x: l.set(i, add_values(l[i], x)),
    Linear(_transpose_add_at, operands=(0, 2)),
    updates=0,
    addends=(0,),
    batch=_batch_at,
)


def _infer_set(list: Type, index: Type, x: Type) -> ListType:
    return _infer_add_at(list, index, x)


def _transpose_set(b: Any, node: Any, ct: Any, index: int) -> Any:
    position = node.operands[1]
    if index == 2:
        return b.list_get(ct, position)
    return b.list_set(ct, position, b.zeros_like(node.operands[2]))


# The list with the element at a position replaced
list_set = Op(
    "list_set",
    _infer_set,
    lambda l, i, x: l.set(i, x),
    Linear(_transpose_set, operands=(0, 2)),
    updates=0,
    traps=True,
    batch=_batch_at,
)


def text_of_bad_position(op: Op) -> str:
    """Return Python's words where an operation finds no item at a position."""
    if op is list_pop:
        return "pop from empty list"
    return f"list {'assignment ' if op is list_set else ''}index out of range"


list_len = Op(
    "list_len",
    lambda list: _list_of(list) and TensorType(INT64, ()),
    lambda l: np.int64(len(l)),
    no_gradient(),
    reads_shape=True,
    batch=_batch_len,
)

# A list of zeros with the shapes of this one
list_zeros = Op(
    "list_zeros",
    lambda list: _list_of(list),
    lambda l: zeros_like(l),
    no_gradient(),
    reads_shape=True,
    batch=_batch_lists,
)

# The elementwise sum
list_add = Op(
    "list_add",
    lambda a, b: _list_of(a),
    lambda a, b: add_values(a, b),
    Linear(lambda b, n, ct, i: ct),
    addends=(0, 1),
    batch=_batch_lists,
)


# Between lists and arrays, along a new first axis
def _infer_stack(list: Type, *element_shape: Type) -> TensorType:
    element = tensor_of(_list_of(list).element, "an element to stack")
    return element.with_shape(None if element.shape is None else (fresh(), *element.shape))


def _kernel_stack(list: Any, *element_shape: Any, dtype: np.dtype) -> Any:
    items = list.items()
    if items:
        return np.stack(items)
    return np.zeros((0, *(int(size) for size in element_shape[0])), dtype)


def _infer_stack_typed(list: Type, *element_shape: Type, dtype: np.dtype) -> TensorType:
    return _infer_stack(list).with_dtype(dtype)


# The shape of an element is an operand because the list may be empty
list_stack = Op(
    "list_stack",
    _infer_stack_typed,
    _kernel_stack,
    Linear(lambda b, n, ct, i: b.list_unstack(ct), operands=(0,)),
    batch=_batch_stack,
)


def _infer_unstack(x: Type) -> ListType:
    x = tensor_of(x)
    if not x.dims:
        raise ShapeError(f"cannot take {x} apart: it has no first axis")
    return ListType(x.with_shape(x.dims[1:]))


list_unstack = Op(
    "list_unstack",
    _infer_unstack,
    lambda x: Sequence.of(list(x)),
    Linear(lambda b, n, ct, i: b.list_stack_like(ct, n.operands[0])),
    batch=_batch_unstack,
)
