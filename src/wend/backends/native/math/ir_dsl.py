"""A builder of LLVM IR for mathematical functions, written as arithmetic.

A `FunctionBuilder` collects the instructions of one function; an `SsaExpr` is an SSA name in it,
and every operator on one appends the instruction that computes it:

    b = FunctionBuilder(lanes=1)
    y = b.fma(b.x, 2.0, 1.0) * b.x
    b.ret(y)
    b.definition("example")          # define internal double @wend.example(double %x) ...

The same Python code emits a scalar function (`lanes=1`) and one over `<lanes x double>`, and one of
f32 where its constants depend on `b.format`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Literal, TypeAlias

from wend.backends.native.math.format import F64, Format
from wend.base.lazy.dataclass import dataclass

Kind = Literal["real", "word", "flag"]
Operand: TypeAlias = "SsaExpr | float | int"

# The functions read no mutable memory and always return: LLVM may hoist, merge and drop calls.
PURE = "nofree nosync nounwind willreturn memory(none)"
INLINE = f"alwaysinline {PURE}"
# `cold` makes LLVM lay out the branch that leads here as not taken, without branch weights, whose
# metadata numbers would clash with those of the module that this text is pasted into.
# `optnone` saves 4 ms of passes over `sincos.far`, which runs no slower for it.
COLD = f"cold noinline optnone {PURE}"

# Adding 1.5 * 2**52 rounds to the nearest integer, whose two's complement is in the low bits of the
# sum; subtracting it again gives the integer as a real.
MAGIC = F64.magic
SIGN_BIT = -(2**63)


def literal(value: float) -> str:
    """Return the literal of a double that LLVM parses exactly."""
    return F64.literal(value)


@dataclass(frozen=True, slots=True, eq=False)
class SsaExpr:
    """An SSA name of `body`: reals, words (integers of their width) or flags (i1), one per lane."""

    body: FunctionBuilder
    kind: Kind
    name: str

    def __add__(self, other: Operand) -> SsaExpr:
        return self.body.binary({"real": "fadd", "word": "add"}, self, other)

    def __sub__(self, other: Operand) -> SsaExpr:
        return self.body.binary({"real": "fsub", "word": "sub"}, self, other)

    def __mul__(self, other: Operand) -> SsaExpr:
        return self.body.binary({"real": "fmul"}, self, other)

    def __truediv__(self, other: Operand) -> SsaExpr:
        return self.body.binary({"real": "fdiv"}, self, other)

    def __lshift__(self, other: int) -> SsaExpr:
        return self.body.binary({"word": "shl"}, self, other)

    def __rshift__(self, other: int) -> SsaExpr:
        """Shift right, filling with zeros; i64 vectors have no other right shift before AVX-512."""
        return self.body.binary({"word": "lshr"}, self, other)

    def __and__(self, other: Operand) -> SsaExpr:
        return self.body.binary({"word": "and", "flag": "and"}, self, other)

    def __or__(self, other: Operand) -> SsaExpr:
        return self.body.binary({"word": "or", "flag": "or"}, self, other)

    def __xor__(self, other: Operand) -> SsaExpr:
        return self.body.binary({"word": "xor", "flag": "xor"}, self, other)

    def __neg__(self) -> SsaExpr:
        if self.kind == "word":
            b = self.body
            return b.emit("word", f"sub {b.type('word')} {b.operand('word', 0)}, {self.name}")
        return self.body.emit("real", f"fneg {self.body.typed(self)}")

    def __abs__(self) -> SsaExpr:
        return self.body.intrinsic("fabs", self)

    def __lt__(self, other: Operand) -> SsaExpr:
        return self._compare("olt", other)

    def __le__(self, other: Operand) -> SsaExpr:
        return self._compare("ole", other)

    def __gt__(self, other: Operand) -> SsaExpr:
        return self._compare("ogt", other)

    def __ge__(self, other: Operand) -> SsaExpr:
        return self._compare("oge", other)

    def equals(self, other: Operand) -> SsaExpr:
        """Compare for equality; NaN equals nothing."""
        return self._compare("oeq", other)

    def word(self) -> SsaExpr:
        """Return the bits of reals."""
        return self._cast("word")

    def real(self) -> SsaExpr:
        """Return the reals that have these bits."""
        return self._cast("real")

    def _compare(self, how: str, other: Operand) -> SsaExpr:
        """Emit an ordered comparison of reals: false where either is NaN."""
        b = self.body
        return b.emit("flag", f"fcmp {how} {b.typed(self)}, {b.operand('real', other)}")

    def _cast(self, to: Kind) -> SsaExpr:
        b = self.body
        return b.emit(to, f"bitcast {b.typed(self)} to {b.type(to)}")


@dataclass(eq=False, repr=False, slots=True)
class FunctionBuilder:
    """The instructions of one function of a real argument `x` (and maybe `y`), in order.

    Attributes:
        lanes: the number of elements of its arguments.
        format: the format of reals.
        is_loop: whether it is optimized for throughput in loops instead of for latency.
        uses_avx512: whether it may use the instructions of `avx512.py`.
    """

    lanes: int = 1
    format: Format = F64
    is_loop: bool = False
    uses_avx512: bool = False
    lines: list[str] = field(default_factory=list)

    def with_format(self, format: Format) -> FunctionBuilder:
        """Return a builder that continues this function with another format."""
        return replace(self, format=format, uses_avx512=False)

    @property
    def x(self) -> SsaExpr:
        """The argument."""
        return SsaExpr(self, "real", "%x")

    @property
    def one(self) -> SsaExpr:
        """The constant 1, to be used as a dividend."""
        return SsaExpr(self, "real", self.operand("real", 1.0))

    @property
    def y(self) -> SsaExpr:
        """The second argument, which `definition` needs in `arguments`."""
        return SsaExpr(self, "real", "%y")

    def type(self, kind: Kind) -> str:
        """Return the LLVM type of a SsaExpr of this kind."""
        element = self.format.element(kind)
        return element if self.lanes == 1 else f"<{self.lanes} x {element}>"

    def operand(self, kind: Kind, value: Operand) -> str:
        """Return a SsaExpr or a constant as an operand, without its type."""
        if isinstance(value, SsaExpr):
            return value.name
        text = self.format.literal(value) if kind == "real" else str(int(value))
        return text if self.lanes == 1 else f"splat ({self.format.element(kind)} {text})"

    def typed(self, value: SsaExpr | float) -> str:
        """Return a SsaExpr or a real constant as an operand with its type."""
        kind: Kind = value.kind if isinstance(value, SsaExpr) else "real"
        return f"{self.type(kind)} {self.operand(kind, value)}"

    def emit(self, kind: Kind, instruction: str) -> SsaExpr:
        """Append an instruction and return its result."""
        return SsaExpr(self, kind, self.define(instruction))

    def define(self, instruction: str) -> str:
        """Append an instruction of any result type; return the name of its result."""
        name = f"%t{len(self.lines)}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def address(self, name: str) -> str:
        """Append an opaque copy of the address of a table, the base of all of its entries.

        In the JIT's code model an address has 64 bits, too many for the displacement of a load.
        If LLVM could see that the base is constant, it would keep the address of each column in a
        register of its own.
        """
        return self.define(f'call ptr asm "", "=r,0"(ptr @{name})')

    def binary(self, opcodes: dict[str, str], left: SsaExpr, right: Operand) -> SsaExpr:
        """Append the instruction for the kind of the left operand."""
        opcode = opcodes[left.kind]
        right_text = self.operand(left.kind, right)
        return self.emit(left.kind, f"{opcode} {self.typed(left)}, {right_text}")

    def intrinsic(self, name: str, *arguments: SsaExpr | float) -> SsaExpr:
        """Append a call of an LLVM intrinsic on reals; LLVM declares intrinsics by itself."""
        suffix = self.format.name if self.lanes == 1 else f"v{self.lanes}{self.format.name}"
        operands = ", ".join(self.typed(a) for a in arguments)
        return self.emit("real", f"call {self.type('real')} @llvm.{name}.{suffix}({operands})")

    def fma(self, a: SsaExpr | float, b: SsaExpr | float, c: SsaExpr | float) -> SsaExpr:
        """Append a*b + c, rounded once."""
        return self.intrinsic("fma", a, b, c)

    def copysign(self, magnitude: SsaExpr | float, sign: SsaExpr) -> SsaExpr:
        """Append `magnitude` with the sign of `sign`."""
        return self.intrinsic("copysign", magnitude, sign)

    def select(self, flag: SsaExpr, yes: SsaExpr | float, no: SsaExpr | float) -> SsaExpr:
        """Append `yes` where the flag holds and `no` elsewhere."""
        return self.emit("real", f"select {self.typed(flag)}, {self.typed(yes)}, {self.typed(no)}")

    def at_most(self, x: SsaExpr, bound: float) -> SsaExpr:
        """Append min(x, bound), NaN staying NaN."""
        return self.select(x > bound, bound, x)

    def at_least(self, x: SsaExpr, bound: float) -> SsaExpr:
        """Append max(x, bound), NaN staying NaN."""
        return self.select(x < bound, bound, x)

    def is_positive_finite(self, x: SsaExpr, at_least: float = 0.0) -> SsaExpr:
        """Append whether a number is positive and finite, in one comparison of its bits.

        With another bound `at_least` it may also equal the bound.
        """
        lowest_bits = max(self.format.bits(at_least), 1)
        bits = self.typed(x.word() - lowest_bits)
        bits_range = self.operand("word", self.format.bits(float("inf")) - lowest_bits)
        return self.emit("flag", f"icmp ult {bits}, {bits_range}")

    def label(self, name: str) -> None:
        """Start a block."""
        self.lines.append(f"{name}:")

    def branch_unless(self, flag: SsaExpr, otherwise: str) -> None:
        """Branch to the block `otherwise` unless a flag holds in all lanes."""
        holds = flag.name
        if self.lanes > 1:
            lanes = f"v{self.lanes}i1({self.typed(flag)})"
            holds = self.define(f"call i1 @llvm.vector.reduce.and.{lanes}")
        next_block = f"go{len(self.lines)}"
        self.lines.append(f"  br i1 {holds}, label %{next_block}, label %{otherwise}")
        self.label(next_block)

    def ret(self, *results: SsaExpr) -> None:
        """Append the return of one result, or of several as a struct."""
        if len(results) == 1:
            self.lines.append(f"  ret {self.typed(results[0])}")
            return
        struct_type, aggregate = self.pair_type, "poison"
        for index, result in enumerate(results):
            text = f"insertvalue {struct_type} {aggregate}, {self.typed(result)}, {index}"
            aggregate = self.define(text)
        self.lines.append(f"  ret {struct_type} {aggregate}")

    @property
    def pair_type(self) -> str:
        """The struct of two results."""
        return f"{{ {self.type('real')}, {self.type('real')} }}"

    def definition(
        self, name: str, *, pair: bool = False, attributes: str = INLINE, arguments: str = "x"
    ) -> str:
        """Return the text of the function `@wend.<name>` with this body."""
        result, argument = self.pair_type if pair else self.type("real"), self.type("real")
        parameters = ", ".join(f"{argument} %{a}" for a in arguments)
        head = f"define internal {result} @wend.{name}({parameters}) {attributes} {{"
        return "\n".join([head, *self.lines, "}", ""])


def polynomial(
    b: FunctionBuilder, x: SsaExpr, x2: SsaExpr, coefficients: Sequence[float]
) -> SsaExpr:
    """Evaluate a polynomial of at least two coefficients, lowest first; `x2` is x*x.

    For latency Estrin's scheme is used: a few levels of independent fused multiply-adds, where
    Horner's scheme is one chain. For loops the number of operations is minimal, in two chains.
    """
    if b.is_loop:
        return b.fma(_horner(b, x2, coefficients[1::2]), x, _horner(b, x2, coefficients[0::2]))
    terms: list[SsaExpr | float] = list(coefficients)
    power = x
    while len(terms) > 1:
        pairs = [terms[i : i + 2] for i in range(0, len(terms), 2)]
        terms = [b.fma(pair[1], power, pair[0]) if len(pair) == 2 else pair[0] for pair in pairs]
        if len(terms) > 1:
            power = x2 if power is x else power * power
    (total,) = terms
    assert isinstance(total, SsaExpr), "a polynomial needs two coefficients"
    return total


def _horner(b: FunctionBuilder, x: SsaExpr, coefficients: Sequence[float]) -> SsaExpr | float:
    total: SsaExpr | float = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        total = b.fma(total, x, coefficient)
    return total
