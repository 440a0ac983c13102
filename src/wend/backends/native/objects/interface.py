"""The interface of a function of an object file: what the caller passes and what comes back.

    int NAME(NAME_workspace *, NAME_state *, inputs…, outputs…)

The state is there where the function has variables. An array is passed by its address, in C order;
the sizes that the run decides follow the array that has them first. The result is 0 or the reason
of an error, whose message is in the workspace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wend.base.lazy.dataclass import dataclass
from wend.ir.types import Symbol, TensorType

REASONS = ("OK", "NO_MEMORY", "BAD_INDEX", "BAD_LENGTH", "BAD_SHAPE", "FAILED")
"""The results of a call, by number."""


@dataclass(frozen=True, eq=False, slots=True)
class Input:
    """A number or an array of the caller's.

    Attributes:
        is_written: whether its new contents are stored in it.
    """

    name: str
    type: TensorType
    is_written: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class StateField:
    """A variable: a field of the state, at an offset in bytes."""

    name: str
    type: TensorType
    offset: int
    initial: np.ndarray

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.initial.nbytes


@dataclass(frozen=True, eq=False, slots=True)
class Fixed:
    """An array of outside, which the object file holds."""

    array: np.ndarray


@dataclass(frozen=True, eq=False, slots=True)
class World:
    """The order of effects, which takes no memory."""


@dataclass(frozen=True, eq=False, slots=True)
class OutputParameter:
    """A result: stored at an address of the caller's, or an address in the workspace.

    Attributes:
        is_lent: whether it is in the workspace, until the next call, since only the run decides
            its size.
    """

    name: str
    type: TensorType
    is_lent: bool


@dataclass(frozen=True, eq=False, slots=True)
class StateLayout:
    """The variables of functions that share a state; `size` is in bytes."""

    name: str
    fields: Sequence[StateField]
    size: int


@dataclass(frozen=True, eq=False, slots=True)
class Interface:
    """A function of an object file.

    Attributes:
        name: its name.
        params: what becomes of each param of its graph.
        outputs: its results, which the results of the graph begin with.
        stored: the fields of the state that it assigns to; they follow changed inputs there.
        sizes: the names of sizes that the caller passes.
        state: its variables; None if it has none.
        graph: the graph, as optimized.
    """

    name: str
    params: Sequence[Input | StateField | Fixed | World]
    outputs: Sequence[OutputParameter]
    stored: Sequence[StateField]
    sizes: dict[Symbol, str]
    state: StateLayout | None
    graph: Any

    @property
    def inputs(self) -> list[Input]:
        """The params that the caller passes."""
        return [param for param in self.params if isinstance(param, Input)]

    def new_sizes(self) -> list[list[Symbol]]:
        """Return for each input the sizes that it is the first to have."""
        passed: set[Symbol] = set()
        sizes = []
        for param in self.inputs:
            fresh = dict.fromkeys(
                dim for dim in param.type.dims if isinstance(dim, Symbol) and dim not in passed
            )
            passed.update(fresh)
            sizes.append([*fresh])
        return sizes
