"""The real and imaginary parts of an array made in a trace: a write to one is one to the array."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from wend.eager.dispatch import Staged


def _part(name: str) -> property:
    own, of = getattr(np.ndarray, name), operator.attrgetter(name)

    def read(array: Any) -> Any:
        if isinstance(array, Staged):
            return of(array.read())
        part = own.__get__(array)
        if isinstance(part, type(array)) and part is not array and part.base is not None:
            part._parent, part._view_fn = array, of
        return part

    def assign(array: Any, value: Any) -> None:
        if isinstance(array, Staged):
            setattr(array.read(), name, value)
        elif array.promote_if_needed(value):
            setattr(array, name, value)
        else:
            own.__set__(array, value)

    return property(read, assign)


PARTS = {name: _part(name) for name in ("real", "imag")}
