"""What a workload is, and what a peer makes of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench.peer import Peer

Program = Callable[..., Any]
# The functions that a program is written with: sin, tanh, where, while_loop, …
Library = Any

VALUE, GRADIENT = "value", "gradient"
# Of these each sample is taken in a process of its own; that of the import in one of a first call.
IMPORT, FIRST_VALUE, FIRST_GRADIENT = "import", "first value", "first gradient"
# The first gradient of a process that finds on disk what an earlier one has compiled
LATER_GRADIENT = "first gradient, cached"
MEMORY = "memory"
PROGRAM_OF = {
    FIRST_VALUE: VALUE,
    FIRST_GRADIENT: GRADIENT,
    LATER_GRADIENT: GRADIENT,
    MEMORY: GRADIENT,
}


@dataclass(frozen=True, slots=True)
class Refuses:
    """What a peer is known not to do. It is tried all the same where `program` is given."""

    why: str
    program: Program | None = None


@dataclass(frozen=True, slots=True)
class Workload:
    """A program that every peer runs.

    Attributes:
        name: what it is called on the command line.
        title: what it does, for the head of its table.
        arguments: numbers and arrays; `small` are others of the same types, for a short run. Every
            process makes its own, so random ones come from a generator with a seed.
        measures: what is measured.
        differentiable: the arguments whose gradient is taken.
        plain: the program with Python's own control flow, written with a library's functions.
        functional: the same with `while_loop(cond, body, carry, limit)` and `where`.
        own: peers that need a program of their own → what makes it, for `value` or `gradient`.
        refuses: peers that cannot run it at all → why; they are tried all the same.
        trips: how many trips a call makes; None where figures are of a call.
        tolerance: how far, relative to the largest number, an answer may be off.
        tolerances: the same for peers that compute something else (another solver).
        size: how many numbers its value has.
        answer: arguments → value and gradient; None: found from `plain` by dual numbers.
        peers: those it is for; none: every one there is.
        checked: whether an answer is known at all.
    """

    name: str
    title: str
    arguments: tuple[Any, ...]
    small: tuple[Any, ...]
    measures: tuple[str, ...]
    plain: Callable[[Library], Program] | None = None
    functional: Callable[[Library], Program] | None = None
    differentiable: tuple[int, ...] = ()
    own: Mapping[str, Callable[[Peer, str], Program | Refuses | None]] = field(default_factory=dict)
    refuses: Mapping[str, str] = field(default_factory=dict)
    trips: Callable[..., int] | None = None
    tolerance: float = 1e-9
    tolerances: Mapping[str, float] = field(default_factory=dict)
    size: int = 1
    answer: Callable[..., list[float]] | None = None
    checked: bool = True
    peers: Collection[str] = ()
