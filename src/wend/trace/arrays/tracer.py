"""Traced arrays, which stand for a function's arrays while it is recorded."""

from __future__ import annotations

import abc
import builtins
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from wend.base import refusals
from wend.base.errors import ConcreteValueError, LeakedValueError, explain
from wend.base.source import at, is_users_file, user_frame, user_source
from wend.eager.dispatch import Recorder, recorder
from wend.ir.dtypes import SHORT_NAMES
from wend.ir.graph import Value
from wend.ir.types import TensorType
from wend.numpy import (
    changing,
    indexing,
    parts,
    rearranging,
    reducing,
    shaping,
    ufunc_methods,
    updating,
)
from wend.numpy import elementwise as ew
from wend.numpy.public import STAGED
from wend.numpy.ufuncs import has_own_ufuncs
from wend.numpy.unknown import unknown
from wend.ops import shaping as shaping_ops
from wend.trace.arrays.attributes import (
    KEPT_BY_NUMBERS,
    attribute_of,
    class_name,
    class_of,
    example_of_value,
    not_iterable,
    unsized,
)
from wend.trace.arrays.decided_integers import decided_integer, marked
from wend.trace.arrays.in_place_methods import InPlaceMethods, dtype_error
from wend.trace.arrays.methods import Methods
from wend.trace.arrays.operators import Operators, is_changeable, overrides_ufuncs
from wend.trace.arrays.provenance import static_advice, with_sources
from wend.trace.arrays.shown_text import ShownField, ShownText, text_conversion
from wend.trace.arrays.view_transforms import ViewTransform

_ABSTRACT_CHECK = abc.ABCMeta.__instancecheck__.__code__

_CAST = (
    "leave it as it is, or cast it by .astype({}); functions that take only Python numbers have "
    "counterparts in wend.numpy."
)


