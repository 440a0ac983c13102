"""`Variable`: an array with a name and a place, that programs assign to."""

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
from wend.runtime.storage import PassedStorage, Storage
from wend.trace.arrays.resolve import call_function, call_ufunc
from wend.trace.state.creation import create

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


def _described(name: str | None, made: Source | None) -> str:
    return f"{f'Variable {name!r}' if name else 'a Variable'}, made{at(made)},"


def _gone(name: str | None, made: Source | None) -> Exception:
    return VariableError(
        explain(
            f"{_described(name, made)} is gone: a trace uses it, but nobody holds it any more.",
            cure="keep it as long as the function that uses it: in an attribute, a list or a name.",
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


class Variable(Staged):
    """An array that keeps its dtype and shape, and changes by assignment.

    In operations it is the array that it holds. A `wend.function` that uses one reads it at
    each call, so a new value does not trace again. What it assigns is assigned as it runs: a call
    that fails leaves the assignments that came before the failure, as Python does.

    A `wend.function` may make variables when it is first called, once: where it is guarded, by
    `if self.v is None: self.v = wend.Variable(…)`. Traces do not keep variables alive.

    Args:
        initial: an array, a number, or a list of numbers.
        name: a name for messages.
        trainable: whether tapes watch it by themselves.

    Raises:
        TypeMismatchError: `initial` is no array of numbers.
        VariableError: a function that is being traced makes the variable, and not once: at each
            call, or at a later one.

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
        "initial",
        "made",
        "name",
        "place",
        "trainable",
        "version",
    )
    __hash__ = None  # type: ignore[assignment]  # as arrays: == is elementwise
    __array_priority__ = 1000
    weak = False
    is_stream = False  # the state of a generator: initial values of variables advance it

    def __init__(self, initial: Any, name: str | None = None, trainable: bool = True) -> None:
        self.name = name
        self.trainable = trainable
        self.version = next(_numbers)
        self.made: Source | None = user_source()
        self.place = Storage(self, functools.partial(_gone, name, self.made))
        self.initial: Any = None  # in the trace that makes it: its first value, traced
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
    def passed(cls, type: TensorType, name: str | None) -> Variable:
        """What stands for a variable that is passed, in the trace of the function."""
        found = cls.__new__(cls)
        found.name, found.trainable, found.version = name, True, next(_numbers)
        found.made, found.initial, found._array, found._type = None, None, None, type
        found.place = PassedStorage(found, functools.partial(_gone, name, None))
        return found

    def __repr__(self) -> str:
        start, end = self.frame
        if self._array is None:
            return f"{start}no value yet{end}"
        with np.printoptions(threshold=16):
            return f"{start}{self._array}{end}"

    @property
    def frame(self) -> tuple[str, str]:
        """What its `repr` writes before and behind what it holds."""
        return f"<Variable{f' {self.name!r}' if self.name else ''}: {self.type}, ", ">"

    def __str__(self) -> str:
        return repr(self) if self._array is None else str(self.read())

    # What it holds
    @property
    def concrete(self) -> Any:
        """The array that it holds now, read-only; inside traced functions use `value`.

        Raises:
            VariableError: the call that its initial value depends on has not been made.
        """
        if self._array is None:
            raise VariableError(
                explain(
                    f"{_described(self.name, self.made)} has no value yet: its initial value "
                    "depends on the arguments of the first call.",
                    cure="call the function first, or let the initial value depend on no argument.",
                )
            )
        return self._array

    @property
    def is_initialised(self) -> bool:
        """Whether it holds a value."""
        return self._array is not None

    def declare(self, type: TensorType) -> None:
        """Say what it will hold, where that is known before its value; for traces."""
        self._type = type

    def store(self, array: Any) -> None:
        """Hold a copy of an array; for recordings, which have checked it."""
        copy = np.array(array)
        copy.flags.writeable = False
        self.hold(copy)

    def hold(self, array: Any) -> None:
        """Hold an array itself; for graphs that run (see `Storage`)."""
        self._array = array if type(array) is not np.ndarray or array.ndim else array[()]
        self.version = next(_numbers)

    def read(self) -> Any:
        recording: Any = recorder.get()
        return self.concrete if recording is None else recording.read_variable(self)

    @property
    def value(self) -> Any:
        """The array that it holds here and now. Not to be written to: assign to the variable."""
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
        """Hold the sum of what it holds and `value`.

        Raises:
            TypeMismatchError: the sum has another dtype or shape; the message names the variable.
        """
        return self.assign(self._changed(ew.add, value, "added to"))

    def assign_sub(self, value: Any) -> Variable:
        """Hold the difference of what it holds and `value`.

        Raises:
            TypeMismatchError: it has another dtype or shape; the message names the variable.
        """
        return self.assign(self._changed(ew.subtract, value, "subtracted from"))

    def _changed(self, function: Callable[[Any, Any], Any], value: Any, what: str) -> Any:
        if isinstance(value, (list, tuple)):
            value = np.asarray(value, self.dtype)
        value, held = as_array(value), self.read()
        try:
            found = function(held, value)
        except ValueError as error:  # the shapes do not go together
            raise self._unfit(tensor_type(value), what) from error
        given = tensor_type(found)
        if given.dtype != self.dtype or not accepts(self.type, given):
            raise self._unfit(tensor_type(value), what)
        return found

    def _fitted(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            value = np.asarray(value, self.dtype)
        value = as_array(value)
        found = tensor_type(value)
        if is_weak(value) and np.can_cast(found.dtype, self.dtype, "same_kind"):
            value = cast(value, self.dtype)
            found = tensor_type(value)
        if found.dtype != self.dtype or not accepts(self.type, found):
            raise self._unfit(found, "assigned to")
        return value

    def _unfit(self, found: TensorType, what: str) -> Exception:
        name = f"Variable {self.name!r}" if self.name else "a Variable"
        return TypeMismatchError(
            explain(
                f"{name} holds {self.type}; {found} is {what} it.",
                cure="cast it with .astype, or reshape it; a variable keeps its dtype and shape.",
            )
        )

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
        return format(self.read(), form) if form else str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (np.asarray(self), self.name, self.trainable)


_bindings: ContextVar[Sequence[Any]] = ContextVar("wend_bindings", default=())


def in_use(bindings: Sequence[Any]) -> AbstractContextManager[Any]:
    """Run a function that has effects and captures these."""
    return scoped(_bindings, (*_bindings.get(), *bindings))


def variables_in_use() -> list[Variable]:
    """The variables that running functions read or assign."""
    return [x for x in _bindings.get() if isinstance(x, Variable)]
