"""`Recorded`: an array under a `GradientTape`. It has numbers, and every operation is recorded."""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np

from wend.base.errors import ConcreteValueError, explain
from wend.eager.dispatch import recorder
from wend.tape.recorded_value import RecordedValue
from wend.trace.arrays.resolve import are_read, call_function, call_ufunc
from wend.trace.arrays.tracer import Tracer


class Recorded(Tracer):
    """An array that tapes follow.

    Python can look at its numbers to decide what to do. What would take them out of the
    recording is refused as long as a tape records: gradients would silently stop there.

    Attributes:
        is_copy: whether it was copied from another, and may be changed in place if that may not.
    """

    __slots__ = ("is_copy",)
    __hash__ = None  # type: ignore[assignment]  # as arrays: == is elementwise
    value: RecordedValue

    def __init__(self, value: Any, recording: Any, *, weak: bool = False) -> None:
        super().__init__(value, recording, weak=weak)
        self.is_copy = False

    @property
    def concrete(self) -> Any:
        """The numbers; those of a part whose array has changed are taken again."""
        found = self.current()
        return found.value.concrete if isinstance(found, Recorded) else found

    def is_followed(self) -> bool:
        """Whether a tape that records here and now follows it."""
        mine: Any = self.recording
        value: Any = self.whole().value
        if not value.tapes & mine.listening:
            return False
        here: Any = recorder.get()
        while here is not None and here is not mine:
            here = here.parent
        return here is mine

    def read(self) -> Any:
        return self if self.is_followed() else self.concrete

    # Looking at the numbers
    def __repr__(self) -> str:
        return f"<recorded {self.value.type}: {self._shown()}>"

    def _shown(self) -> str:
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
        found: int = math.floor(self.concrete)
        return found

    def __ceil__(self) -> int:
        found: int = math.ceil(self.concrete)
        return found

    def __trunc__(self) -> int:
        found: int = math.trunc(self.concrete)
        return found

    def __index__(self) -> int:
        raise TypeError("only integers can be used as an index, not floats")

    # Taking them out
    def __float__(self) -> float:
        return float(self._taken_out("float()"))

    def __complex__(self) -> complex:
        return complex(self._taken_out("complex()"))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._taken_out("a NumPy array"), dtype)

    def item(self) -> Any:
        """The number, where no tape records it any more."""
        return self._taken_out(".item()").item()

    def tolist(self) -> Any:
        """The numbers as lists, where no tape records them any more."""
        return self._taken_out(".tolist()").tolist()

    def _static_advice(self) -> None:
        """None: numbers are known here."""

    def _taken_out(self, wanted: str) -> Any:
        if self.is_followed():
            self._refuse(wanted)
        return self.concrete

    def _refuse(self, wanted: str) -> NoReturn:
        raise ConcreteValueError(
            explain(
                f"{wanted} of {self!r} would take it out of the recording, "
                "and its gradient would be lost.",
                cure="leave it as it is: it computes like an array; use functions of wend.numpy "
                "in place of math's. If it is to be a constant: wend.stop_gradient(x).",
            )
        )

    # Where Tracer speaks to a recording
    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(key) if self.is_followed() else self.concrete[key]

    def copy(self, order: str = "C") -> Any:
        if recorder.get() is self.recording and self.is_followed():
            here: Any = self.recording
            copied = Recorded(here.lift(self), here, weak=self.weak)
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