class Tracer(Operators, Methods, InPlaceMethods):
    """An array of a function that is being recorded: it has a shape and a dtype, but no elements.

    It works with NumPy's functions, operators and indexing; each adds a node to the graph.
    """

    __slots__ = ("__weakref__", "_zero_dim", "recording", "value", "weak")
    __array_priority__ = 1000

    def __new__(
        cls, value: Value, recording: Recorder, *, weak: bool = False, zero_dim: bool | None = False
    ) -> Any:
        if cls is not Tracer:
            return super().__new__(cls)
        if weak and isinstance(value.type, TensorType):
            return super().__new__(_NUMBERS[value.type.dtype.kind])
        return super().__new__(TracedArray)

    def __init__(
        self,
        value: Value,
        recording: Recorder,
        *,
        weak: bool = False,
        zero_dim: bool | None = False,
    ) -> None:
        self.value = value
        self.recording = recording
        self.weak = weak
        self.zero_dim = zero_dim
        self._start_unlinked()

    def as_weak(self) -> Tracer:
        return self._again(weak=True)

    def as_zero_dim(self) -> Tracer:
        return self._again(zero_dim=True)

    def _again(self, **kind: bool) -> Tracer:
        """Return the same value as another kind of number, or as a 0-d array (D47)."""
        is_own = isinstance(self, (TracedNumber, TracedArray, TracedScalar))
        cls = Tracer if is_own else type(self)
        array: Tracer = cls(self.value, self.recording, weak=kind.get("weak", False))
        array.zero_dim = kind.get("zero_dim", False)
        return array

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the number or array that this stands for, or refuse it by name."""
        return attribute_of(self, name)

    @property
    def zero_dim(self) -> bool | None:
        """Whether a value without axes is an array; None: only the run knows."""
        return self._zero_dim

    @zero_dim.setter
    def zero_dim(self, zero_dim: bool | None) -> None:
        self._zero_dim = zero_dim
        if issubclass(builtins.type(self), (TracedArray, TracedScalar)):
            cls: Any = TracedArray
            type = self.value.type
            if isinstance(type, TensorType) and type.shape == () and zero_dim is False:
                cls = _SCALARS[type.dtype]
            _set_class(self, cls)

    @property
    def type(self) -> TensorType:  # type: ignore[override]
        assert isinstance(self.value.type, TensorType)
        return self.value.type

    @property  # type: ignore[misc]  # of `isinstance`
    def __class__(self) -> Any:
        """The class of what this stands for, in code of the user's that runs as plain Python."""
        caller = sys._getframe(1)
        if caller.f_code is _ABSTRACT_CHECK and caller.f_back is not None:
            caller = caller.f_back
        return class_of(self) if is_users_file(caller.f_code.co_filename) else builtins.type(self)

    def __repr__(self) -> str:
        return self._shown(None if self.weak else "r")

    def __str__(self) -> str:
        return self._shown(text_conversion(self))

    def _shown(self, conversion: str | None, spec: str = "") -> str:
        """Return a text that the run writes, by its mark; outside of traces a plain one."""
        is_number = self.weak and self.type.dtype.kind != "b"
        weak = " (weak)" if is_number else ""
        text = f"<traced {self.value.type}{weak}{self._origin_text()}>"
        if recorder.get() is None:
            return text
        return ShownText.of_field(ShownField(self, conversion, spec, text), self.recording)

    def _origin_text(self) -> str:
        node = self.value.node
        if node is None:
            return f", {self.value.name}" if self.value.name else ""
        return f", {node.op.name}{at(node.source)}"

    # Operations that need concrete elements
    def leaked(self) -> LeakedValueError:
        scope: Any = recorder.get()
        used = "" if scope is None or scope.runs_now() else f", and used in {scope.role}"
        cure = "return it from the function, loop body or branch that computes it."
        trace_refusals = self.recording.refusals
        if refusals.noted() is None and getattr(self.recording, "is_open", False):
            used = ", and used in another thread"
            cure = "compute in the thread that calls the function."
        error = LeakedValueError(
            explain(
                f"{self!r} was used outside the trace that made it.",
                f"it was made in {self.recording.role}{used}",
                cure=cure,
            )
        )
        if refusals.noted() is None and trace_refusals is not None:
            trace_refusals.append(error)
        return error

    def is_reachable(self) -> bool:
        """Return whether the innermost recording may use it."""
        scope: Any = recorder.get()
        return scope is not None and bool(scope.can_lift(self))

    def _concrete_error(self, request: str, cure: str, reason: str | None = None) -> Exception:
        if not self.is_reachable():
            return self.leaked()
        summary = (
            f"{request} of {self!r} is needed{at(user_source())}, "
            "but its value is not known while the function is traced."
        )
        advice = self._static_advice()
        if advice is not None:
            cure = f"{cure.removesuffix('.')}; or {advice}."
        error = ConcreteValueError(explain(summary, reason, cure=cure))
        frame = user_frame()
        error.summary, error.code = summary, frame and frame.f_code
        return with_sources(error, self)

    def _static_advice(self) -> str | None:
        """Return advice that would make the number known to Python, or None."""
        return static_advice(self.value, self.recording)

    def _known(self) -> np.ndarray | None:
        """Return the elements if they depend on outside arrays and constants alone, else None."""
        scope = recorder.get()
        return None if scope is None else scope.known_elements(self)

    def __bool__(self) -> bool:
        if (known := self._known()) is not None:
            return bool(known)
        raise self._concrete_error(
            "the truth value",
            "let wend capture the code that asks (it leaves libraries, wend.do_not_capture and "
            "code without source text alone); or use wend.cond for a branch, wend.while_loop for "
            "a loop, wnp.where for a choice element by element.",
        )

    def __float__(self) -> float:
        if (known := self._known()) is not None:
            return float(known)
        raise self._concrete_error("float()", _CAST.format("float"))

    def __complex__(self) -> complex:
        if (known := self._known()) is not None:
            return complex(known)
        raise self._concrete_error("complex()", _CAST.format("complex"))

    def __format__(self, spec: str) -> str:
        if spec and self.type.shape != ():
            raise TypeError("unsupported format string passed to numpy.ndarray.__format__")
        return self._shown(None, spec)

    def __int__(self) -> int:
        if (known := self._known()) is not None:
            return int(known)
        if (value := decided_integer(self)) is not None:
            return value
        raise marked(self._concrete_error("int()", _CAST.format("int")), self)

    def __index__(self) -> int:
        if (known := self._known()) is not None:
            return operator.index(known.item() if self.weak else known[()])
        if (value := decided_integer(self)) is not None:
            return value
        error = self._concrete_error(
            "the integer",
            "read arrays and lists by wnp.take(values, i), use wend.fori_loop instead of range.",
        )
        raise marked(error, self)

    def __hash__(self) -> int:
        if getattr(self.value.type, "shape", None) != ():
            raise TypeError("unhashable type: 'numpy.ndarray'")
        if (known := self._known()) is not None:
            return hash(known[()])
        raise self._concrete_error(
            "the hash",
            "look things up by concrete keys; put numbers in an array, and read it by "
            "wnp.take(values, i).",
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if (known := self._known()) is not None:
            return np.array(known, dtype)
        if (value := decided_integer(self)) is not None:
            return np.array(value, dtype or self.type.dtype)
        error = self._concrete_error(
            "a NumPy array",
            "use functions of wend.numpy, which take traced arrays as well; what it does not have, "
            "compute in wend.py_function(…).",
        )
        raise marked(error, self)

    # Changes in place (D7)
    def __setitem__(self, key: Any, value: Any) -> None:
        if not is_changeable(self):
            raise TypeError(f"{class_name(self)!r} object does not support item assignment")
        self.check_writeable()
        updating.check_rank(self, key, value)
        if not self._is_updated_part(key, value):
            self.replace(updating.set_at(self, key, value))

    def __delitem__(self, key: Any) -> None:
        if is_changeable(self):
            raise ValueError("cannot delete array elements")
        raise TypeError(f"{class_name(self)!r} object does not support item deletion")

    def _is_updated_part(self, key: Any, value: Any) -> bool:
        """Return whether `value` is `self[key]` after an in-place change, as in `x[key] += v`."""
        if not isinstance(value, Tracer) or value._part is None or value._stale_since is not None:
            return False
        whole, part_key = value._part
        is_current = value.recording is recorder.get()
        return whole is self and is_current and parts.same_key(key, part_key)

    @property
    def at(self) -> updating.At:
        """Updates that return a new array: `x.at[key].set(v)`, `.add`, `.mul`, `.min`, `.max`."""
        return updating.At(self)

    # NumPy's protocols
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if any(map(has_own_ufuncs, inputs)) or any(map(overrides_ufuncs, options.get("out") or ())):
            return NotImplemented  # the type of the other decides
        return ufunc_methods.run(ufunc, method, *inputs, **options)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        staged = STAGED.get(function)
        if staged is None:
            raise unknown(function)
        return staged(*args, **kwargs)

    @property
    def device(self) -> str:
        return "cpu"

    def to_device(self, device: str, /, *, stream: None = None) -> Any:
        """Return the array itself, since there is only one device.

        Raises:
            ValueError: it is another device, or a stream is given.
        """
        if device != "cpu" or stream is not None:
            raise ValueError(f"arrays are on the device 'cpu', not on {device!r}")
        return self

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **options: Any) -> Any:
        raise self._concrete_error(
            "the memory", "use functions of wend.numpy, which take traced arrays as well."
        )

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        import wend.numpy

        return wend.numpy

    # Shape and dtype
    @property
    def dtype(self) -> np.dtype:
        return self.type.dtype

    @dtype.setter
    def dtype(self, dtype: Any) -> None:
        raise dtype_error(self)

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes; those not known before the run are traced integers."""
        return shaping.shape(self)

    @shape.setter
    def shape(self, shape: Any) -> None:
        self.set_shape(shape)

    @property
    def ndim(self) -> int:
        return shaping.rank_of(self)

    @property
    def size(self) -> Any:
        return shaping.size(self)

    @property
    def T(self) -> Any:  # noqa: N802 - its name in NumPy
        return self.view_as(shaping.transpose(self))

    @property
    def flat(self) -> Any:
        """The array as a vector in C order; a write to it changes the array."""
        vector = self.reshape(-1)
        if vector is not self and self.type.rank is not None and vector._part is None:
            shape = vector.type.shape if self.type.is_static else (-1,)
            vector.link_part(self, ViewTransform(shaping_ops.reshape, {"shape": shape}))
        vector.writeable = self.writeable
        return vector

    @flat.setter
    def flat(self, values: Any) -> None:
        if self.type.is_static:
            self[...] = rearranging.resize(values, self.shape)
        else:
            self[...] = changing.cycled(values, self)

    @property
    def mT(self) -> Any:  # noqa: N802 - its name in NumPy
        return shaping.matrix_transpose(self)

    @property
    def real(self) -> Any:
        return self.view_as(ew.real(self))

    @real.setter
    def real(self, value: Any) -> None:
        if self.dtype.kind == "c":
            self.real[...] = value
        else:
            self[...] = value

    @property
    def imag(self) -> Any:
        """The imaginary part; that of a real array is read-only."""
        if self.dtype.kind == "c" or not is_changeable(self):
            return self.view_as(ew.imag(self))
        scope: Any = recorder.get()
        zeros = self._array_as(scope.wrap(scope.lift(ew.imag(self))))
        zeros.writeable = False
        return zeros

    @imag.setter
    def imag(self, value: Any) -> None:
        if self.dtype.kind == "c":
            self.imag[...] = value
            return
        raise TypeError("array does not have imaginary part to set")

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> Any:
        return self.size * self.itemsize

    def __len__(self) -> int:
        if self.type.shape == ():
            raise TypeError(unsized(self))
        return operator.index(self.shape[0])

    def __iter__(self) -> Iterator[Any]:
        if self.type.shape == ():
            advice = self._static_advice()
            cure = advice and f"if a number is needed here, {advice}."
            error = TypeError(not_iterable(self))  # the text is Python's: a handler may print it
            error.add_note(explain(f"it is {self!r}", cure=cure))
            raise error
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        part = indexing.getitem(self, key)
        if part.type.shape == ():
            return self._number_at(key, part)
        if parts.is_basic(key):
            part = _another(self) if part is self else part
            part.link_part(self, key)
        return part

    def _number_at(self, key: Any, part: Any) -> Any:
        """Return an element: a scalar, or by `x[0, ...]` a view that is a 0-d array."""
        if key is Ellipsis or (isinstance(key, tuple) and any(k is Ellipsis for k in key)):
            part = part.as_zero_dim()
            if self.ndim or self.zero_dim:
                part.link_part(self, key)
        elif part is self and self.zero_dim is not False:
            part = self.copy()
            part.zero_dim = False
        return part

    def __contains__(self, item: Any) -> Any:
        return bool(reducing.any(ew.equal(self, item)))


def _another(array: Tracer) -> Tracer:
    """Return another object for an array, as `x[:]` is."""
    recording: Any = recorder.get()
    if recording is None:
        raise array.leaked()
    other: Tracer = recording.wrap(recording.lift(array))
    return other


# All are direct subclasses of `Tracer`, so that no one's comparisons go first. Python's messages
# name a class as it is called.
class TracedArray(Tracer):
    """A traced array."""

    __slots__ = ()


TracedArray.__name__ = "numpy.ndarray"


class TracedScalar(Tracer):
    """A traced scalar of NumPy; each dtype has a class of its own."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        try:
            return super().__getitem__(key)
        except (IndexError, TypeError) as error:
            if refusals.is_refusal(error):
                raise
            raise IndexError("invalid index to scalar variable.") from None

    def __matmul__(self, other: Any) -> Any:
        return NotImplemented

    __rmatmul__ = __imatmul__ = __matmul__


