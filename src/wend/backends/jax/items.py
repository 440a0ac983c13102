"""Lists of a run that Python holds: residuals of a forward pass, which a later run takes."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wend.backends.jax.lowering import padded
from wend.backends.jax.values import DeviceList, Maybe, Stacked
from wend.base.errors import UnsupportedError, explain
from wend.base.refusals import refusal
from wend.base.zero import ZERO
from wend.ir.types import ListType, MaybeType, TensorType, Type
from wend.runtime.sequence import Sequence


class DeviceItems:
    """The items of a list on a device, which are read when Python asks for them.

    Attributes:
        list: the list.
        type: its type.
    """

    def __init__(self, list: DeviceList, type: ListType) -> None:
        self.list, self.type = list, type

    def __len__(self) -> int:
        return int(self.list.length)

    def read(self) -> list[Any]:
        host = jax.tree.map(np.asarray, self.list.items)
        items = [jax.tree.map(lambda x, k=k: x[k], host) for k in range(len(self))]
        return [_on_host(item, self.type.element) for item in items]


def _on_host(item: Any, type: Type) -> Any:
    match type:
        case MaybeType(of=inner):
            if isinstance(item, Maybe):
                return _on_host(item.value, inner) if item.is_present else ZERO
            return _on_host(item, inner)
        case ListType():
            return Sequence.at(DeviceItems(item, type))
        case TensorType() if isinstance(item, Stacked):
            rows, count = item.items.items, int(item.items.length)
            return np.repeat(rows, count, axis=0) if item.is_uniform else rows[:count]
    return item


def to_sequence(value: DeviceList, type: ListType) -> Sequence:
    """Return a list as Python holds it."""
    return Sequence.at(DeviceItems(value, type))


def from_sequence(value: Sequence, type: ListType) -> DeviceList:
    """Return a list that Python holds, in the form that programs take."""
    if isinstance(value.source, DeviceItems):
        return value.source.list
    items = [_to_device(item, type.element) for item in value.items()]
    if not items:
        return _empty(type)
    capacity = max(x.capacity for x in items) if isinstance(type.element, ListType) else 0
    if capacity:
        items = [DeviceList(padded(x.items, capacity, 0), x.length) for x in items]
    stacked = jax.tree.map(lambda *xs: jnp.stack([jnp.asarray(x) for x in xs]), *items)
    return DeviceList(stacked, jnp.int32(len(items)))


def _to_device(item: Any, type: Type) -> Any:
    match type:
        case ListType():
            return from_sequence(item, type)
        case TensorType(dtype=dtype):
            return jnp.asarray(item, dtype)
    raise _from_another_backend(f"a list of {type}")


def _empty(type: ListType) -> DeviceList:
    element = type.element
    if isinstance(element, ListType):
        inner = _empty(element)
        return DeviceList(jax.tree.map(lambda x: x[None], inner), jnp.int32(0))
    if not isinstance(element, TensorType) or not element.is_static:
        raise _from_another_backend(f"an empty list of {element}")
    return DeviceList(jnp.zeros((1, *element.dims), element.dtype), jnp.int32(0))


def _from_another_backend(what: str) -> Exception:
    return refusal(
        UnsupportedError(
            explain(
                f'backend="jax" does not take {what} that another backend has made.',
                cure="run the forward pass and its pullback on one backend.",
            )
        )
    )
