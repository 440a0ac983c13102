"""Calls of library functions, and the definitions and declarations that they need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from wend.backends.native.target.kinds import Kind
from wend.backends.native.target.writer import Writer
from wend.base.lazy.dataclass import dataclass


@dataclass(eq=False, repr=False, slots=True)
class Calls:
    """Emits calls into `w`.

    Attributes:
        math: the called functions of `math/` (`sin`, `exp.v8`).
        helpers: the called functions of `arithmetic.py`.
        libm: the called functions of the C library, with their number of arguments.
        gemm_functions: the called functions of `rt/linalg/small_gemm.py` and `rt/linalg/blas.py`.
        row_functions: the called functions that only read contiguous elements, with their return
            types.
        external: the declarations of the called functions of `lapack.py`, `sorts.py` and SciPy.
        uses_memchr: whether bools are searched with `memchr`.
        vectorizable_count: the number of calls that justify the widest vectors.
        texts: the texts that the module must define as strings of C.
    """

    w: Writer
    math: set[str] = field(default_factory=set)
    helpers: set[str] = field(default_factory=set)
    libm: dict[str, int] = field(default_factory=dict)
    gemm_functions: set[str] = field(default_factory=set)
    row_functions: dict[str, str] = field(default_factory=dict)
    external: dict[str, str] = field(default_factory=dict)
    uses_memchr: bool = False
    vectorizable_count: int = 0
    texts: list[str] = field(default_factory=list)

    def math_function(self, name: str, kind: Kind, *operands: str) -> str:
        """Call a math function defined in IR; `kind` is f64, of any number of lanes."""
        name = name if kind.lanes == 1 else f"{name}.v{kind.lanes}"
        return self._call(name, kind, operands)

    def vectorizable(self, name: str, kind: Kind, *operands: str) -> str:
        """Call a math function on f64 or f32 that LLVM can vectorize."""
        self.vectorizable_count += 1
        return self._call(f"{name}.loop{'' if kind.suffix == 'f64' else '.f32'}", kind, operands)

    def _call(self, name: str, kind: Kind, operands: Sequence[str]) -> str:
        self.math.add(name)
        arguments = ", ".join(f"{kind.text} {operand}" for operand in operands)
        return self.w.define(f"call {kind.text} @wend.{name}({arguments})")

    def from_libm(self, name: str, *operands: str) -> str:
        """Call a function of the C library; `nobuiltin` keeps LLVM from replacing it."""
        self.libm[name] = len(operands)
        arguments = ", ".join(f"double {operand}" for operand in operands)
        return self.w.define(f"call double @{name}({arguments}) nobuiltin")

    def row_function(self, name: str, type: str, address: str, count: str) -> str:
        """Call a function on `count` contiguous elements."""
        self.row_functions[name] = type
        return self.w.define(f"call {type} @{name}(ptr {address}, i64 {count})")

    def text(self, text: str) -> str:
        """Return the name of a text, as a string of C."""
        if text not in self.texts:
            self.texts.append(text)
        return f"@text{self.texts.index(text)}"

    def helper(self, name: str, type: str, *operands: str) -> str:
        """Call a function of `arithmetic.py`, named without its `wend.` prefix."""
        self.helpers.add(name)
        return self.w.define(f"call {type} @wend.{name}({', '.join(operands)})")


def string_definition(name: str, text: str) -> str:
    """Return the definition of a string of C."""
    data = text.encode() + b"\0"
    written = "".join(f"\\{byte:02X}" for byte in data)
    return f'@{name} = internal constant [{len(data)} x i8] c"{written}"'