_set_class = vars(object)["__class__"].__set__


_SCALARS: dict[np.dtype, type[TracedScalar]] = {
    dtype: type(f"numpy.{dtype.type.__name__}", (TracedScalar,), {"__slots__": ()})
    for dtype in SHORT_NAMES
}


def _set_on_example(name: str) -> Callable[[Any, Any], None]:
    """Return the setter of an attribute that cannot be set: it raises Python's error."""

    def set(x: Any, value: Any) -> None:
        setattr(example_of_value(x), name, value)

    return set


class _Missing:
    """An attribute that arrays have and Python's numbers do not."""

    def __init__(self, name: str) -> None:
        self.set = _set_on_example(name)

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        raise AttributeError

    def __set__(self, owner: Any, value: Any) -> None:
        self.set(owner, value)


for _name, _attribute in vars(Tracer).items():
    is_shown = isinstance(_attribute, property) and not _name.startswith("_")
    if is_shown and hasattr(np.generic, _name):
        setattr(TracedScalar, _name, property(_attribute.fget, _set_on_example(_name)))
        if _attribute.fset is None:
            setattr(TracedArray, _name, property(_attribute.fget, _set_on_example(_name)))


class TracedNumber(Tracer):
    """A Python number of a function that is being recorded; it has a number's attributes (D47)."""

    __slots__ = ()

    def __len__(self) -> int:
        raise TypeError(unsized(self))

    def __getitem__(self, key: Any) -> Any:
        raise TypeError(f"{class_name(self)!r} object is not subscriptable")

    def __contains__(self, item: Any) -> Any:
        raise TypeError(f"argument of type {class_name(self)!r} is not iterable")

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self


