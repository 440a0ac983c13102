"""Writes calls of functions, and notes which ones the module has to have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from wend.backends.native.target.kinds import Kind
from wend.backends.native.target.writer import Writer


@dataclass(eq=False, repr=False, slots=True)
class Calls:
    """Writes calls into `w`.

    Attributes:
        math: names of functions of `math/` that are called (`sin`, `exp.v8`).
        helpers: names of the small functions of `arithmetic.py` that are called.
        libm: names of functions of the C library that are called, with their number of arguments.
        products: names of functions of `library/products.py` and `blas.py` there that are called.
        rows: functions that only read elements side by side, with the types of their results.
        declared: functions of `solvers.py`, `sorts.py` and SciPy that are called, as declared.
        finds_bytes: whether bools are looked for.
        in_loops: how many calls there are of functions that are worth the widest vectors.
    """

    w: Writer
    math: set[str] = field(default_factory=set)
    helpers: set[str] = field(default_factory=set)
    libm: dict[str, int] = field(default_factory=dict)
    products: set[str] = field(default_factory=set)
    rows: dict[str, str] = field(default_factory=dict)
    declared: dict[str, str] = field(default_factory=dict)
    finds_bytes: bool = False
    in_loops: int = 0

    def inlined(self, name: str, kind: Kind, *operands: str) -> str:
        """Call a function of reals that is written in IR; `kind` is f64, of any lanes."""
        name = name if kind.lanes == 1 else f"{name}.v{kind.lanes}"
        return self._call(name, kind, operands)

    def in_loop(self, name: str, kind: Kind, *operands: str) -> str:
        """Call a function of reals, of f64 or f32, that LLVM can make vectors of."""
        self.in_loops += 1
        return self._call(f"{name}.loop{'' if kind.suffix == 'f64' else '.f32'}", kind, operands)

    def _call(self, name: str, kind: Kind, operands: Sequence[str]) -> str:
        self.math.add(name)
        arguments = ", ".join(f"{kind.text} {operand}" for operand in operands)
        return self.w.define(f"call {kind.text} @wend.{name}({arguments})")

    def from_libm(self, name: str, *operands: str) -> str:
        """Call a function of the C library. LLVM is not to turn it into a call of another."""
        self.libm[name] = len(operands)
        arguments = ", ".join(f"double {operand}" for operand in operands)
        return self.w.define(f"call double @{name}({arguments}) nobuiltin")

    def of_row(self, name: str, type: str, address: str, count: str) -> str:
        """Call a function of so many elements side by side."""
        self.rows[name] = type
        return self.w.define(f"call {type} @{name}(ptr {address}, i64 {count})")

    def helper(self, name: str, type: str, *operands: str) -> str:
        """Call a function of `arithmetic.py`, named without its `wend.`."""
        self.helpers.add(name)
        return self.w.define(f"call {type} @wend.{name}({', '.join(operands)})")
