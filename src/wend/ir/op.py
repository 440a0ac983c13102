"""The record of an operation: name, shape rule, NumPy kernel, derivative; and their table."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypedDict

from wend.base.lazy.dataclass import dataclass

Infer: TypeAlias = Callable[..., Any]  # (*operand_types, **attrs) -> Type | tuple[Type, ...]
Kernel: TypeAlias = Callable[..., Any]  # (*arrays, **attrs) -> array | tuple of arrays
Raises: TypeAlias = tuple[type[BaseException], ...]
Rule: TypeAlias = Callable[..., Any]  # speaks to the builder only; see docs/adding-an-op.md


class Effect(enum.Enum):
    """The effect of an operation beyond its results."""

    NONE = "none"
    WORLD = "world"  # visible outside: print, a host call; takes and gives the world token
    CHECK = "check"  # raises or does nothing: may be repeated or dropped with a run (D36)
    STATE = "state"  # assigns to a variable; takes its old value and gives the new one


class Rounding(enum.Enum):
    """Whether IEEE 754 and C leave the last bits of an operation open."""

    EXACT = "exact"
    OF_FLOATS = "of floats"  # of complex numbers, too
    OF_COMPLEX = "of complex numbers"  # whose products are sums of products


@dataclass(frozen=True, slots=True)
class Partials:
    """Derivative of an elementwise operation.

    Attributes:
        rules: `(b, *operands, result) -> factor` for each operand; None: it has no derivative.
        linear: the operands it is linear in while the others stay constant.
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
            constant (`dot_general`).
        accumulate: `(b, node, ct, index, into) -> into + ct of operand index`, where adding in
            place is cheaper than making a cotangent and adding it (reads by position).
        transpose_all: `(b, node, ct, indices) -> cts of these operands`, where one pass over the
            operands gives them all and each alone would take a pass (`concat`).
    """

    transpose: Rule
    operands: tuple[int, ...] | None = None
    jointly: bool = True
    accumulate: Rule | None = None
    transpose_all: Rule | None = None

    @classmethod
    def adding(cls, accumulate: Rule, operands: tuple[int, ...] | None = None) -> Linear:
        """Return the derivative whose `transpose` is `accumulate` into zeros of operand 0."""

        def transpose(b: Any, node: Any, ct: Any, index: int) -> Any:
            return accumulate(b, node, ct, index, b.zeros_like(node.operands[0]))

        return cls(transpose, operands, accumulate=accumulate)


@dataclass(frozen=True, slots=True)
class Explicit:
    """Derivative by a rule of its own.

    Attributes:
        vjp: `(b, node, cts) -> a cotangent or ZERO per operand`, linear in the cotangents.
        jvp: `(b, node, tangents) -> a tangent or ZERO per result`; None: the transpose of `vjp`.
        linear: the operands it is jointly linear in while the others stay constant.
    """

    vjp: Rule
    jvp: Rule | None = None
    linear: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ByRegions:
    """Derivative by a rule in `autodiff/rule_*.py`, which gets the node: most hold regions.

    The rule may replace the node by one that also gives the residuals.
    """


@dataclass(frozen=True, slots=True)
class NoGradient:
    """No derivative exists, or it is zero everywhere: integers, orders, comparisons, effects."""


Derivative: TypeAlias = Partials | Linear | Explicit | ByRegions | NoGradient


def no_gradient() -> NoGradient:
    """Declare that an operation stops derivatives."""
    return NoGradient()


@dataclass(frozen=True, slots=True)
class RegionEdge:
    """Values that control flow passes on at a node with regions (MLIR: a region successor).

    Attributes:
        source: the region whose results they are; None: they are operands of the node.
        target: the region whose params they become; None: they become results of the node.
        first: the position of the first of them among those operands or results.
        first_input: the position of the first of them among those params or results.
        count: how many they are.
    """

    source: int | None
    target: int | None
    first: int
    first_input: int
    count: int

    def positions(self) -> Iterator[tuple[int, int]]:
        """Yield the position of each of them at the source and at the target."""
        for k in range(self.count):
            yield self.first + k, self.first_input + k

    def reversed(self) -> RegionEdge:
        """Return the edge in the direction of a backward analysis."""
        return RegionEdge(self.target, self.source, self.first_input, self.first, self.count)


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """One operation. The kernel is its definition and every backend's oracle.

    Attributes:
        name: unique; printed in graphs.
        infer: the shape rule; raises a `WendError` if the operands do not fit.
        kernel: runs it on NumPy arrays; None for the operations that hold regions.
        derivative: how it is differentiated.
        effect: its effect besides its results.
        regions: names of its regions; a last one with a star (`branch*`) stands for any number.
        region_edges: the values that control flow passes on between a node, its regions and its
            results, which dataflow analyses follow; None: none, or no analysis looks inside.
        leading_operands: the attr that counts its first operands, apart from the others (`carry`).
        is_cheap: cheaper to recompute in a backward pass than to keep its result.
        is_speculatable: may run where its result is not needed; what is cheap may, too.
        cost: the time for an element in vectorized code of double precision, in ns, beside loading
            and storing it (measured; AMD EPYC, 2.4 GHz); infinite if it has not been measured.
        raises: the exceptions that its kernel may raise in a run of operands that fit, or a
            function that gives them for a node.
        error_attrs: the attrs that only tell which error it raises: equal operands fail alike.
        updates: the operand that its first result is a changed version of, so that it may be
            computed in the memory of that operand, if nothing reads the old version afterwards.
        shares: the operand whose memory a backend may let its first result refer to.
        view_of: the operand that NumPy's function returns a view of.
        addends: the operands that are added to its first result with factor one.
        forwards_zero: gives Zero for operands that are Zero, and needs no linear block for that.
        reads_shape: reads the sizes of its operand, and none of its elements.
        traps: stops a run at a position out of range, which is not among `raises`: what records it
            notes the error. A node whose position is known to be in range has the attr `in_bounds`.
        rounding: whether its last bits are left open.
        step: the operation of two elements that a reduction repeats.
        identity: what a reduction of nothing gives, if that is something.
        version: increases when its meaning or its attrs change; files say which one they use.
        is_portable: a file may hold it: its attrs are data, not objects of this process.
        batch: computes for many elements at once what the operation computes for one; a rule
            `(c, node, operands, flags)`, described in `ops/batching.py`; None: there is none.
    """

    name: str
    infer: Infer
    kernel: Kernel | None
    derivative: Derivative
    effect: Effect = Effect.NONE
    regions: tuple[str, ...] = ()
    region_edges: Callable[[Any], Sequence[RegionEdge]] | None = None
    leading_operands: str | None = None
    is_cheap: bool = False
    raises: Raises | Callable[[Any], Raises] = ()
    error_attrs: tuple[str, ...] = ()
    updates: int | None = None
    shares: int | None = None
    view_of: int | None = None
    addends: tuple[int, ...] = ()
    forwards_zero: bool = False
    reads_shape: bool = False
    traps: bool = False
    is_speculatable: bool = False
    cost: float = math.inf
    rounding: Rounding = Rounding.EXACT
    step: Op | None = None
    identity: int | bool | None = None
    version: int = 1
    is_portable: bool = True
    batch: Rule | None = None

    def errors_of(self, node: Any) -> Raises:
        """Return the exceptions that the kernel may raise in a run of a node."""
        return self.raises(node) if callable(self.raises) else self.raises

    def may_fail(self, node: Any) -> bool:
        """Return whether a run of a node may end with an error."""
        may_trap = self.traps and not node.attrs.get("in_bounds")
        return may_trap or bool(self.errors_of(node))

    @property
    def takes_token(self) -> bool:
        """Whether its first operand and its first result are the world token."""
        return self.effect in (Effect.WORLD, Effect.CHECK)

    @property
    def linear_operands(self) -> tuple[int, ...] | None:
        """The operands it is linear in (D28), complex ones over real factors; None: in all.

        `Node.linear_operands` gives their positions in that case, too.
        """
        match self.derivative:
            case Linear(operands=linear) | Partials(linear=linear) | Explicit(linear=linear):
                return linear
        return ()

    @property
    def is_jointly_linear(self) -> bool:
        """Whether it is linear in all of those together, not only in each one separately."""
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


class Facts(TypedDict, total=False):
    """Facts about an operation that families pass on to `Op`."""

    cost: float
    view_of: int | None
    addends: tuple[int, ...]
    is_speculatable: bool
    rounding: Rounding
    step: Op | None
    identity: int | bool | None


class Table(Mapping[str, Op]):
    """Operations by name; `ops.build` fills the one instance, by listing its families."""

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
