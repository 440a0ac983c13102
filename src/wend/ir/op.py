"""The record of an operation: name, shape rule, NumPy kernel, derivative; and their table."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Infer: TypeAlias = Callable[..., Any]  # (*operand_types, **attrs) -> Type | tuple[Type, ...]
Kernel: TypeAlias = Callable[..., Any]  # (*arrays, **attrs) -> array | tuple of arrays
Rule: TypeAlias = Callable[..., Any]  # speaks to the builder only; see docs/adding-an-op.md


class Effect(enum.Enum):
    """What an operation does beyond its results."""

    NONE = "none"
    WORLD = "world"  # seen outside: print, assert_; takes and gives the world token
    STATE = "state"  # assigns to a variable; takes and gives what that holds


@dataclass(frozen=True, slots=True)
class Partials:
    """Derivative of an elementwise operation.

    Attributes:
        rules: `(b, *operands, result) -> factor` for each operand; None: it has no derivative.
        linear: the operands it is linear in while the others stay.
    """

    rules: tuple[Rule | None, ...]
    linear: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Linear:
    """Derivative of an operation that is linear in some operands (D28).

    Attributes:
        transpose: `(b, node, ct, index) -> ct of operand index`.
        operands: the operands it is linear in; None: in all.
        jointly: linear in all of them together (`concat`), not in each while the others stay
            (`dot_general`).
        accumulate: `(b, node, ct, index, into) -> into + ct of operand index`, where adding into
            what is already there is cheaper than making a cotangent and adding it (reads by
            position).
    """

    transpose: Rule
    operands: tuple[int, ...] | None = None
    jointly: bool = True
    accumulate: Rule | None = None


@dataclass(frozen=True, slots=True)
class Explicit:
    """Derivative by a rule of its own.

    Attributes:
        vjp: `(b, node, cts) -> a cotangent or ZERO per operand`, linear in the cotangents.
        jvp: `(b, node, tangents) -> a tangent or ZERO per result`; None: the transpose of `vjp`.
        linear: the operands it is linear in, all together, while the others stay.
    """

    vjp: Rule
    jvp: Rule | None = None
    linear: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ByRegions:
    """Derivative by a rule in `autodiff/rule_*.py`, which sees the node: most hold regions.

    It may put another node in its place, which gives what the backward pass needs.
    """


@dataclass(frozen=True, slots=True)
class NoGradient:
    """No derivative exists or it is zero everywhere: integers, orders, comparisons, effects."""


Derivative: TypeAlias = Partials | Linear | Explicit | ByRegions | NoGradient


def no_gradient() -> NoGradient:
    """Say aloud that an operation stops derivatives."""
    return NoGradient()


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """One operation. The kernel is its definition and every backend's oracle.

    Attributes:
        name: unique; what graphs print.
        infer: the shape rule; raises a `WendError` that says what does not fit.
        kernel: runs it on NumPy arrays; None for the operations that hold regions.
        derivative: how it is differentiated.
        effect: what it does besides its results.
        regions: names of its regions; a last one with a star (`branch*`) for any number of a kind.
        is_cheap: worth running again in a backward pass rather than keeping its result.
    """

    name: str
    infer: Infer
    kernel: Kernel | None
    derivative: Derivative
    effect: Effect = Effect.NONE
    regions: tuple[str, ...] = ()
    is_cheap: bool = False

    @property
    def linear_operands(self) -> tuple[int, ...] | None:
        """The operands it is linear in (D28), complex ones over real factors; None: in all.

        `Node.linear_operands` counts them where it is all.
        """
        match self.derivative:
            case Linear(operands=linear) | Partials(linear=linear) | Explicit(linear=linear):
                return linear
        return ()

    @property
    def is_jointly_linear(self) -> bool:
        """Whether it is linear in all of those together, not in each while the others stay."""
        match self.derivative:
            case Linear(jointly=jointly):
                return jointly
            case Partials(linear=linear):
                return len(linear) == 1
            case Explicit(linear=linear):
                return bool(linear)
        return False

    def __repr__(self) -> str:
        return f"<op {self.name}>"


class Table(Mapping[str, Op]):
    """Operations by name; `ops.build` fills the one there is, by listing its families."""

    def __init__(self) -> None:
        self._ops: dict[str, Op] = {}

    def add(self, ops: Iterable[Op]) -> None:
        for op in ops:
            if op.name in self._ops:
                raise ValueError(f"there are two operations called {op.name!r}")
            self._ops[op.name] = op

    def __getitem__(self, name: str) -> Op:
        return self._ops[name]

    def __iter__(self) -> Any:
        return iter(self._ops)

    def __len__(self) -> int:
        return len(self._ops)


TABLE = Table()
