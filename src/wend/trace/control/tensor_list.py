"""`TensorList`: a Python list to which a staged loop appends (D11)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
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
from wend.base.refusals import refusal
from wend.base.source import at, user_source
from wend.eager import raising
from wend.eager.dispatch import Staged
from wend.eager.promotion import as_array, cast
from wend.ir.graph import Value
from wend.ir.types import ListType, accepts
from wend.numpy import elementwise as ew
from wend.numpy import orders, reducing, shaping
from wend.numpy.slices import as_position
from wend.ops import lists as list_ops
from wend.ops.effects import LIST, LIST_OF_NUMBERS
from wend.trace.aliasing.listed_containers import note_appended, note_read
from wend.trace.aliasing.may_alias import add_may_aliases, is_array, roots
from wend.trace.arrays.decided_integers import decided_integer, marked
from wend.trace.arrays.shown_text import ShownField, ShownList, ShownText
from wend.trace.arrays.tracer import Tracer
from wend.trace.control.item_types import as_kind, common_type, takes
from wend.trace.control.listed_texts import (
    Vocabulary,
    vocabulary_of,
    with_numbers,
    with_texts,
)
from wend.trace.control.missing_items import text_of_missing
from wend.trace.recording.arguments import LeafType, is_array_leaf, leaf_type
from wend.trace.recording.recording import current
from wend.trace.sizes.lengths import items_shape, static_length
from wend.trace.state.effects import raise_if


class ListError(WendError, TypeError):
    """A list that grows in a recorded loop does not support this operation."""


class TensorList(ShownList):
    """A list with items of one type, whose length is only known at run time.

    Args:
        lists: a traced list for each array in an item.
        treedef: the structure of an item.
        types: the types of the arrays in an item.
    """

    KIND: type = list
    _EMPTY = "pop from empty list"

    def __init__(
        self, lists: Sequence[Any], treedef: trees.TreeDef, types: Sequence[LeafType]
    ) -> None:
        self.lists, self.treedef, self.types = list(lists), treedef, tuple(types)

    @classmethod
    def of(cls, items: Sequence[Any], examples: Sequence[Any]) -> TensorList:
        """Return a list of these items, of a type that takes the examples, too."""
        vocabulary = Vocabulary()
        rows = [
            trees.flatten(with_numbers(item, vocabulary, is_example=True))
            for item in (*items, *examples)
        ]
        treedef = rows[-1][1]
        columns = zip(*(leaves for leaves, tree in rows if tree == treedef), strict=True)
        leaf_types = [[leaf_type(leaf) for leaf in column] for column in columns]
        if any(isinstance(type.type, ListType) for column in leaf_types for type in column):
            raise _of_grown_lists()
        types = [common_type(column) for column in leaf_types]
        lists = [_emit(list_ops.list_new, element=type.type) for type in types]
        new = cls(lists, treedef, types)
        for item in items:
            new._push(item)
        return new

    @staticmethod
    def empty(type: ListType) -> Any:
        """Return an empty traced list, of one of the arrays in an item."""
        return _emit(list_ops.list_new, element=type.element)

    def __repr__(self) -> str:
        """Return a text that the run writes, by its mark; outside of traces a plain one."""
        text = f"<traced list of {', '.join(map(str, self.types))}>"
        recording = current()
        if recording is None:
            return text
        return ShownText.of_field(ShownField(self.copy(), None, "", text), recording)

    def items_to_show(self) -> tuple[Any, str]:
        """Return the array of its items, and the spec by which a text shows it as a list.

        Raises:
            ListError: its items are containers.
        """
        if self.treedef.is_leaf():
            return self.rows(), LIST_OF_NUMBERS if self.types[0].weak else LIST
        raise refusal(
            ListError(
                explain(
                    f"the text of {self!r}{at(user_source())} is needed, but a list that grows in "
                    "a loop or branch that is recorded has its items when it runs.",
                    cure="make an array of it: print(np.array(items)); print texts after the call.",
                )
            )
        )

    @property
    def holds_numbers(self) -> bool:
        """Whether its items are Python numbers."""
        return self.treedef.is_leaf() and self.types[0].weak

    def copy(self) -> TensorList:
        """Return a list of the same items that can be changed independently."""
        return type(self)(self.lists, self.treedef, self.types)

    def become(self, other: TensorList) -> None:
        """Take the items of another list."""
        self.lists, self.treedef, self.types = list(other.lists), other.treedef, other.types

    def example(self) -> Any:
        """Return a placeholder of the type of its items."""
        items = [Tracer(Value(type.type), _NO_RECORDING, weak=type.weak) for type in self.types]
        return trees.unflatten(self.treedef, items)

    # List methods
    def append(self, item: Any) -> None:
        """Append an item, which must have the type of the others."""
        note_appended(item, _is_made_inside)
        self._push(item)

    def _push(self, item: Any) -> None:
        leaves = self._leaves_of(item)
        pairs = zip(self.lists, self._coerce_item(item, "appended to"), strict=True)
        self.lists = [
            _with_item_aliases(_emit(list_ops.list_push, list, leaf), list, original)
            for (list, leaf), original in zip(pairs, leaves, strict=True)
        ]

    def _numbered(self, item: Any) -> Any:
        return with_numbers(item, vocabulary_of(self.treedef))

    def _leaves_of(self, item: Any) -> list[Any]:
        return trees.flatten(self._numbered(item))[0]

    def _coerce_item(self, item: Any, verb: str) -> list[Any]:
        """Return the arrays of an item, cast to the list's types."""
        leaves, treedef = trees.flatten(self._numbered(item))
        if not trees.is_same_structure(treedef, self.treedef):
            raise StructureError(
                explain(
                    f"an item of structure {trees.described(item)} is {verb} {self!r}.",
                    cure="append items of one structure.",
                )
            )
        coerced = []
        for leaf, type in zip(map(as_array, leaves), self.types, strict=True):
            item_type = leaf_type(leaf)
            if not takes(type, item_type) or not accepts(
                type.type, item_type.type.with_dtype(type.type.dtype)
            ):
                raise CarryError(
                    explain(
                        f"{item_type.type} is {verb} a list of {type.type}.",
                        cure="append items of one dtype and shape, such as float(n) where others "
                        "are floats; or keep one list for each.",
                    )
                )
            coerced.append(cast(leaf, type.type.dtype))
        return coerced

    def extend(self, items: Sequence[Any]) -> None:
        """Append each of some items."""
        for item in items:
            self.append(item)

    def pop(self, index: Any = -1) -> Any:
        """Remove an item and return it."""
        if not isinstance(index, Staged) and index == 0:
            return self._pop_first()
        if isinstance(index, Staged) or index != -1:
            self._check_not_empty()
            self.check(lambda: self._is_outside(index), IndexError, "pop index out of range")
            items = [_emit(list_ops.list_get, list, self._position(index)) for list in self.lists]
            self._remove_at(index, "pop an item between others")
            return self.item_of(items, is_popped=True)
        raising.guard(lambda: self.length() == 0, "pop", IndexError, self._EMPTY)
        old = self.lists
        pairs = [_emit_all(list_ops.list_pop, list) for list in old]
        self.lists = [remaining for remaining, _ in pairs]
        items = [item for _, item in pairs]
        for item, remaining, list in zip(items, self.lists, old, strict=True):
            add_may_aliases(remaining, list.held_aliases)
            if item.type.shape != ():
                add_may_aliases(item, list.held_aliases)
        return self.item_of(items, is_popped=True)

    def _check_not_empty(self) -> None:
        self.check(lambda: self.length() == 0, IndexError, self._EMPTY)

    def check(self, test: Callable[[], Any], error: type[Exception], text: str) -> None:
        """Raise an error where a test holds, or go to its handler."""
        if not raising.divert(test, error, lambda: text):
            raise_if(test(), error, text)

    def _first(self, item: Any, method: str) -> Any:
        """Return the position of the first item that is equal to another."""
        matches, text = self._matches(item), text_of_missing(self.KIND, method)
        with raising.checked():
            position = reducing.argmax(shaping.concatenate([matches, np.ones(1, bool)]))
        has_none, values = position == self.length(), (item,) if "{}" in text else ()
        filled = raising.Filled(text, item) if values else text
        if not raising.divert(lambda: has_none, ValueError, lambda: filled):
            raise_if(has_none, ValueError, text, *values)
        return position

    def _remove_at(self, index: Any, what: str) -> None:
        """Remove the item at a position that there is."""
        with raising.checked():
            k, columns = self._from_start(index), self._columns(what)
            self._fill([shaping.concatenate([c[:k], c[k + 1 :]]) for c in columns])

    def _from_start(self, index: Any) -> Any:
        return ew.where(ew.less(index, 0), index + self.length(), index)

    def _columns(self, what: str) -> list[Any]:
        """Return an array for each number of an item."""
        if any(type.type.shape != () for type in self.types):
            raise self._unsupported(what, "collect numbers, or stack it: wnp.stack(...).")
        return list(trees.flatten(self.stack())[0])

    def _fill(self, columns: Sequence[Any]) -> None:
        """Take the items whose parts are the rows of these arrays."""
        self.lists = [_emit(list_ops.list_unstack, column) for column in columns]

    def insert(self, index: Any, item: Any) -> None:
        """Put an item before the one at a position."""
        columns = self._columns("take an item between others")
        leaves = self._coerce_item(item, "inserted into")
        with raising.checked():
            k = ew.clip(self._from_start(index), 0, self.length())
            rows = [shaping.reshape(leaf, (1,)) for leaf in leaves]
            pairs = zip(columns, rows, strict=True)
            self._fill([shaping.concatenate([c[:k], row, c[k:]]) for c, row in pairs])

    def index(self, item: Any) -> Any:
        """Return the position of the first item that is equal to another."""
        return self._first(item, "index").as_weak()

    def remove(self, item: Any) -> None:
        """Remove the first item that is equal to another."""
        self._remove_at(self._first(item, "remove"), "lose an item between others")

    def _pop_first(self) -> Any:
        self._check_not_empty()
        items = [_emit(list_ops.list_get, list, self._position(0)) for list in self.lists]
        self.become(self.part(slice(1, None)))
        return self.item_of(items, is_popped=True)

    def reverse(self) -> None:
        """Reverse the order of the items."""
        self.become(self.part(slice(None, None, -1)))

    def sort(self, *, reverse: bool = False) -> None:
        """Sort items that are numbers, or tuples of numbers; NaN raises."""
        self.become(self.part(orders.order_by(self._columns("be sorted"), reverse=reverse)))

    def has(self, item: Any) -> Any:
        """Return whether an item, a number or container of numbers, is equal, as a traced bool."""
        return reducing.any(self._matches(item))

    def count(self, item: Any) -> Any:
        """Return how many items are equal to a number or container of numbers."""
        return reducing.sum(self._matches(item)).as_weak()

    def _matches(self, item: Any) -> Any:
        vocabulary = vocabulary_of(self.treedef)
        leaves, treedef = trees.flatten(with_numbers(item, vocabulary, is_searched=True))
        are_numbers = all(map(is_array_leaf, leaves))
        types = [*self.types, *map(leaf_type, leaves)] if are_numbers else self.types
        if any(type.type.shape != () for type in types):
            raise self._length_error("a search", "compare the items one by one, in a loop.")
        columns = trees.flatten(self.stack())[0]
        if not are_numbers or not trees.is_same_structure(treedef, self.treedef):
            return ew.logical_and(ew.equal(columns[0], columns[0]), False)
        with raising.checked():  # columns are as long as each other
            matches = [ew.equal(column, x) for column, x in zip(columns, leaves, strict=True)]
            return reduce(ew.logical_and, matches)

    def clear(self) -> None:
        """Remove all items."""
        self.lists = [_emit(list_ops.list_new, element=type.type) for type in self.types]

    def item_of(self, leaves: Sequence[Any], *, is_popped: bool = False) -> Any:
        """Return the item that has these parts."""
        pairs = zip(leaves, self.types, strict=True)
        item = trees.unflatten(self.treedef, [as_kind(leaf, type) for leaf, type in pairs])
        if vocabulary_of(self.treedef) is not None:
            item = with_texts(item)
        note_read(item, is_popped=is_popped)
        return item

    def length(self) -> Any:
        """Return the number of items, as a traced integer."""
        return _emit(list_ops.list_len, self.lists[0])

    def __len__(self) -> int:
        return self._decided_length(
            "len()", "use it inside captured code, or wnp.stack(...).shape[0]."
        )

    def __iter__(self) -> Iterator[Any]:
        cure = "stack it first: `for x in wnp.stack(...)` is a loop over the rows."
        if not self.treedef.is_leaf():
            cure = "go through it by position: `for k in range(len(out))` with out[k] in it."
        count = self._decided_length("iteration", cure)
        return iter([self[k] for k in range(count)])

    def __bool__(self) -> bool:
        return self._decided_length("the truth value", "compare its len() with 0.") > 0

    def _decided_length(self, what: str, cure: str) -> int:
        """Return the length for what Python does, or raise unless the trace knows it (D37)."""
        if not self.lists[0].is_reachable():
            raise self._leaked()
        length = self.length()
        if (count := decided_integer(length)) is not None:
            return count
        raise marked(self._length_error(what, cure), length)

    def _length_error(self, what: str, cure: str) -> WendError:
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
            return self.part(index)
        raising.guard(lambda: self._is_outside(index), "[]", IndexError, "list index out of range")
        return self.item_at(index)

    def item_at(self, index: Any) -> Any:
        """Return the item at a position that there is."""
        position = self._position(index)
        items = [_emit(list_ops.list_get, list, position) for list in self.lists]
        for item, list in zip(items, self.lists, strict=True):
            if item.type.shape != ():
                item.link_view(list)  # a write to it would change the list's item
        return self.item_of(items)

    def part(self, index: Any) -> TensorList:
        """Return a list of the items of a slice or at positions; this list has its arrays, too."""
        lists = [_emit(list_ops.list_unstack, x[index]) for x in trees.flatten(self.stack())[0]]
        for part, whole, type in zip(lists, self.lists, self.types, strict=True):
            if type.type.shape != ():
                add_may_aliases(part, [whole, *whole.held_aliases])
        return TensorList(lists, self.treedef, self.types)

    def _is_outside(self, index: Any) -> Any:
        """Return whether there is no item at an index."""
        length = self.length()
        return (length <= index) | (index < -length)

    def __contains__(self, item: Any) -> bool:
        raise self._length_error(
            "`in`", "ask it of wnp.stack(...) of it: (wnp.stack(out) == x).any()."
        )

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, (TensorList, list)):
            return self is other
        raise self._unsupported("be compared", "compare its items: wnp.stack(...) == x.")

    __hash__ = object.__hash__

    def _order(self, other: object) -> Any:
        if isinstance(other, (TensorList, list)):
            raise self._unsupported("be compared", "compare its items: wnp.stack(...) == x.")
        return NotImplemented

    __lt__ = __le__ = __gt__ = __ge__ = _order

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise self._length_error("a NumPy array", "use wnp.stack(...) of it.")

    def __setitem__(self, index: Any, item: Any) -> None:
        if isinstance(index, slice):
            raise self._unsupported("be assigned to by slices", "assign item by item.")
        note_appended(item, _is_made_inside)
        text = "list assignment index out of range"
        raising.guard(lambda: self._is_outside(index), "[]", IndexError, text)
        position = self._position(index)
        leaves = self._leaves_of(item)
        pairs = zip(self.lists, self._coerce_item(item, "put into"), strict=True)
        self.lists = [
            _with_item_aliases(_emit(list_ops.list_set, list, position, leaf), list, original)
            for (list, leaf), original in zip(pairs, leaves, strict=True)
        ]

    def __delitem__(self, index: Any) -> None:
        if isinstance(index, slice):
            raise self._unsupported("lose a slice", "keep the others: out = out[k:].")
        is_list = self.KIND is list
        text = f"{'list assignment' if is_list else 'deque'} index out of range"
        self.check(lambda: self._is_outside(index), IndexError, text)
        self._remove_at(index, "lose an item that is not its last")

    def __add__(self, other: Any) -> Any:
        raise self._unsupported("be added to or repeated", "extend it: out.extend(more).")

    __radd__ = __mul__ = __rmul__ = __add__

    def __getattr__(self, name: str) -> Any:
        if not hasattr(self.KIND, name):
            raise AttributeError(f"'TensorList' object has no attribute {name!r}")
        raise self._unsupported(f".{name}()")

    def _unsupported(self, what: str, cure: str = "do it with wnp.stack(...) of it.") -> TypeError:
        return ListError(
            explain(
                f"{self!r}, a list that grows in a loop or branch that is recorded, cannot {what}.",
                cure=cure,
            )
        )

    def _position(self, index: Any) -> Any:
        """Return an index as an operand; lists count negative ones from the end by themselves."""
        return as_position(index, of_list=True)

    def stack(self, axis: int = 0) -> Any:
        """Stack the items along a new axis."""
        recording = current()
        if recording is None:
            raise self._leaked()
        stacked = []
        for list, type in zip(self.lists, self.types, strict=True):
            value = recording.lift(list)
            shape = items_shape(recording.b, type.type, recording.values())
            if shape is None:
                what = f"the items of {self!r} have sizes that are known only inside the loop."
                cure = "append items of a size that is known before it, as an argument's."
                raise refusal(ShapeError(explain(what, cure=cure)))
            stacked_rows, size = recording.b.list_stack(value, shape), static_length(value)
            if size is not None:
                stacked_rows = recording.b.refine(
                    stacked_rows, type.type.with_shape((size, *type.type.dims))
                )
            array = recording.wrap(stacked_rows)
            stacked.append(array if axis == 0 else shaping.moveaxis(array, 0, axis))
        return trees.unflatten(self.treedef, stacked)

    def as_array(self) -> Any:
        """Return the array that NumPy makes of it: parts of items lie along the second axis.

        Raises:
            ListError: the items are no arrays, numbers, or tuples and lists of these.
        """
        return self._joined(self.stack())

    def _joined(self, columns: Any) -> Any:
        if isinstance(columns, (tuple, list)) and columns:
            return shaping.stack([self._joined(column) for column in columns], axis=1)
        if not isinstance(columns, Staged):
            raise self._unsupported("become an array", "keep a list for each part of an item.")
        return columns

    def items(self) -> Any:
        """Return the array of its items.

        Raises:
            ListError: they are no arrays or numbers.
        """
        if not self.treedef.is_leaf():
            raise self._unsupported("be taken as numbers", "keep a list for each part of an item.")
        return self.stack()

    def rows(self) -> Any:
        """Return the array of its items, of which each row has the class of an item.

        Raises:
            ListError: they are no arrays or numbers, or arrays without axes.
        """
        items = self.items()
        if self.types[0].zero_dim is not False:
            raise self._unsupported(
                "give arrays without axes", "append numbers: out.append(x[()])."
            )
        return items


