"""Arrays that a function makes of Python's numbers while it is recorded.

Such an array is NumPy's, and Python knows its numbers, until a traced value is put into it, or
code that only some runs come to changes it. From then on it is traced, for everyone who holds it
or a view of it: the object stays and changes its class.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from wend.base.errors import AliasError, TypeMismatchError, explain
from wend.base.source import at, user_source
from wend.eager.dispatch import Staged, any_staged, read_all, recorder
from wend.ir.dtypes import is_supported
from wend.ir.types import TensorType
from wend.numpy import parts, ufunc_methods
from wend.numpy.public import STAGED
from wend.numpy.unknown import unknown
from wend.trace.arrays.operators import put_into
from wend.trace.arrays.resolve import call_function
from wend.trace.arrays.tracer import Tracer
from wend.trace.arrays.view_transforms import view_transform_of

# Functions that change their first argument, and methods that change their array
CHANGE_THE_FIRST = frozenset(
    {np.copyto, np.put, np.place, np.putmask, np.put_along_axis, np.fill_diagonal}
)
CHANGING_METHODS = ("fill", "sort", "partition", "put", "resize", "byteswap", "setfield")


_LARGE = 4096  # bytes: from here on to keep an array costs more than to make it at each call

# Who is told of an array before its numbers change, to take that back
before_write: ContextVar[Callable[[ConcreteTracedArray], None]] = ContextVar(
    "before_write", default=lambda array: None
)


class LazyRef(Tracer):
    """An array that Python knows, for its traced views; when one is changed it becomes traced."""

    __slots__ = ("array",)

    array: weakref.ref[ConcreteTracedArray]

    def replace(self, new: Tracer) -> None:
        array = self.array()
        if array is not None and array._ref is None:
            array.promote()
        super().replace(new)


class ConcreteTracedArray(np.ndarray):
    """An array made in a trace, of which Python knows the numbers so far."""

    _made_in: Callable[[], Any]  # the recording, if it lives
    _ref: Tracer | None = None  # what it is when it is traced
    _early: LazyRef | None = None  # what it will be, of which there are traced views
    _is_read = False  # whether the graph has its numbers as they are
    _times_put_back = 0
    _derive: Callable[[Any], Any] | None = None  # how a view is made
    _parent: ConcreteTracedArray | None = None  # of which array

    def __array_finalize__(self, source: Any) -> None:
        recording: Any = recorder.get()
        self._made_in = (lambda: None) if recording is None else weakref.ref(recording)
        self._views: list[weakref.ref[ConcreteTracedArray]] = []
        root = self.root()
        if root is not self:
            root._views.append(weakref.ref(self))

    def root(self) -> ConcreteTracedArray:
        """The array whose memory this shares."""
        found = _root_of(self)
        return self if found is None else found

    def only_number(self) -> Any:
        """The number that it has everywhere, to the bit, if it is large; else None."""
        if self.nbytes < _LARGE:
            return None
        numbers = np.ascontiguousarray(_plain(self)).reshape(-1)
        bits = numbers.view(np.uint8).reshape(numbers.size, -1)
        return numbers[0] if (bits == bits[0]).all() else None

    # Becoming traced
    def depends(self, *met: Any) -> bool:
        """Whether its numbers depend on the run if it changes here and meets these things."""
        recording: Any = recorder.get()
        if recording is None or recording.runs_now():
            return False
        root = self.root()
        staged = any_staged(met) or any(map(parts.is_staged_key, met))
        is_shown = root._is_read or root._early is not None
        return staged or is_shown or root._made_in() is not recording

    def is_promoted(self, *met: Any) -> bool:
        """Let it become traced if it has to, where it changes and meets these things.

        Else say that its numbers are about to change.
        """
        if self.depends(*met):
            self.promote()
            return True
        before_write.get()(self.root())
        return False

    def note_read(self) -> None:
        """Remember that the graph has its numbers: they stay what they are."""
        self.root()._is_read = True

    def lazy_ref(self) -> Tracer:
        """This array for what is recorded as a view of it: it changes with this, and this with it.

        Python goes on knowing the array as long as neither does.
        """
        root = self.root()
        if not self.can_promote():
            return self._recorded(recorder.get())
        if root is self:
            if self._early is None:
                recording = self._made_in()
                self._early = LazyRef(recording.lift(self), recording)
                self._early.array = weakref.ref(self)
            return self._early
        parent = self._known_parent()
        if parent is not None:
            part = self._seen_in(parent.lazy_ref())
            if isinstance(part, Tracer):
                return part
        found = self._recorded(root._made_in())
        found.become_view_of(root.lazy_ref())
        return found

    def _recorded(self, recording: Any) -> Tracer:
        found: Tracer = recording.wrap(recording.lift(self))
        return found

    def _known_parent(self) -> ConcreteTracedArray | None:
        """The array that this is a view of, if it is known how."""
        return self._parent if self._derive is not None else None

    def _seen_in(self, whole: Any) -> Any:
        """This view, of the array that its parent is."""
        assert self._derive is not None
        found = self._derive(whole)
        node = found.value.node if isinstance(found, Tracer) else None
        if node is not None and node.operands[:1] == (whole.value,):
            how = view_transform_of(node, is_view=True)  # NumPy has made it
            if how is not None:
                found.become_part(whole, how)
        return found

    def rollback(self, numbers: np.ndarray) -> None:
        """Let it hold what it held before a trace that is dropped, whatever that has read."""
        root = self.root()
        if _plain(self).tobytes() != numbers.tobytes():
            root._early = None  # of that trace: while there is one, numbers do not change
        _plain(self)[...] = numbers
        root._times_put_back += 1
        root._is_read = False

    @property
    def identity(self) -> tuple[int, int]:
        """Which array it is, and which numbers the graph has of it."""
        return id(self), self.root()._times_put_back

    def promote(self) -> None:
        """Let it be traced from here on, for everyone who holds it."""
        root = self.root()
        recording = root._made_in()
        if not self.can_promote():
            raise made_elsewhere(self)
        ref = root._recorded(recording) if root._early is None else root._early
        root.become(ref)
        recording.mutations.promotions.append((root, ref))

    def can_promote(self) -> bool:
        """Whether the recording that it was made in goes on."""
        recording = self.root()._made_in()
        return recording is not None and recording.is_open

    def become(self, ref: Tracer | None) -> None:
        """Stand for a box, or be known again; so do its views."""
        self._ref = ref
        kind = ConcreteTracedArray if ref is None else PromotedArray
        for array in (self, *(view() for view in self._views)):
            if array is not None:
                array.__class__ = kind

    # Parts
    def __getitem__(self, key: Any) -> Any:
        if parts.is_staged_key(key):
            return self.lazy_ref()[key]
        found = super().__getitem__(key)
        if (
            isinstance(found, ConcreteTracedArray)
            and found.base is not None
            and parts.is_basic(key)
        ):
            found._parent, found._derive = self, lambda array: array[key]
        return found

    def __setitem__(self, key: Any, value: Any) -> None:
        if self.is_promoted(value, key):
            self[key] = value
        else:
            super().__setitem__(key, value)

    @property
    def shape(self) -> Any:
        return np.ndarray.shape.__get__(self)

    @shape.setter
    def shape(self, shape: Any) -> None:
        np.ndarray.shape.__set__(self, shape)  # type: ignore[attr-defined]
        derive, new = self._derive, np.ndarray.shape.__get__(self)
        self._derive = None if derive is None else lambda array: derive(array).reshape(new)
        for view in (view() for view in self.root()._views):
            if view is not None and view._parent is self:
                view._derive = None  # it is no longer the same part of this

    @property
    def T(self) -> Any:  # noqa: N802 - its name in NumPy
        return self.transpose()

    @property
    def flat(self) -> Any:
        """`ndarray.flat`; what is written to it would not be noticed."""
        plain = np.ndarray.view(self, np.ndarray)
        plain.flags.writeable = False
        return plain.flat

    # NumPy's protocols
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        outs = tuple(options.pop("out", None) or ())
        changed = [*outs, *(inputs[:1] if method == "at" else ())]
        for array in changed:
            if type(array) is ConcreteTracedArray:
                array.is_promoted(inputs)
        if any_staged(inputs) or any_staged(outs):
            found = _run(ufunc, method, inputs, options)
        else:
            if outs:
                options["out"] = tuple(map(_plain, outs))
            found = getattr(ufunc, method)(*map(_plain, inputs), **options)
            if outs:
                return outs if len(outs) > 1 else outs[0]
        results = found if isinstance(found, tuple) else (found,)
        if outs:
            pairs = zip(outs, results, strict=True)
            results = tuple(r if out is None else put_into(out, r) for out, r in pairs)
        else:
            results = tuple(map(_fresh, results))
        return results if isinstance(found, tuple) else results[0]

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        outs = kwargs.get("out")
        changed = [*(outs if isinstance(outs, tuple) else (outs,))]
        changed += args[:1] if function in CHANGE_THE_FIRST else []
        given = (*args, *kwargs.values())
        for array in changed:
            if type(array) is ConcreteTracedArray:
                array.is_promoted(given)
        if any_staged(given):
            if function not in STAGED:
                raise unknown(function)
            return STAGED[function](*args, **kwargs)
        found = super().__array_function__(function, types, args, kwargs)
        if type(found) in (list, tuple):
            return type(found)(map(_seen, found))
        found = _seen(found)
        is_view = (
            isinstance(found, ConcreteTracedArray) and found is not self and found.base is not None
        )
        if is_view and found._derive is None and args and args[0] is self and function in STAGED:
            found._parent = self
            found._derive = lambda array: function(array, *args[1:], **kwargs)
        return found


def _plain(x: Any) -> Any:
    return np.ndarray.view(x, np.ndarray) if isinstance(x, ConcreteTracedArray) else x


def _run(ufunc: Any, method: str, inputs: Any, options: dict[str, Any]) -> Any:
    found = read_all(inputs)
    if any_staged(found):
        return ufunc_methods.run(ufunc, method, *found, **options)
    return getattr(ufunc, method)(*map(_plain, found), **options)


def _view(name: str) -> Any:
    """A method that may give a view."""
    method = getattr(np.ndarray, name)

    def run(self: ConcreteTracedArray, *args: Any, **kwargs: Any) -> Any:
        if any_staged((*args, *kwargs.values())):
            self.promote()
            return getattr(self, name)(*args, **kwargs)
        found = method(self, *args, **kwargs)
        if isinstance(found, ConcreteTracedArray) and found is not self and found.base is not None:
            found._parent = self
            found._derive = lambda array: getattr(array, name)(*args, **kwargs)
        return found

    return run


def _changing(name: str) -> Any:
    """A method that changes the array."""
    method = getattr(np.ndarray, name)

    def run(self: ConcreteTracedArray, *args: Any, **kwargs: Any) -> Any:
        run = getattr(self, name) if self.is_promoted(args) else functools.partial(method, self)
        return run(*args, **kwargs)

    return run


for _name in ("reshape", "transpose", "swapaxes", "squeeze", "ravel", "diagonal"):
    setattr(ConcreteTracedArray, _name, _view(_name))
for _name in CHANGING_METHODS:
    setattr(ConcreteTracedArray, _name, _changing(_name))


class PromotedArray(Staged, ConcreteTracedArray):
    """An array made in a trace that has become traced."""

    weak = False
    __hash__ = None  # type: ignore[assignment]  # as arrays: == is elementwise

    def read(self) -> Any:
        root = self.root()
        if self is root:
            return root._ref
        parent = self._known_parent()
        if not isinstance(parent, PromotedArray):
            raise AliasError(
                explain(
                    "a view that NumPy made of an array that has become traced is used"
                    f"{at(user_source())}.",
                    cure="take the part by x[…], x.T or x.reshape, or take a .copy() of it.",
                )
            )
        return self._seen_in(parent.read())

    def leaked(self) -> Exception:
        ref = self.root()._ref
        assert ref is not None
        return ref.leaked()

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_") or name in _OWN:
            return object.__getattribute__(self, name)
        return getattr(self.read(), name)

    @property
    def type(self) -> TensorType:  # type: ignore[override]
        plain = _plain(self)
        return TensorType(plain.dtype, plain.shape)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.read()[key] = value

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return call_function(function, args, kwargs)


_OWN = frozenset(
    {
        *("read", "leaked", "type", "weak", "root", "become", "promote", "depends", "note_read"),
        *("rollback", "identity"),
    }
)


def _of_ref(name: str) -> Any:
    return lambda self, *args, **kwargs: getattr(self.read(), name)(*args, **kwargs)


for _name in (
    *("__getitem__", "__len__", "__iter__", "__contains__", "__bool__", "__int__", "__float__"),
    *("__complex__", "__index__", "__repr__", "__copy__", "__deepcopy__"),
):
    setattr(PromotedArray, _name, _of_ref(_name))


def known(found: Any) -> Any:
    """What a call gave, as an array that can become traced, if it is one that it has made."""
    recording: Any = recorder.get()
    if type(found) is not np.ndarray or recording is None or recording.runs_now():
        return found
    is_own = sys.getrefcount(found) <= _SOLE
    found = _seen(found)
    if type(found) is not np.ndarray or not is_own or not _has_memory_alone(found):
        return found
    can_change = found.ndim and found.flags.writeable and is_supported(found.dtype)
    return adopt(found) if can_change else found


def _seen(found: Any) -> Any:
    """What a call gave, which tells if it looks at an array that can become traced: it can, too."""
    if type(found) is not np.ndarray or not found.ndim or not is_supported(found.dtype):
        return found
    root = _root_of(found)
    if root is None:
        return found
    return root if _is_same_place(root, found) else found.view(ConcreteTracedArray)


def _root_of(array: np.ndarray) -> ConcreteTracedArray | None:
    """The array that can become traced whose memory another one shares, if there is one."""
    found = array if isinstance(array, ConcreteTracedArray) else None
    base: Any = np.ndarray.base.__get__(array)
    while base is not None:
        if isinstance(base, ConcreteTracedArray):
            found = base
        elif isinstance(base, np.ndarray):
            found = _KNOWN.get(id(base), found)
        is_array = isinstance(base, np.ndarray)
        base = np.ndarray.base.__get__(base) if is_array else _held_by(base)
    return found


def _held_by(base: Any) -> Any:
    """What stands behind memory that no array gives: a buffer's, or a stride trick's."""
    return base.obj if isinstance(base, memoryview) else getattr(base, "base", None)


# By the array that has the memory, to which NumPy's plain views lead directly.
_KNOWN: WeakValueDictionary[int, ConcreteTracedArray] = WeakValueDictionary()


def _fresh(found: Any) -> Any:
    is_array = type(found) is np.ndarray and found.ndim and is_supported(found.dtype)
    return adopt(found) if is_array else found


def adopt(array: np.ndarray) -> ConcreteTracedArray:
    """An array that nobody else holds, as one that can become traced."""
    known = array.view(ConcreteTracedArray)
    _KNOWN[id(array if array.base is None else array.base)] = known
    return known


def _is_same_place(a: np.ndarray, b: np.ndarray) -> bool:
    mine, theirs = (np.ndarray.view(x, np.ndarray).__array_interface__ for x in (a, b))
    return mine == theirs and a.strides == b.strides


def ref_of(array: Any) -> Tracer | None:
    """The traced array that holds the elements of a traced array or of a part of one."""
    if isinstance(array, PromotedArray):
        return array.root()._ref
    return array.whole() if isinstance(array, Tracer) else None


def made_elsewhere(array: Any) -> TypeMismatchError:
    """The error where an array of outside would change when the function runs."""
    kind = TensorType(_plain(array).dtype, _plain(array).shape)
    return TypeMismatchError(
        explain(
            f"an array that Python knows, {kind}, is changed{at(user_source())} by what only the "
            "run knows, and it is held elsewhere, or was made outside the function.",
            cure="pass it as an argument, or change a copy: x = x.copy() before.",
        )
    )


def _references(found: Any) -> int:
    return sys.getrefcount(found)


# What a function sees of an array that it is given, and that nobody else holds.
_SOLE = _references(np.zeros(1))


def _has_memory_alone(found: np.ndarray) -> bool:
    """Whether nobody else holds the array that has its memory, if that is another one."""
    is_sole = _holders_of_base(found) <= _ALONE
    return found.base is None or (isinstance(found.base, np.ndarray) and is_sole)


def _holders_of_base(array: np.ndarray) -> int:
    return sys.getrefcount(array.base)


_ALONE = _holders_of_base(np.zeros(2)[:1])
