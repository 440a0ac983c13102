"""`TensorList`: what a Python list becomes when a staged loop appends to it (D11)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import optree

from wend.base import trees
from wend.base.errors import (
    CarryError,
    ConcreteValueError,
    LeakedValueError,
    ShapeError,
    StructureError,
    WendError,
    explain,
)
from wend.eager.dispatch import Staged
from wend.eager.promotion import as_array, cast
from wend.ir.dtypes import INT64
from wend.ir.graph import Value
from wend.ir.types import ListType, accepts
from wend.numpy import elementwise as ew
from wend.numpy import shaping
from wend.ops import lists as list_ops
from wend.trace.aliasing.may_alias import is_array, may_be, roots
from wend.trace.arrays.tracer import Tracer
from wend.trace.recording.arguments import LeafType, leaf_type
from wend.trace.recording.recording import current
from wend.trace.sizes.lengths import items_shape, known_length


class ListError(WendError, TypeError):
    """A list that grows in a recorded loop cannot do this."""


class TensorList:
    """A list of which only the kind of its items is known: as many as were appended when it runs.

    Args:
        lists: a traced list for each array in an item.
        treedef: the structure of an item.
        types: the types of the arrays in an item.
    """

    def __init__(
        self, lists: Sequence[Any], treedef: trees.TreeDef, types: Sequence[LeafType]
    ) -> None:
        self.lists, self.treedef, self.types = list(lists), treedef, tuple(types)

    @staticmethod
    def of(items: Sequence[Any], like: Any) -> TensorList:
        """A list of these items, all of the kind of `like`."""
        leaves, treedef = trees.flatten(like)
        types = [leaf_type(leaf) for leaf in leaves]
        made = [_emit(list_ops.list_new, element=type.type) for type in types]
        new = TensorList(made, treedef, types)
        for item in items:
            new.append(item)
        return new

    def __repr__(self) -> str:
        return f"<traced list of {', '.join(map(str, self.types))}>"

    def copy(self) -> TensorList:
        """A list of the same items, which can change by itself."""
        return TensorList(self.lists, self.treedef, self.types)

    def become(self, other: TensorList) -> None:
        """Hold the items of another."""
        self.lists, self.treedef, self.types = list(other.lists), other.treedef, other.types

    def example(self) -> Any:
        """Something of the kind of its items."""
        items = [Tracer(Value(type.type), _nowhere, weak=type.weak) for type in self.types]
        return trees.unflatten(self.treedef, items)

    # What lists do
    def append(self, item: Any) -> None:
        """Add an item at the end; it must be like the others."""
        pairs = zip(self.lists, self._fitted(item, "appended to"), strict=True)
        leaves = trees.flatten(item)[0]
        self.lists = [
            _looking(_emit(list_ops.list_push, list, leaf), list, own)
            for (list, leaf), own in zip(pairs, leaves, strict=True)
        ]

    def _fitted(self, item: Any, verb: str) -> list[Any]:
        """The arrays of an item, as the list holds them."""
        leaves, treedef = trees.flatten(item)
        if treedef != self.treedef:
            raise StructureError(
                explain(
                    f"an item of structure {trees.described(item)} is {verb} {self!r}.",
                    cure="append items of one structure.",
                )
            )
        fitted = []
        for leaf, type in zip(map(as_array, leaves), self.types, strict=True):
            given = leaf_type(leaf)
            fits = given.weak or given.type.dtype == type.type.dtype
            if not fits or not accepts(type.type, given.type.with_dtype(type.type.dtype)):
                raise CarryError(
                    explain(
                        f"{given.type} is {verb} a list of {type.type}.",
                        cure="append items of one dtype and shape; or keep one list for each.",
                    )
                )
            fitted.append(cast(leaf, type.type.dtype))
        return fitted

    def extend(self, items: Sequence[Any]) -> None:
        """Add each of some items."""
        for item in items:
            self.append(item)

    def pop(self) -> Any:
        """Take the last item out."""
        old = self.lists
        pairs = [_emit_all(list_ops.list_pop, list) for list in old]
        self.lists = [rest for rest, _ in pairs]
        items = [item for _, item in pairs]
        for item, rest, list in zip(items, self.lists, old, strict=True):
            may_be(rest, list.choices)
            if item.type.shape != ():
                may_be(item, list.choices)
        return trees.unflatten(self.treedef, items)

    def length(self) -> Any:
        """How many items there are, as a traced integer."""
        return _emit(list_ops.list_len, self.lists[0])

    def __len__(self) -> int:
        raise self._refused("len()", "use it inside captured code, or wnp.stack(...).shape[0].")

    def __iter__(self) -> Iterator[Any]:
        raise self._refused(
            "iteration", "stack it first: `for x in wnp.stack(...)` is a loop over the rows."
        )

    def __bool__(self) -> bool:
        raise self._refused("the truth", "compare its len() with 0.")

    def _refused(self, what: str, cure: str) -> WendError:
        if not self.lists[0].is_reachable():
            return self._leaked()
        return ConcreteValueError(
            explain(f"{what} of {self!r} needs its length, known only when it runs.", cure=cure)
        )

    def _leaked(self) -> LeakedValueError:
        error: LeakedValueError = self.lists[0].leaked()
        return error

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise self._cannot("be sliced", "slice wnp.stack(...) of it.")
        place = self._place(index)
        items = [_emit(list_ops.list_get, list, place) for list in self.lists]
        for item, list in zip(items, self.lists, strict=True):
            if item.type.shape != ():
                item.look_at(list)  # changing it would change the list's
        return trees.unflatten(self.treedef, items)

    def __contains__(self, item: Any) -> bool:
        raise self._refused("`in`", "ask it of wnp.stack(...) of it: (wnp.stack(out) == x).any().")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise self._refused("a NumPy array", "use wnp.stack(...) of it.")

    def __setitem__(self, index: Any, item: Any) -> None:
        if isinstance(index, slice):
            raise self._cannot("be assigned to by slices", "assign item by item.")
        place = self._place(index)
        pairs = zip(self.lists, self._fitted(item, "put into"), strict=True)
        leaves = trees.flatten(item)[0]
        self.lists = [
            _looking(_emit(list_ops.list_set, list, place, leaf), list, own)
            for (list, leaf), own in zip(pairs, leaves, strict=True)
        ]

    def __add__(self, other: Any) -> Any:
        raise self._cannot("be added to or repeated", "extend it: out.extend(more).")

    __radd__ = __mul__ = __rmul__ = __add__

    def __getattr__(self, name: str) -> Any:
        if not hasattr(list, name):
            raise AttributeError(f"'TensorList' object has no attribute {name!r}")
        raise self._cannot(f".{name}()")

    def _cannot(self, what: str, cure: str = "do it with wnp.stack(...) of it.") -> TypeError:
        return ListError(
            explain(
                f"{self!r}, a list that grows in a loop or branch that is recorded, cannot {what}.",
                cure=cure,
            )
        )

    def _place(self, index: Any) -> Any:
        """A position, counted from the end where it is negative."""
        if isinstance(index, Staged):
            return cast(ew.where(ew.less(index, 0), index + self.length(), index), INT64)
        return cast(self.length() + index if index < 0 else np.int64(index), INT64)

    def stack(self, axis: int = 0) -> Any:
        """The items as one array along a new axis."""
        recording = current()
        if recording is None:
            raise self._leaked()
        stacked = []
        for list, type in zip(self.lists, self.types, strict=True):
            value = recording.lift(list)
            shape = items_shape(recording.b, type.type, recording.values())
            if shape is None:
                raise ShapeError(
                    explain(
                        f"the items of {self!r} have sizes that are known only inside the loop.",
                        cure="append items of a size that is known before it, as an argument's.",
                    )
                )
            rows, size = recording.b.list_stack(value, shape), known_length(value)
            if size is not None:
                rows = recording.b.refine(rows, type.type.with_shape((size, *type.type.dims)))
            array = recording.wrap(rows)
            stacked.append(array if axis == 0 else shaping.moveaxis(array, 0, axis))
        return trees.unflatten(self.treedef, stacked)


_nowhere: Any = None  # the recording of what stands for a type only


def _looking(list: Any, before: Any, item: Any) -> Any:
    """A list with one more item, which is another name for an array of the user's."""
    may_be(list, [*before.choices, *(roots(item) if is_array(item) else ())])
    return list


def _emit(op: Any, *operands: Any, **attrs: Any) -> Any:
    return _emit_all(op, *operands, **attrs)[0]


def _emit_all(op: Any, *operands: Any, **attrs: Any) -> tuple[Any, ...]:
    recording = current()
    if recording is None:
        raise operands[0].leaked()  # a list, of a trace that is over
    return recording.emit(op, operands, attrs)


def is_list(x: Any) -> bool:
    """Whether a leaf is a traced list, not an array."""
    return isinstance(x, Tracer) and isinstance(x.value.type, ListType)


def _flatten(value: Any) -> tuple[Any, Any, None]:
    return tuple(value.lists), (value.treedef, value.types), None


def _unflatten(kept: Any, lists: Any) -> Any:
    return TensorList(list(lists), *kept)


optree.register_pytree_node(
    TensorList,
    _flatten,
    _unflatten,
    namespace=getattr(optree.registry, "__GLOBAL_NAMESPACE"),  # the only way to it
)
