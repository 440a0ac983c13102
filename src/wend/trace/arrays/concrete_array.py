"""Arrays that a function makes from Python's numbers while it is recorded.

Such an array is a NumPy array with known elements until a traced value is stored in it, or until
code that only some runs reach changes it. Then it is promoted: it becomes traced for everyone who
holds it or a view of it. The object stays the same and changes its class (D48).
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from wend.base.errors import AliasError, TypeMismatchError, change_of_outside, explain
from wend.base.source import at, user_source
from wend.eager.dispatch import Staged, any_staged, read_all, recorder
from wend.ir.dtypes import is_supported
from wend.ir.types import TensorType
from wend.numpy import parts, ufunc_methods
from wend.numpy.public import STAGED
from wend.numpy.unknown import unknown
from wend.trace.arrays.complex_parts import PARTS
from wend.trace.arrays.in_place_methods import InPlaceMethods, dtype_error
from wend.trace.arrays.resolve import call_function
from wend.trace.arrays.tracer import Tracer
from wend.trace.arrays.view_transforms import view_transform_of

# Functions that change their first argument, and methods that change their array.
MUTATE_FIRST_ARGUMENT = frozenset(
    {np.copyto, np.put, np.place, np.putmask, np.put_along_axis, np.fill_diagonal}
)
MUTATING_METHODS = ("fill", "sort", "partition", "put", "resize", "byteswap", "setfield")

_MIN_BROADCAST_BYTES = 4096  # a larger uniform array is cheaper to fill at each call than to store

# Called with an array before its elements change, so that the change can be rolled back.
before_write: ContextVar[Callable[[ConcreteTracedArray], None]] = ContextVar(
    "before_write", default=lambda array: None
)


class LazyRef(Tracer):
    """The reference that a concrete array gets if promoted; traced views of it exist already.

    A write through it promotes the array.
    """

    __slots__ = ("array",)

    array: weakref.ref[ConcreteTracedArray]

    def replace(self, new: Tracer) -> None:
        array = self.array()
        if array is not None and array._ref is None:
            array.promote()
        super().replace(new)


_set_class = object.__dict__["__class__"].__set__  # past the property of that name


class ConcreteTracedArray(np.ndarray):
    """An array made in a trace whose elements are still known."""

    _recording_ref: Callable[[], Any]  # a weak reference to the recording that made it
    _ref: Tracer | None = None  # its traced array, once promoted
    _lazy: LazyRef | None = None  # its future reference, if it has traced views
    _is_read = False  # whether the graph holds its present elements as a constant
    _rollback_count = 0
    _view_fn: Callable[[Any], Any] | None = None  # of a view: makes it from its parent
    _parent: ConcreteTracedArray | None = None  # of a view: the array that it was taken of

    def __array_finalize__(self, source: Any) -> None:
        recording: Any = recorder.get()
        self._recording_ref = (lambda: None) if recording is None else weakref.ref(recording)
        self._views: list[weakref.ref[ConcreteTracedArray]] = []
        root = self.root()
        if root is not self:
            root._views.append(weakref.ref(self))

    @property  # type: ignore[misc]  # of `isinstance`, and of code that asks
    def __class__(self) -> Any:
        return np.ndarray

    def __repr__(self) -> str:
        return repr(_plain(self))

    def root(self) -> ConcreteTracedArray:
        """Return the array whose memory this shares, or itself."""
        root = _root_of(self)
        return self if root is None else root

    def uniform_value(self) -> Any:
        """Return the one value of all elements, bit for bit, if the array is large, or None."""
        if self.nbytes < _MIN_BROADCAST_BYTES:
            return None
        elements = np.ascontiguousarray(_plain(self)).reshape(-1)
        bits = elements.view(np.uint8).reshape(elements.size, -1)
        return elements[0] if (bits == bits[0]).all() else None

    # Promotion
    def must_trace(self, *operands: Any) -> bool:
        """Return whether it must be traced if it changes here, along with these operands."""
        recording: Any = recorder.get()
        if recording is None or recording.runs_now():
            return False
        root = self.root()
        has_staged = any_staged(operands) or any(map(parts.is_staged_key, operands))
        is_captured = root._is_read or root._lazy is not None
        return has_staged or is_captured or root._recording_ref() is not recording

    def _is_linked(self) -> bool:
        """Return whether traced views are linked to it, or only some runs come here."""
        recording: Any = recorder.get()
        if recording is None or recording.runs_now():
            return False
        root = self.root()
        return root._lazy is not None or root._recording_ref() is not recording

    def promote_if_needed(self, *operands: Any, ignores_flags: bool = False) -> bool:
        """Promote it if a change with these operands requires that; return whether it was promoted.

        Otherwise announce to `before_write` that its elements are about to change.
        `ignores_flags`: NumPy changes it even if it is read-only.

        Raises:
            ValueError: it is read-only.
        """
        if self.must_trace(*operands):
            if not self.flags.writeable and not ignores_flags:
                raise ValueError("assignment destination is read-only")
            self.promote()
            return True
        before_write.get()(self.root())
        return False

    def note_read(self) -> None:
        """Note that the graph holds its elements as a constant: a later change promotes it."""
        self.root()._is_read = True

    def lazy_ref(self) -> Tracer:
        """Return the reference that its traced views are linked to; a write to either changes both.

        The array stays concrete until one of them is written to.
        """
        root = self.root()
        if not self.can_promote():
            return self._lift_in(recorder.get())
        if root is self:
            if self._lazy is None:
                recording = self._recording_ref()
                self._lazy = LazyRef(recording.lift(self), recording, zero_dim=not self.ndim)
                self._lazy.array = weakref.ref(self)
            return self._lazy
        parent = self._view_parent()
        if parent is not None:
            part = self._view_of(parent.lazy_ref())
            if isinstance(part, Tracer):
                return part
        ref = self._lift_in(root._recording_ref())
        ref.relink_view(root.lazy_ref())
        ref.writeable = self.flags.writeable
        return ref

    def _lift_in(self, recording: Any) -> Tracer:
        """Return its traced array in a recording."""
        tracer: Tracer = recording.wrap(recording.lift(self))
        return tracer if self.ndim else tracer.as_zero_dim()

    def _view_parent(self) -> ConcreteTracedArray | None:
        """Return the array that this was taken of, if it is known how."""
        return self._parent if self._view_fn is not None else None

    def _view_of(self, whole: Any) -> Any:
        """Take this view of the traced array that its parent has become."""
        assert self._view_fn is not None
        view = self._view_fn(whole)
        node = view.value.node if isinstance(view, Tracer) else None
        if node is not None and node.operands[:1] == (whole.value,):
            transform = view_transform_of(node, is_view=True)  # NumPy returned a view
            if transform is not None:
                view.link_part(whole, transform)
        return view

    def rollback(self, elements: np.ndarray) -> None:
        """Restore the elements from before a trace that is discarded."""
        root = self.root()
        if _plain(self).tobytes() != elements.tobytes():
            root._lazy = None  # stale: elements never change while it exists
        _plain(self)[...] = elements
        root._rollback_count += 1
        root._is_read = False

    @property
    def identity(self) -> Hashable:
        """A key for the array and what the graph holds of it: elements, shape and dtype."""
        plain = _plain(self)
        return id(self), self.root()._rollback_count, plain.shape, plain.dtype

    def promote(self) -> None:
        """Make it traced from here on, for everyone who holds it."""
        root = self.root()
        recording = root._recording_ref()
        if not self.can_promote():
            raise promotion_error(self)
        ref = root._lift_in(recording) if root._lazy is None else root._lazy
        root.become(ref)
        recording.mutations.promotions.append((root, ref))

    def can_promote(self) -> bool:
        """Return whether the recording that made it is still open."""
        recording = self.root()._recording_ref()
        return recording is not None and recording.is_open

    def become(self, ref: Tracer | None) -> None:
        """Become traced as `ref`, or concrete again if it is None; so do its views."""
        self._ref = ref
        cls = ConcreteTracedArray if ref is None else PromotedArray
        for array in (self, *(view() for view in self._views)):
            if array is not None:
                _set_class(array, cls)

    # Parts
    def __getitem__(self, key: Any) -> Any:
        if parts.is_staged_key(key):
            return self.lazy_ref()[key]
        item = super().__getitem__(key)
        if isinstance(item, ConcreteTracedArray) and item.base is not None and parts.is_basic(key):
            item._parent, item._view_fn = self, lambda array: array[key]
        return item

    def __setitem__(self, key: Any, value: Any) -> None:
        if self.promote_if_needed(value, key):
            self[key] = value
        else:
            super().__setitem__(key, value)

    @property
    def shape(self) -> Any:
        return np.ndarray.shape.__get__(self)

    @shape.setter
    def shape(self, shape: Any) -> None:
        is_root = self.root() is self
        if is_root and self._is_linked():
            self.promote()
        np.ndarray.shape.__set__(self, shape)  # type: ignore[attr-defined]
        if is_root and self._ref is not None:
            self._ref.shape = shape
        view_fn, new_shape = self._view_fn, np.ndarray.shape.__get__(self)
        self._view_fn = None if view_fn is None else lambda array: view_fn(array).reshape(new_shape)
        for view in (view() for view in self.root()._views):
            if view is not None and view._parent is self:
                view._view_fn = None  # it is another part of this now

    @property
    def dtype(self) -> Any:
        return np.ndarray.dtype.__get__(self)

    @dtype.setter
    def dtype(self, dtype: Any) -> None:
        if self.root()._ref is not None or self._is_linked():
            raise dtype_error(self.read() if isinstance(self, PromotedArray) else self)
        np.ndarray.dtype.__set__(self, dtype)  # type: ignore[attr-defined]
        self._view_fn = None

    @property
    def T(self) -> Any:  # noqa: N802 - its name in NumPy
        return self.transpose()

    @property
    def flat(self) -> Any:
        """Return the array as a vector that is a view; else `ndarray.flat`, but read-only."""
        if self.flags.c_contiguous:
            return self.reshape(-1)
        plain = np.ndarray.view(self, np.ndarray)
        plain.flags.writeable = False
        return plain.flat

    @flat.setter
    def flat(self, values: Any) -> None:
        if self.size:
            self[...] = STAGED[np.resize](values, self.shape)

    # NumPy's protocols
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        outs = tuple(options.get("out") or ())
        changed = [*outs, *(inputs[:1] if method == "at" else ())]
        for array in changed:
            if type(array) is ConcreteTracedArray:
                is_at = method == "at"
                array.promote_if_needed(inputs, tuple(options.values()), ignores_flags=is_at)
        operands = read_all(inputs)
        if any_staged((*operands, *options.values())):
            return ufunc_methods.run(ufunc, method, *operands, **options)
        plain = {name: _plain(value) for name, value in options.items()}  # `where=`, say
        if outs:
            plain["out"] = tuple(map(_plain, outs))
        returned = getattr(ufunc, method)(*map(_plain, operands), **plain)
        if outs:
            return outs if len(outs) > 1 else outs[0]
        return tuple(map(_adopt_new, returned)) if type(returned) is tuple else _adopt_new(returned)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function is np.array_repr:  # names the class
            return function(*map(_plain, args), **kwargs)
        outs = kwargs.get("out")
        changed = [*(outs if isinstance(outs, tuple) else (outs,))]
        changed += args[:1] if function in MUTATE_FIRST_ARGUMENT else []
        operands = (*args, *kwargs.values())
        for array in changed:
            if type(array) is ConcreteTracedArray:
                array.promote_if_needed(operands)
        if any_staged(operands):
            if function not in STAGED:
                raise unknown(function)
            return STAGED[function](*args, **kwargs)
        result = super().__array_function__(function, types, args, kwargs)
        if type(result) in (list, tuple):
            return type(result)(map(_as_concrete_view, result))
        result = _as_concrete_view(result)
        is_view = (
            isinstance(result, ConcreteTracedArray)
            and result is not self
            and result.base is not None
        )
        if is_view and result._view_fn is None and args and args[0] is self and function in STAGED:
            result._parent = self
            result._view_fn = lambda array: function(array, *args[1:], **kwargs)
        return result


def _plain(array: Any) -> Any:
    return np.ndarray.view(array, np.ndarray) if isinstance(array, ConcreteTracedArray) else array


def _view_method(name: str) -> Any:
    """Return an `ndarray` method that may return a view."""
    method = getattr(np.ndarray, name)

    def run(self: ConcreteTracedArray, /, *args: Any, **kwargs: Any) -> Any:
        if any_staged((*args, *kwargs.values())):
            self.promote()
            return getattr(self, name)(*args, **kwargs)
        result = method(self, *args, **kwargs)
        if (
            isinstance(result, ConcreteTracedArray)
            and result is not self
            and result.base is not None
        ):
            result._parent = self
            result._view_fn = lambda array: getattr(array, name)(*args, **kwargs)
        return result

    return run


def _mutating_method(name: str) -> Any:
    """Return an `ndarray` method that changes the array."""
    method = getattr(np.ndarray, name)

    def run(self: ConcreteTracedArray, /, *args: Any, **kwargs: Any) -> Any:
        run = (
            getattr(self, name) if self.promote_if_needed(args) else functools.partial(method, self)
        )
        return run(*args, **kwargs)

    return run


for _name in ("reshape", "transpose", "swapaxes", "squeeze", "ravel", "diagonal"):
    setattr(ConcreteTracedArray, _name, _view_method(_name))
for _name in MUTATING_METHODS:
    setattr(ConcreteTracedArray, _name, _mutating_method(_name))
for _name, _own in (("resize", InPlaceMethods.resize), *PARTS.items()):
    setattr(ConcreteTracedArray, _name, _own)


class PromotedArray(Staged, ConcreteTracedArray):
    """An array made in a trace that has become traced."""

    weak = False
    __hash__ = None  # type: ignore[assignment]  # as arrays: == is elementwise

    def read(self) -> Any:
        root = self.root()
        if self is root:
            return root._ref
        parent = self._view_parent()
        if not isinstance(parent, PromotedArray):
            raise AliasError(
                explain(
                    "a view that NumPy made of an array that has become traced is used"
                    f"{at(user_source())}.",
                    cure="take the part by x[…], x.T or x.reshape, or take a .copy() of it.",
                )
            )
        return self._view_of(parent.read())

    def leaked(self) -> Exception:
        ref = self.root()._ref
        assert ref is not None
        return ref.leaked()

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_") or name in _OWN_ATTRIBUTES:
            return object.__getattribute__(self, name)
        return getattr(self.read(), name)

    @property
    def type(self) -> TensorType:  # type: ignore[override]
        plain = _plain(self)
        return TensorType(plain.dtype, plain.shape)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.read()[key] = value

    @property
    def flat(self) -> Any:
        return self.read().flat

    @flat.setter
    def flat(self, values: Any) -> None:
        self.read().flat = values

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return call_function(function, args, kwargs)


_OWN_ATTRIBUTES = {
    *("read", "leaked", "type", "weak", "root", "become", "promote", "must_trace", "note_read"),
    *("rollback", "identity"),
}


def _ref_method(name: str) -> Any:
    return lambda self, /, *args, **kwargs: getattr(self.read(), name)(*args, **kwargs)


for _name in (
    *("__getitem__", "__len__", "__iter__", "__contains__", "__bool__", "__int__", "__float__"),
    *("__complex__", "__index__", "__repr__", "__str__", "__format__"),
    *("__copy__", "__deepcopy__"),
):
    setattr(PromotedArray, _name, _ref_method(_name))


def without_stale_memory(value: Any) -> Any:
    """Return a value with traced arrays in place of those that have become traced.

    Code that is not captured, and C, would find the elements from before they became traced in
    their memory.
    """
    if isinstance(value, PromotedArray):
        return value.read()
    if type(value) in (list, tuple):
        parts = [without_stale_memory(part) for part in value]
        is_same = all(new is old for new, old in zip(parts, value, strict=True))
        return value if is_same else type(value)(parts)
    if type(value) is dict:
        values = {key: without_stale_memory(part) for key, part in value.items()}
        return value if all(values[key] is value[key] for key in value) else values
    return value


def adopt_result(result: Any) -> Any:
    """Return a call's result; if the call made the array, as one that can be promoted."""
    recording: Any = recorder.get()
    if type(result) is not np.ndarray or recording is None or recording.runs_now():
        return result
    is_sole = sys.getrefcount(result) <= _SOLE_REFCOUNT
    result = _as_concrete_view(result)
    if type(result) is not np.ndarray or not is_sole or not _owns_memory_alone(result):
        return result
    can_change = result.flags.writeable and is_supported(result.dtype)
    return adopt(result) if can_change else result


