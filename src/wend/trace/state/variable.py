"""`Variable`: an array with a name and storage, to which programs assign."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

import numpy as np

from wend.base.context_values import scoped
from wend.base.errors import LeakedValueError, TypeMismatchError, VariableError, explain
from wend.base.source import Source, at, user_source
from wend.eager.dispatch import Staged, read, recorder
from wend.eager.promotion import as_array, cast, is_weak, tensor_type
from wend.ir.dtypes import is_supported
from wend.ir.types import TensorType, accepts
from wend.numpy import elementwise as ew
from wend.runtime.storage import PassedStorage, Storage, StorageOwner
from wend.trace.arrays.resolve import call_function, call_ufunc
from wend.trace.arrays.shown_text import ShownField, ShownText
from wend.trace.state.creation import create

_versions = itertools.count()


def _binary(function: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """Return an operator and its reflection, on the variable's value."""

    def forward(self: Variable, other: Any) -> Any:
        return function(self.read(), read(other))

    def reflected(self: Variable, other: Any) -> Any:
        return function(read(other), self.read())

    return forward, reflected


def _of_value(function: Callable[[Any], Any]) -> Any:
    return lambda self: function(self.read())


def _described(name: str | None, created_at: Source | None) -> str:
    return f"{f'Variable {name!r}' if name else 'a Variable'}, made{at(created_at)},"


def _gone_error(name: str | None, created_at: Source | None) -> Exception:
    return VariableError(
        explain(
            f"{_described(name, created_at)} is gone: a trace uses it, but nothing holds a "
            "reference to it any more.",
            cure="keep a reference to it as long as the function that uses it: in an attribute, "
            "a list or a name.",
        )
    )


def _refused(self: Any, other: Any) -> Any:
    raise TypeError(
        explain(
            f"{self!r} cannot be changed by an operator in place.",
            cure="write v.assign_add(x), v.assign_sub(x) or v.assign(v * x); y = v + x makes an "
            "array.",
        )
    )


