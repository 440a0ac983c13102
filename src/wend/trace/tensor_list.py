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
    ShapeError,
    StructureError,
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
from wend.trace.arguments import LeafType, leaf_type
from wend.trace.lengths import items_shape, known_length
from wend.trace.recording import current
from wend.trace.tracer import Tracer


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
        leaves, treedef = trees.flatten(item)
        if treedef != self.treedef:
            raise StructureError(
                explain(
                    f"an item of structure {treedef} is appended to {self!r}.",
                    cure="append items of one structure.",
                )
            )
        pushed = []
        for list, leaf, type in zip(self.lists, map(as_array, leaves), self.types, strict=True):
            given = leaf_type(leaf)
            fits = given.weak or given.type.dtype == type.type.dtype
            if not fits or not accepts(type.type, given.type.with_dtype(type.type.dtype)):
                raise CarryError(
                    explain(
                        f"{given.type} is appended to a list of {type.type}.",
                        cure="append items of one dtype and shape; or keep one list for each.",
                    )
                )
            pushed.append(_emit(list_ops.list_push, list, cast(leaf, type.type.dtype)))
        self.lists = pushed

    def extend(self, items: Sequence[Any]) -> None:
        """Add each of some items."""
        for item in items:
            self.append(item)

    def pop(self) -> Any:
        """Take the last item out."""
        pairs = [_emit_all(list_ops.list_pop, list) for list in self.lists]
        self.lists = [rest for rest, _ in pairs]
        return trees.unflatten(self.treedef, [item for _, item in pairs])

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

    def _refused(self, what: str, cure: str) -> ConcreteValueError:
        return ConcreteValueError(
            explain(f"{what} of {self!r} needs its length, known only when it runs.", cure=cure)
        )

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise TypeError(
                explain(f"{self!r} cannot be sliced.", cure="slice wnp.stack(...) of it.")
            )
        if not isinstance(index, Staged):
            index = self.length() + index if index < 0 else np.int64(index)
        else:
            index = ew.where(ew.less(index, 0), index + self.length(), index)
        place = cast(index, INT64)
        items = [_emit(list_ops.list_get, list, place) for list in self.lists]
        return trees.unflatten(self.treedef, items)

    def stack(self, axis: int = 0) -> Any:
        """The items as one array along a new axis."""
        recording = current()
        assert recording is not None
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


def _emit(op: Any, *operands: Any, **attrs: Any) -> Any:
    return _emit_all(op, *operands, **attrs)[0]


def _emit_all(op: Any, *operands: Any, **attrs: Any) -> tuple[Any, ...]:
    recording = current()
    assert recording is not None
    return recording.emit(op, operands, attrs)


def is_list(x: Any) -> bool:
    """Whether a leaf is a traced list, not an array."""
    return isinstance(x, Tracer) and isinstance(x.value.type, ListType)


def _flatten(value: Any) -> tuple[Any, Any, None]:
    return tuple(value.lists), (value.treedef, value.types), None


def _unflatten(kept: Any, lists: Any) -> Any:
    return TensorList(list(lists), *kept)


optree.register_pytree_node(
    TensorList,  # type: ignore[arg-type]  # it has the methods that are needed
    _flatten,
    _unflatten,
    namespace=getattr(optree.registry, "__GLOBAL_NAMESPACE"),  # the only way to it
)