for _name, _method in (vars(Methods) | vars(InPlaceMethods)).items():
    if hasattr(_method, "__qualname__"):
        _method.__qualname__ = _name  # which the error for wrong arguments names
for _name in {*vars(Tracer), *vars(Methods), *vars(InPlaceMethods)} - KEPT_BY_NUMBERS:
    if not _name.startswith("_") or _name in {"__array_namespace__", "__dlpack__"}:
        setattr(TracedNumber, _name, _Missing(_name))


def _unsupported(x: Any, other: Any) -> Any:
    return NotImplemented


_OPERATORS = {
    f"__{prefix}{name}__": _unsupported
    for name in ("matmul", "lshift", "rshift", "and", "or", "xor")
    for prefix in ("", "r")
}
_MATMUL = {name: _unsupported for name in _OPERATORS if "matmul" in name}

# By kind of dtype
_NUMBERS: dict[str, type[TracedNumber]] = {
    "b": type("bool", (TracedNumber,), {"__slots__": (), **_MATMUL}),
    "i": type("int", (TracedNumber,), {"__slots__": (), **_MATMUL}),
    "u": type("int", (TracedNumber,), {"__slots__": (), **_MATMUL}),
    "f": type("float", (TracedNumber,), {"__slots__": (), **_OPERATORS}),
    "c": type("complex", (TracedNumber,), {"__slots__": (), **_OPERATORS}),
}