def _as_concrete_view(array: Any) -> Any:
    """Return an array; if it shares the memory of one that can be promoted, as a view of that."""
    if type(array) is not np.ndarray or not is_supported(array.dtype):
        return array
    root = _root_of(array)
    if root is None:
        return array
    return root if _is_same_memory(root, array) else array.view(ConcreteTracedArray)


def _root_of(array: np.ndarray) -> ConcreteTracedArray | None:
    """Return the array that can be promoted whose memory an array shares, or None."""
    root = array if isinstance(array, ConcreteTracedArray) else None
    base: Any = np.ndarray.base.__get__(array)
    while base is not None:
        if isinstance(base, ConcreteTracedArray):
            root = base
        elif isinstance(base, np.ndarray):
            root = _BY_BASE.get(id(base), root)
        is_array = isinstance(base, np.ndarray)
        base = np.ndarray.base.__get__(base) if is_array else _buffer_owner(base)
    return root


def _buffer_owner(base: Any) -> Any:
    """Return the owner of memory that no array owns: of a buffer, or of a stride trick."""
    return base.obj if isinstance(base, memoryview) else getattr(base, "base", None)


# By the id of the array that owns the memory, which is the base of NumPy's plain views.
_BY_BASE: WeakValueDictionary[int, ConcreteTracedArray] = WeakValueDictionary()