class Variable(Staged, StorageOwner):
    """An array that keeps its dtype and shape, and changes by assignment.

    In operations it stands for its value. A `wend.function` that uses one reads it at each call, so
    a new value does not cause a retrace. Assignments take effect as the function runs: a call that
    fails keeps the assignments made before the failure, as in Python.

    A `wend.function` may create variables only at its first call, guarded by
    `if self.v is None: self.v = wend.Variable(…)`. Traces do not keep variables alive.

    Args:
        initial: an array, a number, or a list of numbers.
        name: a name for messages.
        trainable: whether tapes watch it automatically.

    Raises:
        TypeMismatchError: `initial` is no array of numbers.
        VariableError: a traced function creates the variable at each call, or at a later one.

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

    __slots__ = (
        "__weakref__",
        "_array",
        "_type",
        "created_at",
        "initial",
        "name",
        "storage",
        "trainable",
        "version",
    )
    __hash__ = None  # type: ignore[assignment]  # as arrays: == is elementwise
    __array_priority__ = 1000
    weak = False

    def __init__(self, initial: Any, name: str | None = None, trainable: bool = True) -> None:
        self.name = name
        self.trainable = trainable
        self.version = next(_versions)
        self.created_at: Source | None = user_source()
        self.storage = Storage(self, functools.partial(_gone_error, name, self.created_at))
        self.initial: Any = None  # in the trace that creates it: its traced initial value
        self._array: Any = None
        if create(self, initial):
            return
        array = initial.read() if isinstance(initial, Staged) else initial
        array = np.array(getattr(array, "concrete", array))
        if not is_supported(array.dtype):
            raise TypeMismatchError(f"a Variable holds numbers or bools, not {array.dtype}")
        self._type = TensorType(array.dtype, array.shape)
        self.store(array)

    @classmethod
    def placeholder(cls, type: TensorType, name: str | None) -> Variable:
        """Return the variable that stands for a variable argument in the trace of a function."""
        new = cls.__new__(cls)
        new.name, new.trainable, new.version = name, True, next(_versions)
        new.created_at, new.initial, new._array, new._type = None, None, None, type
        new.storage = PassedStorage(new, functools.partial(_gone_error, name, None))
        return new

    def __repr__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        return f"<Variable{name}: {self.type}, {self._contents_text()}>"

    def _contents_text(self) -> str:
        """Return the text of its value; while a function is recorded, one that the run writes."""
        if self._array is None:
            text = "no value yet"
        else:
            with np.printoptions(threshold=16):
                text = str(self._array)
        recording: Any = recorder.get()
        if recording is None or recording.runs_now():
            return text
        return ShownText.of_field(ShownField(self, None, "", text), recording)

    def __str__(self) -> str:
        return repr(self) if self._array is None else str(self.read())

    # Value
    @property
    def concrete(self) -> Any:
        """The current value, read-only; inside traced functions use `value`.

        Raises:
            VariableError: its initial value depends on a call that has not been made.
        """
        if self._array is None:
            raise VariableError(
                explain(
                    f"{_described(self.name, self.created_at)} has no value yet: its initial value "
                    "depends on the arguments of the first call.",
                    cure="call the function first, or let the initial value depend on no argument.",
                )
            )
        return self._array

    @property
    def is_initialized(self) -> bool:
        """Whether it has a value."""
        return self._array is not None

    def declare(self, type: TensorType) -> None:
        """Set its type before its value is known; for traces."""
        self._type = type

    def store(self, array: Any) -> None:
        """Store a copy of an array; for recordings, which have checked it."""
        copy = np.array(array)
        copy.flags.writeable = False
        self.hold(copy)

    def hold(self, array: Any) -> None:
        """Store an array by reference; for running graphs (see `Storage`)."""
        self._array = array if type(array) is not np.ndarray or array.ndim else array[()]
        self.version = next(_versions)

    def read(self) -> Any:
        recording: Any = recorder.get()
        return self.concrete if recording is None else recording.read_variable(self)

    @property
    def value(self) -> Any:
        """The value here and now. Do not write to it: assign to the variable."""
        return self.read()

    @property
    def type(self) -> TensorType:  # type: ignore[override]
        return self._type

    @property
    def dtype(self) -> np.dtype:
        return self._type.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self._type.dims  # type: ignore[return-value]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def leaked(self) -> Exception:
        return LeakedValueError(f"{self!r} cannot be used here")

    # Assignment
    def assign(self, value: Any) -> Variable:
        """Store another array of the same dtype and shape; Python numbers are cast.

        Returns:
            The variable.

        Raises:
            TypeMismatchError: it has another dtype or shape; the message names the variable.
        """
        value = self._coerce(value)
        recording: Any = recorder.get()
        if recording is None:
            self.store(value)
        else:
            recording.assign_variable(self, value)
        return self

    def assign_add(self, value: Any) -> Variable:
        """Add `value` to the variable.

        Raises:
            TypeMismatchError: the sum has another dtype or shape; the message names the variable.
        """
        return self.assign(self._updated(ew.add, value, "added to"))

    def assign_sub(self, value: Any) -> Variable:
        """Subtract `value` from the variable.

        Raises:
            TypeMismatchError: the difference has another dtype or shape; the message names the
                variable.
        """
        return self.assign(self._updated(ew.subtract, value, "subtracted from"))

    def _updated(self, function: Callable[[Any, Any], Any], value: Any, what: str) -> Any:
        if isinstance(value, (list, tuple)):
            value = np.asarray(value, self.dtype)
        value, current = as_array(value), self.read()
        try:
            result = function(current, value)
        except ValueError as error:  # the shapes do not broadcast
            raise self._type_error(tensor_type(value), what) from error
        result_type = tensor_type(result)
        if result_type.dtype != self.dtype or not accepts(self.type, result_type):
            raise self._type_error(tensor_type(value), what)
        return result

    def _coerce(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            value = np.asarray(value, self.dtype)
        value = as_array(value)
        type = tensor_type(value)
        if is_weak(value) and np.can_cast(type.dtype, self.dtype, "same_kind"):
            value = cast(value, self.dtype)
            type = tensor_type(value)
        if type.dtype != self.dtype or not accepts(self.type, type):
            raise self._type_error(type, "assigned to")
        return value

    def _type_error(self, type: TensorType, what: str) -> Exception:
        name = f"Variable {self.name!r}" if self.name else "a Variable"
        return TypeMismatchError(
            explain(
                f"{name} holds {self.type}; {type} is {what} it.",
                cure="cast it with .astype, or reshape it; a variable keeps its dtype and shape.",
            )
        )

    # NumPy's and Python's protocols, applied to the value
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

    # Operators, applied to the value
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
        return format(self.read(), form) if form else str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (np.asarray(self), self.name, self.trainable)


_bindings: ContextVar[Sequence[Any]] = ContextVar("wend_bindings", default=())


def mark_in_use(bindings: Sequence[Any]) -> AbstractContextManager[Any]:
    """Mark the bindings of a function with effects as in use while it runs."""
    return scoped(_bindings, (*_bindings.get(), *bindings))


def variables_in_use() -> list[Variable]:
    """Return the variables that running functions read or assign."""
    return [x for x in _bindings.get() if isinstance(x, Variable)]
