"""The policies of `memory=`: what a loop keeps for its backward pass (D31).

A policy is a name or an object; a graph stores its text, such as `"recompute"` or `"Every(64)"`.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from wend.base.errors import explain
from wend.base.lazy.dataclass import dataclass


def _check_count(policy: object, count: object, what: str) -> None:
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        name = type(policy).__name__
        raise ValueError(f"{name}({count!r}): the number of {what} must be a positive integer")


@dataclass(frozen=True, slots=True)
class Every:
    """Keep the carry of every `trips`-th trip of a loop, and run the trips between again.

    The backward pass holds about T / trips + trips records for T trips, and runs each trip once
    more.

    Args:
        trips: the number of trips from one record to the next, at least 1.

    Raises:
        ValueError: `trips` is no positive integer.

    Example:
        >>> import wend
        >>> def power(x):
        ...     return wend.fori_loop(0, 100, lambda k, y: y * x, x, memory=wend.Every(10))
        >>> wend.grad(power)(1.0)
        np.float64(101.0)
    """

    trips: int

    def __post_init__(self) -> None:
        _check_count(self, self.trips, "trips")

    def __str__(self) -> str:
        return f"Every({self.trips})"


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Keep at most `slots` carries of a loop, wherever they save most, and run trips again.

    The number of trips need not be known. T trips are run 2 T times as long as T is at most about
    `slots`² / 2, and more often then: T · (1 + r) times, where `slots` + r over r is at least T.

    Trips of small records are taken in segments, as many as record up to 4 KiB. T counts segments
    then, and the records of one of them are kept beside the carries.

    Args:
        slots: the number of carries that are kept at a time, at least 1.

    Raises:
        ValueError: `slots` is no positive integer.

    Example:
        >>> import wend
        >>> def power(x):
        ...     return wend.fori_loop(0, 1000, lambda k, y: y * x, x, memory=wend.Checkpoints(8))
        >>> wend.grad(power)(1.0)
        np.float64(1001.0)
    """

    slots: int

    def __post_init__(self) -> None:
        _check_count(self, self.slots, "slots")

    def __str__(self) -> str:
        return f"Checkpoints({self.slots})"


Memory: TypeAlias = str | Every | Checkpoints

OFFLOAD, SPILL = "offload", "spill"
# The policies whose tapes leave memory by segments: for that of the host, or for a file
LEAVES_MEMORY = frozenset({OFFLOAD, SPILL})
_NAMES = ("keep", OFFLOAD, "recompute", SPILL, "thin")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kKMGT]?i?B)?")
_UNITS = {
    "B": 1,
    **{f"{unit}B": 1000**k for k, unit in enumerate("KMGT", 1)},
    **{f"{unit}IB": 1024**k for k, unit in enumerate("KMGT", 1)},
}
_SEGMENTED = re.compile(r"(.+) by (\d+)")
_CALL = re.compile(r"(Every|Checkpoints)\((\d+)\)")


def memory_text(memory: object) -> str:
    """Return the text of a policy, as graphs store it.

    Raises:
        ValueError: there is no policy of that name.
        TypeError: it is neither a name nor a policy.
    """
    if isinstance(memory, (Every, Checkpoints)):
        return str(memory)
    if not isinstance(memory, str):
        raise TypeError(f"memory must be a policy, not {memory!r:.60}")
    if memory not in _NAMES and isinstance(parsed(memory), str):
        names = ", ".join(f'"{x}"' for x in _NAMES)
        raise ValueError(
            explain(
                f"there is no policy memory={memory!r}.",
                cure=f"use {names}, wend.Every(trips) or wend.Checkpoints(slots).",
            )
        )
    return memory


def tape_limit_bytes(limit: int | str | None) -> int:
    """Return the bytes of a limit: a number, or a text such as `"2GiB"`; 0 for None, no limit.

    Raises:
        ValueError: it is neither, or not positive.
    """
    match = _SIZE.fullmatch(limit.strip()) if isinstance(limit, str) else None
    if match is not None:
        size = int(float(match[1]) * _UNITS[(match[2] or "B").upper()])
    elif limit is None or (isinstance(limit, int) and not isinstance(limit, bool)):
        size = limit or 0
    else:
        size = -1
    if size < 0 or (size == 0 and limit is not None):
        raise ValueError(
            explain(
                f"tape_limit={limit!r} is no size.",
                cure='use a number of bytes, a text such as "500MB" or "2GiB", or None.',
            )
        )
    return size


def shown_size(size: int) -> str:
    """Return a number of bytes in the largest unit in which it is at least one."""
    units = [unit for unit in ("GiB", "MiB", "KiB") if size >= _UNITS[unit.upper()]]
    return f"{size / _UNITS[units[0].upper()]:,.4g} {units[0]}" if units else f"{size:,} bytes"


def shown(text: str) -> str:
    """Return the text of a policy as a program would say it."""
    return f'"{text}"' if isinstance(parsed(text), str) else f"wend.{text}"


def parsed(text: str) -> Memory:
    """Return the policy of a text: an object if it has a number, else the name itself."""
    call = _CALL.fullmatch(text)
    if call is None:
        return text
    return (Every if call[1] == "Every" else Checkpoints)(int(call[2]))


def segmented(text: str, trips: int) -> str:
    """Return the text of a policy that was applied to segments of so many trips."""
    return text if trips == 1 else f"{text} by {trips}"


def without_segments(text: str) -> tuple[str, int]:
    """Return the policy of such a text, and the trips of a segment."""
    match = _SEGMENTED.fullmatch(text)
    return (text, 1) if match is None else (match[1], int(match[2]))
