"""The arguments of a recurrence: sequences and outputs, each with its taps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import wend.numpy as wnp
from wend.base.errors import ShapeError, explain
from wend.base.lazy.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class SequenceTaps:
    """A sequence that is read, and at which steps relative to the current one."""

    input: Any
    taps: tuple[int, ...]

    @property
    def span(self) -> int:
        """The number of rows that one step reads over."""
        return max(*self.taps, 0) - min(*self.taps, 0) + 1

    def rows(self, count: Any) -> list[Any]:
        """Return for each tap the rows that the steps read, of which there are so many."""
        first = min(*self.taps, 0)
        return [self.input[tap - first :][:count] for tap in self.taps]


@dataclass(frozen=True, slots=True)
class OutputTaps:
    """The earlier values of an output that a step reads.

    Attributes:
        initial: its values before the first step, the oldest first; empty if none is read.
        taps: the steps that are read, relative to the current one.
    """

    initial: tuple[Any, ...]
    taps: tuple[int, ...]


def sequence_taps(items: Any, go_backwards: bool) -> list[SequenceTaps]:
    """Return the sequences of a recurrence, reversed if it goes backwards."""
    sequences = []
    for k, item in enumerate(_listed(items)):
        where = f"recurrence: sequences[{k}]"
        if isinstance(item, Mapping):
            _check_keys(item, {"input", "taps"}, where)
            array, taps = item["input"], _ints(item.get("taps", 0), where)
        else:
            array, taps = item, (0,)
        array = wnp.asarray(array)
        if not array.ndim:
            raise ShapeError(f"{where} is a scalar, it has no rows")
        sequences.append(SequenceTaps(wnp.flip(array, 0) if go_backwards else array, taps))
    return sequences


def output_taps(items: Any) -> list[OutputTaps] | None:
    """Return what is read of earlier outputs; None where nothing is said of outputs."""
    if items is None:
        return None
    outputs = []
    for k, item in enumerate(_listed(items)):
        where = f"recurrence: outputs_info[{k}]"
        if item is None:
            outputs.append(OutputTaps((), ()))
            continue
        initial: Any = item
        taps: tuple[int, ...] = (-1,)
        if isinstance(item, Mapping):
            _check_keys(item, {"initial", "taps"}, where)
            if "initial" not in item:
                raise ValueError(f"{where} has taps, and no initial value")
            initial, taps = item["initial"], _ints(item.get("taps", -1), where)
        if any(tap >= 0 for tap in taps):
            raise ValueError(
                explain(
                    f"{where} has the tap {max(taps)}, but a step has earlier outputs only.",
                    cure="use negative taps for outputs; those of sequences may be positive.",
                )
            )
        initial, depth = wnp.asarray(initial), -min(taps)
        outputs.append(OutputTaps(_oldest_first(initial, depth, where), taps))
    return outputs


def _oldest_first(initial: Any, depth: int, where: str) -> tuple[Any, ...]:
    if depth == 1:
        return (initial,)
    if not initial.ndim or initial.shape[0] != depth:
        size = initial.shape[0] if initial.ndim else "no"
        raise ShapeError(
            f"{where}: its taps need {depth} initial rows, the oldest first, not {size}"
        )
    return tuple(initial[k] for k in range(depth))


def _listed(items: Any) -> Sequence[Any]:
    if items is None:
        return []
    return items if isinstance(items, (list, tuple)) else [items]


def _ints(taps: Any, where: str) -> tuple[int, ...]:
    numbers = tuple(taps) if isinstance(taps, (list, tuple)) else (taps,)
    if not numbers or not all(isinstance(tap, int) for tap in numbers):
        raise TypeError(f"{where}: taps are ints, not {taps!r}")
    return numbers


def _check_keys(item: Mapping[Any, Any], known: set[str], where: str) -> None:
    for key in item:
        if key not in known:
            raise ValueError(f"{where}: {key!r} is none of {', '.join(sorted(known))}")
