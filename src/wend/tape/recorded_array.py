"""`RecordedArray`: an array under a `GradientTape`, with known elements and recorded operations."""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np

from wend.base.errors import ConcreteValueError, explain
from wend.eager.dispatch import recorder
from wend.tape.recorded_value import RecordedValue
from wend.trace.arrays.resolve import are_read, call_function, call_ufunc
from wend.trace.arrays.tracer import Tracer


class RecordedArray(Tracer):
    """An array that tapes follow.

    Python may look at its elements to make decisions. Operations that would take them out of the
    recording are refused while a tape records, since gradients would silently stop there.

    Attributes:
        is_copy: whether it is a copy, which may be changed in place even if the original may not.
    """

    __slots__ = ("is_copy",)
    __hash__ = None  # type: ignore[assignment]  # as arrays: == is elementwise
    value: RecordedValue

    def __init__(self, value: Any, recording: Any, *, weak: bool = False) -> None:
        super().__init__(value, recording, weak=weak)
        self.is_copy = False

    @property
    def concrete(self) -> Any:
        """The elements; those of a part are read again if its array has changed."""
        array = self.current()
        return array.value.concrete if isinstance(array, RecordedArray) else array

    def is_followed(self) -> bool:
        """Return whether a tape that records here and now follows it."""
        owner: Any = self.recording
        value: Any = self.whole().value
        if not value.tapes & owner.active_tapes:
            return False
        scope: Any = recorder.get()
        while scope is not None and scope is not owner:
            scope = scope.parent
        return scope is owner

    def read(self) -> Any:
        return self if self.is_followed() else self.concrete

    # Looking at the elements
    def __repr__(self) -> str:
        return f"<recorded {self.value.type}: {self._elements_text()}>"

    def _elements_text(self) -> str:
        return np.array2string(np.asarray(self.concrete), separator=", ", threshold=16)

    def __str__(self) -> str:
        return str(self.concrete)

    def __format__(self, form: str) -> str:
        return format(self.concrete, form)

    def __bool__(self) -> bool:
        return bool(self.concrete)

    def __int__(self) -> int:
        return int(self.concrete)

    def __floor__(self) -> int:
        result: int = math.floor(self.concrete)
        return result

    def __ceil__(self) -> int:
        result: int = math.ceil(self.concrete)
        return result

    def __trunc__(self) -> int:
        result: int = math.trunc(self.concrete)
        return result

    def __index__(self) -> int:
        raise TypeError("only integers can be used as an index, not floats")

    # Taking the elements out
    def __float__(self) -> float:
        return float(self._extract("float()"))

    def __complex__(self) -> complex:
        return complex(self._extract("complex()"))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._extract("a NumPy array"), dtype)

    def item(self) -> Any:
        """Return the number, if no tape records it any more."""
        return self._extract(".item()").item()

    def tolist(self) -> Any:
        """Return the elements as lists, if no tape records them any more."""
        return self._extract(".tolist()").tolist()

    def _static_advice(self) -> None:
        """Return None: the elements are known here."""

    def _extract(self, request: str) -> Any:
        if self.is_followed():
            self._refuse(request)
        return self.concrete

    def _refuse(self, request: str) -> NoReturn:
        raise ConcreteValueError(
            explain(
                f"{request} of {self!r} would take it out of the recording, "
                "and its gradient would be lost.",
                cure="leave it as it is: it behaves like an array; use functions of wend.numpy "
                "in place of math's. To make it a constant: wend.stop_gradient(x).",
            )
        )

    # Methods of Tracer that use a recording
    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(key) if self.is_followed() else self.concrete[key]

    def copy(self, order: str = "C") -> Any:
        if recorder.get() is self.recording and self.is_followed():
            recording: Any = self.recording
            copied = RecordedArray(recording.lift(self), recording, weak=self.weak)
            copied.is_copy = True
            return copied
        return super().copy(order) if self.is_followed() else np.array(self.concrete)[()]

    def replace(self, new: Any) -> None:
        if not self.is_followed():
            raise TypeError(
                explain(
                    f"{self!r} cannot be changed in place: a tape recorded it.",
                    cure="change a copy of it: x = x.copy().",
                )
            )
        super().replace(new)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if are_read(inputs):
            return super().__array_ufunc__(ufunc, method, *inputs, **options)
        return call_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if are_read(args) and are_read([*kwargs.values()]):
            return super().__array_function__(function, types, args, kwargs)
        return call_function(function, args, kwargs)
