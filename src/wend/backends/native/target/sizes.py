"""Arithmetic on sizes during code generation, with constant folding."""

from __future__ import annotations

from collections.abc import Iterable

from wend.backends.native.target.writer import Writer
from wend.base.lazy.dataclass import dataclass

_MAX_INT64 = 2**63 - 1


@dataclass(eq=False, repr=False, slots=True)
class SizeArithmetic:
    """Emits arithmetic on sizes and positions: i64 registers, or literals where they are known."""

    w: Writer

    def add(self, x: str, y: str) -> str:
        if is_literal(x) and is_literal(y):
            return str(int(x) + int(y))
        if "0" in (x, y):
            return y if x == "0" else x
        return self.w.define(f"add i64 {x}, {y}")

    def sub(self, x: str, y: str) -> str:
        if is_literal(x) and is_literal(y):
            return str(int(x) - int(y))
        return x if y == "0" else self.w.define(f"sub i64 {x}, {y}")

    def mul(self, x: str, y: str) -> str:
        if is_literal(x) and is_literal(y):
            return str(int(x) * int(y))
        if "0" in (x, y):
            return "0"
        if "1" in (x, y):
            return y if x == "1" else x
        return self.w.define(f"mul i64 {x}, {y}")

    def saturating_product(self, sizes: Iterable[str]) -> str:
        """Return the product of sizes, saturated at the largest i64."""
        total = "1"
        for size in sizes:
            if is_literal(total) and is_literal(size):
                total = str(min(int(total) * int(size), _MAX_INT64))
            elif "0" in (total, size) or "1" in (total, size):
                total = self.mul(total, size)
            else:
                pair = self.w.define(
                    f"call {{ i64, i1 }} @llvm.smul.with.overflow.i64(i64 {total}, i64 {size})"
                )
                product = self.w.define(f"extractvalue {{ i64, i1 }} {pair}, 0")
                overflows = self.w.define(f"extractvalue {{ i64, i1 }} {pair}, 1")
                total = self.w.define(f"select i1 {overflows}, i64 {_MAX_INT64}, i64 {product}")
        return total

    def div(self, x: str, y: str) -> str:
        """Return the quotient of two sizes, rounded down."""
        if is_literal(x) and is_literal(y):
            return str(int(x) // int(y))
        return x if y == "1" else self.w.define(f"udiv i64 {x}, {y}")

    def product(self, sizes: Iterable[str]) -> str:
        total = "1"
        for size in sizes:
            total = self.mul(total, size)
        return total

    def strides(self, dims: Iterable[str]) -> list[str]:
        """Return the strides of an array in C order, in elements."""
        steps, step = [], "1"
        for size in reversed(list(dims)):
            steps.append(step)
            step = self.mul(step, size)
        return steps[::-1]

    def min(self, x: str, y: str) -> str:
        if is_literal(x) and is_literal(y):
            return str(min(int(x), int(y)))
        return self.w.define(f"call i64 @llvm.smin.i64(i64 {x}, i64 {y})")

    def max(self, x: str, y: str) -> str:
        if is_literal(x) and is_literal(y):
            return str(max(int(x), int(y)))
        return self.w.define(f"call i64 @llvm.smax.i64(i64 {x}, i64 {y})")

    def equal(self, x: str, y: str) -> str:
        """Return whether two sizes are equal, as an i1."""
        if x == y or (is_literal(x) and is_literal(y)):
            return "true" if x == y else "false"
        return self.w.define(f"icmp eq i64 {x}, {y}")

    def logical_and(self, x: str, y: str) -> str:
        """Return the conjunction of two flags."""
        if "false" in (x, y):
            return "false"
        if "true" in (x, y):
            return y if x == "true" else x
        return self.w.define(f"and i1 {x}, {y}")


def is_literal(size: str) -> bool:
    """Return whether a size is a literal rather than a register."""
    return not size.startswith("%")