class TensorDeque(TensorList):
    """A deque to which a staged loop appends at its end."""

    KIND = deque
    _EMPTY = "pop from an empty deque"

    def popleft(self) -> Any:
        """Remove the first item and return it."""
        return self._pop_first()

    def pop(self) -> Any:  # type: ignore[override]
        """Remove the last item and return it."""
        self._check_not_empty()
        return super().pop()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise TypeError("sequence index must be integer, not 'slice'")
        return super().__getitem__(index)


def _of_grown_lists() -> Exception:
    return refusal(
        ListError(
            explain(
                f"the items of a list that grows{at(user_source())} are lists that grow, too, and "
                "have their items when they run.",
                cure="append arrays: rows.append(np.array(row)); or keep all items in one list, "
                "and where each part begins in another.",
            )
        )
    )


_NO_RECORDING: Any = None  # the recording of placeholders


def _with_item_aliases(list: Any, old_list: Any, item: Any) -> Any:
    """Return a list after an append; it may alias the appended item."""
    add_may_aliases(list, [*old_list.held_aliases, *(roots(item) if is_array(item) else ())])
    return list


def _is_made_inside(container: Any) -> bool:
    """Return whether each run of the region that is recorded makes a container anew."""
    recording = current()
    outer = recording and recording.parent
    leaves = trees.flatten(container)[0]
    return outer is None or any(isinstance(x, Tracer) and not outer.can_lift(x) for x in leaves)


def _emit(op: Any, *operands: Any, **attrs: Any) -> Any:
    return _emit_all(op, *operands, **attrs)[0]


def _emit_all(op: Any, *operands: Any, **attrs: Any) -> tuple[Any, ...]:
    recording = current()
    if recording is None:
        raise operands[0].leaked()  # a list whose trace has ended
    return recording.emit(op, operands, attrs)


def is_list(x: Any) -> bool:
    """Return whether a leaf is a traced list rather than an array."""
    return isinstance(x, Tracer) and isinstance(x.value.type, ListType)


def _flatten(value: Any) -> tuple[Any, Any, None]:
    return tuple(value.lists), (value.treedef, value.types), None


def _register(kind: type[TensorList]) -> None:
    optree.register_pytree_node(
        kind,
        _flatten,
        lambda aux_data, lists: kind(list(lists), *aux_data),  # type: ignore[misc]
        namespace=getattr(optree.registry, "__GLOBAL_NAMESPACE"),  # it has no public name
    )


_register(TensorList)
_register(TensorDeque)
