"""Values of a graph while it is lowered, and between runs.

A tensor is a NumPy array where it is known while lowering (sizes are), else an array of JAX. A
list is an array per leaf of its elements, with a static capacity, and a length; a maybe is a value
beside the flag that says whether it is there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from wend.ir.types import Type


@jax.tree_util.register_dataclass
@dataclass(frozen=True, slots=True)
class DeviceList:
    """A list.

    Attributes:
        items: its elements, stacked along a first axis; those from `length` on mean nothing.
        length: the number of elements, which may exceed the capacity: then elements are lost, and
            the run is repeated with more room (D34).
        size: the number of elements, if it is known while lowering.
    """

    items: Any
    length: Any
    size: int | None = field(default=None, metadata={"static": True})

    @property
    def capacity(self) -> int:
        """The number of elements that there is room for."""
        shape: tuple[int, ...] = jax.tree.leaves(self.items)[0].shape
        return shape[0]


@jax.tree_util.register_dataclass
@dataclass(frozen=True, slots=True)
class Maybe:
    """A value that may be Zero, and is zeros then."""

    is_present: Any
    value: Any


@dataclass(frozen=True, slots=True)
class NewList:
    """An empty list; what uses it makes it, with the capacity of its class."""

    element: Type


@dataclass(frozen=True, slots=True)
class Stacked:
    """A list as an array whose first size only the run knows; it has yet to be given a size."""

    items: DeviceList


def is_static(value: Any) -> bool:
    """Return whether a value is known while lowering."""
    return isinstance(value, (np.ndarray, np.generic))
