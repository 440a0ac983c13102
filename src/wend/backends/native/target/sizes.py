"""Arithmetic on sizes while code is written: what is known is computed at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from wend.backends.native.target.writer import Writer

_LARGEST = 2**63 - 1


@dataclass(eq=False, repr=False, slots=True)
class SizeArithmetic:
    """Writes arithmetic of sizes and positions: i64, literals where they are known."""

    w: Writer

    def add(self, x: str, y: str) -> str:
        if known(x) and known(y):
            return str(int(x) + int(y))
        if "0" in (x, y):
            return y if x == "0" else x
        return self.w.define(f"add i64 {x}, {y}")

    def sub(self, x: str, y: str) -> str:
        if known(x) and known(y):
            return str(int(x) - int(y))
        return x if y == "0" else self.w.define(f"sub i64 {x}, {y}")

    def mul(self, x: str, y: str) -> str:
        if known(x) and known(y):
            return str(int(x) * int(y))
        if "0" in (x, y):
            return "0"
        if "1" in (x, y):
            return y if x == "1" else x
        return self.w.define(f"mul i64 {x}, {y}")

    def bounded(self, sizes: Iterable[str]) -> str:
        """A product; the largest i64 where it is larger than that."""
        total = "1"
        for size in sizes:
            if known(total) and known(size):
                total = str(min(int(total) * int(size), _LARGEST))
            elif "0" in (total, size) or "1" in (total, size):
                total = self.mul(total, size)
            else:
                both = self.w.define(
                    f"call {{ i64, i1 }} @llvm.smul.with.overflow.i64(i64 {total}, i64 {size})"
                )
                product = self.w.define(f"extractvalue {{ i64, i1 }} {both}, 0")
                is_over = self.w.define(f"extractvalue {{ i64, i1 }} {both}, 1")
                total = self.w.define(f"select i1 {is_over}, i64 {_LARGEST}, i64 {product}")
        return total

    def div(self, x: str, y: str) -> str:
        """A quotient of sizes, rounded down."""
        if known(x) and known(y):
            return str(int(x) // int(y))
        return x if y == "1" else self.w.define(f"udiv i64 {x}, {y}")

    def product(self, sizes: Iterable[str]) -> str:
        total = "1"
        for size in sizes:
            total = self.mul(total, size)
        return total

    def strides(self, dims: Iterable[str]) -> list[str]:
        """How far apart neighbours along each axis lie, in elements, in C order."""
        found, step = [], "1"
        for size in reversed(list(dims)):
            found.append(step)
            step = self.mul(step, size)
        return found[::-1]

    def least(self, x: str, y: str) -> str:
        if known(x) and known(y):
            return str(min(int(x), int(y)))
        return self.w.define(f"call i64 @llvm.smin.i64(i64 {x}, i64 {y})")

    def most(self, x: str, y: str) -> str:
        if known(x) and known(y):
            return str(max(int(x), int(y)))
        return self.w.define(f"call i64 @llvm.smax.i64(i64 {x}, i64 {y})")

    def equal(self, x: str, y: str) -> str:
        """Whether two are equal: an i1."""
        if x == y or (known(x) and known(y)):
            return "true" if x == y else "false"
        return self.w.define(f"icmp eq i64 {x}, {y}")

    def both(self, x: str, y: str) -> str:
        """Two flags, and-ed."""
        if "false" in (x, y):
            return "false"
        if "true" in (x, y):
            return y if x == "true" else x
        return self.w.define(f"and i1 {x}, {y}")


def known(size: str) -> bool:
    """Whether it is a literal."""
    return not size.startswith("%")