def _adopt_new(result: Any) -> Any:
    is_array = type(result) is np.ndarray and result.ndim and is_supported(result.dtype)
    return adopt(result) if is_array else result


def adopt(array: np.ndarray) -> ConcreteTracedArray:
    """Return an array that nobody else holds as one that can be promoted."""
    adopted = array.view(ConcreteTracedArray)
    _BY_BASE[id(array if array.base is None else array.base)] = adopted
    return adopted


def _is_same_memory(a: np.ndarray, b: np.ndarray) -> bool:
    lhs, rhs = (np.ndarray.view(x, np.ndarray).__array_interface__ for x in (a, b))
    return lhs == rhs and a.strides == b.strides


def ref_of(array: Any) -> Tracer | None:
    """Return the traced array that holds the elements of an array or of a part of one."""
    if isinstance(array, PromotedArray):
        return array.root()._ref
    return array.whole() if isinstance(array, Tracer) else None


def promote_for_region(array: Any) -> bool:
    """Promote a concrete array that a region may write to; return whether it was promoted.

    Every write in a region promotes: done before, it does not change what the region starts from.
    """
    if type(array) is not ConcreteTracedArray or not array.flags.writeable:
        return False
    if not array.can_promote():
        return False
    array.promote()
    return True


def demote(array: PromotedArray) -> None:
    """Make an array concrete again, as before a promotion that no write needed."""
    root = array.root()
    if isinstance(root, PromotedArray):
        promotions = root._recording_ref().mutations.promotions
        promotions[:] = [entry for entry in promotions if entry[0] is not root]
        root.become(None)


def promotion_error(array: Any) -> TypeMismatchError:
    """Return the error for an array that would change at run time but cannot be promoted."""
    type = TensorType(_plain(array).dtype, _plain(array).shape)
    return change_of_outside(
        array,
        f"a concrete array, {type}, is changed{at(user_source())} by values that are known only at "
        "run time, and it is held elsewhere, or was made outside the function.",
    )


def _refcount_in_callee(array: Any) -> int:
    return sys.getrefcount(array)


# The reference count that a callee sees of an argument that nobody else holds.
_SOLE_REFCOUNT = _refcount_in_callee(np.zeros(1))


def _owns_memory_alone(array: np.ndarray) -> bool:
    """Return whether nobody else holds the array's base, if it has one."""
    is_sole = _base_refcount(array) <= _SOLE_BASE_REFCOUNT
    return array.base is None or (isinstance(array.base, np.ndarray) and is_sole)


def _base_refcount(array: np.ndarray) -> int:
    return sys.getrefcount(array.base)


_SOLE_BASE_REFCOUNT = _base_refcount(np.zeros(2)[:1])
