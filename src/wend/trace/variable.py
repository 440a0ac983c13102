"""`Variable`: an array with a name and a place, that programs assign to."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from wend.base.errors import LeakedValueError, TypeMismatchError, explain
from wend.eager.dispatch import Staged, read, recorder
from wend.eager.promotion import as_array, cast, is_weak, tensor_type
from wend.ir.dtypes import is_supported
from wend.ir.types import TensorType, accepts
from wend.numpy import elementwise as ew
from wend.trace.reading import call_function, call_ufunc

_numbers = itertools.count()


def _binary(function: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """An operator and its reflection, on what the variable holds."""

    def forward(self: Variable, other: Any) -> Any:
        return function(self.read(), read(other))

    def reflected(self: Variable, other: Any) -> Any:
        return function(read(other), self.read())

    return forward, reflected


def _of_value(function: Callable[[Any], Any]) -> Any:
    return lambda self: function(self.read())


def _refused(self: Any, other: Any) -> Any:
    raise TypeError(
        explain(
            f"{self!r} cannot be changed by an operator in place.",
            cure="write v.assign_add(x), v.assign_sub(x) or v.assign(v * x); y = v + x makes an "
            "array.",
        )
    )


class Variable(Staged):
    """An array that keeps its dtype and shape, and changes by assignment.

    In operations it is the array that it holds. A `wend.function` that uses one reads it at
    each call, so a new value does not trace again; what it assigns is visible after the call. A
    call that fails assigns nothing.

    Args:
        initial: an array, a number, or a list of numbers.
        name: a name for messages.
        trainable: whether tapes watch it by themselves.

    Raises:
        TypeMismatchError: `initial` is no array of numbers; or a `wend.function` that is being
            traced makes the variable.

    Example:
        >>> import wend
        >>> v = wend.Variable(3.0)
        >>> v.assign_add(1.0)
        <Variable: f64[], 4.0>
        >>> with wend.GradientTape() as tape:
        ...     y = v * v
        >>> tape.gradient(y, v)
        np.float64(8.0)
    """

    __slots__ = ("__weakref__", "_array", "name", "trainable", "version")
    __hash__ = None  # type: ignore[assignment]  # as arrays: == is elementwise
    __array_priority__ = 1000
    weak = False

    def __init__(self, initial: Any, name: str | None = None, trainable: bool = True) -> None:
        recording: Any = recorder.get()
        if recording is not None and not recording.runs_now():
            which = f"Variable {name!r}" if name else "a Variable"
            raise TypeMismatchError(
                explain(
                    f"{which} is made in {recording.role}, which is being traced.",
                    cure="make it outside, once, and use it in the function.",
                )
            )
        array = initial.read() if isinstance(initial, Staged) else initial
        array = np.array(getattr(array, "concrete", array))
        if not is_supported(array.dtype):
            raise TypeMismatchError(f"a Variable holds numbers or bools, not {array.dtype}")
        self.name = name
        self.trainable = trainable
        self.version = next(_numbers)
        self.store(array)

    def __repr__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        array = np.asarray(self._array)
        is_one = not array.ndim
        shown = str(array[()]) if is_one else np.array2string(array, separator=", ", threshold=16)
        return f"<Variable{name}: {self.type}, {shown}>"

    # What it holds
    @property
    def concrete(self) -> Any:
        """The array that it holds now, read-only; inside traced functions use `value`."""
        return self._array

    def store(self, array: Any) -> None:
        """Hold a copy of an array; for recordings, which have checked it."""
        copy = np.array(array)
        copy.flags.writeable = False
        self._array = copy[()] if not copy.ndim else copy
        self.version = next(_numbers)

    def read(self) -> Any:
        recording: Any = recorder.get()
        return self._array if recording is None else recording.read_variable(self)

    @property
    def value(self) -> Any:
        """The array that it holds here and now. Not to be written to: assign to the variable."""
        return self.read()

    @property
    def type(self) -> TensorType:  # type: ignore[override]
        return TensorType(self._array.dtype, self._array.shape)

    @property
    def dtype(self) -> np.dtype:
        dtype: np.dtype = self._array.dtype
        return dtype

    @property
    def shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = self._array.shape
        return shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def leaked(self) -> Exception:
        return LeakedValueError(f"{self!r} cannot be used here")

    # Assignment
    def assign(self, value: Any) -> Variable:
        """Hold another array of the same dtype and shape; numbers of Python are cast.

        Returns:
            The variable.

        Raises:
            TypeMismatchError: it has another dtype or shape; the message names the variable.
        """
        value = self._fitted(value)
        recording: Any = recorder.get()
        if recording is None:
            self.store(value)
        else:
            recording.assign_variable(self, value)
        return self

    def assign_add(self, value: Any) -> Variable:
        """Hold the sum of what it holds and `value`."""
        return self.assign(ew.add(self.read(), value))

    def assign_sub(self, value: Any) -> Variable:
        """Hold the difference of what it holds and `value`."""
        return self.assign(ew.subtract(self.read(), value))

    def _fitted(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            value = np.asarray(value, self.dtype)
        value = as_array(value)
        found = tensor_type(value)
        if is_weak(value) and np.can_cast(found.dtype, self.dtype, "same_kind"):
            value = cast(value, self.dtype)
            found = tensor_type(value)
        if found.dtype != self.dtype or not accepts(self.type, found):
            name = f"Variable {self.name!r}" if self.name else "a Variable"
            raise TypeMismatchError(
                explain(
                    f"{name} holds {self.type}; {found} is assigned to it.",
                    cure="cast it with .astype, or reshape it; a variable keeps its dtype and "
                    "shape.",
                )
            )
        return value

    # NumPy's protocols and Python's: those of what it holds
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return call_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return call_function(function, args, kwargs)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.read(), dtype) if recorder.get() is None else np.asarray(self.read())

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        import wend.numpy

        return wend.numpy

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"a Variable has no {name!r}")
        return getattr(self.read(), name)

    def __getitem__(self, key: Any) -> Any:
        return self.read()[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        raise TypeError(
            explain(
                "a Variable cannot be changed in place.",
                cure="assign to it: x = v.value.copy(); x[key] = …; v.assign(x).",
            )
        )

    # Operators: those of what it holds
    __add__, __radd__ = _binary(operator.add)
    __sub__, __rsub__ = _binary(operator.sub)
    __mul__, __rmul__ = _binary(operator.mul)
    __truediv__, __rtruediv__ = _binary(operator.truediv)
    __floordiv__, __rfloordiv__ = _binary(operator.floordiv)
    __mod__, __rmod__ = _binary(operator.mod)
    __pow__, __rpow__ = _binary(operator.pow)
    __matmul__, __rmatmul__ = _binary(operator.matmul)
    __and__, __rand__ = _binary(operator.and_)
    __or__, __ror__ = _binary(operator.or_)
    __xor__, __rxor__ = _binary(operator.xor)
    __lshift__, __rlshift__ = _binary(operator.lshift)
    __rshift__, __rrshift__ = _binary(operator.rshift)
    __lt__, _ = _binary(operator.lt)
    __le__, _ = _binary(operator.le)
    __gt__, _ = _binary(operator.gt)
    __ge__, _ = _binary(operator.ge)
    __eq__, _ = _binary(operator.eq)
    __ne__, _ = _binary(operator.ne)
    __neg__ = _of_value(operator.neg)
    __pos__ = _of_value(operator.pos)
    __abs__ = _of_value(operator.abs)
    __invert__ = _of_value(operator.invert)
    __bool__ = _of_value(bool)
    __int__ = _of_value(int)
    __float__ = _of_value(float)
    __complex__ = _of_value(complex)
    __index__ = _of_value(operator.index)
    __len__ = _of_value(len)
    __iter__ = _of_value(iter)
    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ifloordiv__ = __imod__ = __ipow__ = _refused
    __imatmul__ = __iand__ = __ior__ = __ixor__ = __ilshift__ = __irshift__ = _refused

    def __format__(self, form: str) -> str:
        return format(self.read(), form) if form else repr(self)
