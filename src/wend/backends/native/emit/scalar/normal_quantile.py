"""The quantile function of the normal distribution in vectors, with SciPy's bits.

SciPy has a quotient of polynomials between exp(−2) and 1 − exp(−2), which is computed here in its
order; it is called for the other lanes, about a quarter of those that are uniform.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.target.kinds import Kind
from wend.backends.native.target.platform import platform
from wend.ir.dtypes import BOOL

# S. L. Moshier, Cephes, ndtri.c
_TAIL = 0.13533528323661269189
_ROOT_TWO_PI = 2.50662827463100050242
_NUMERATOR = (
    *(-5.99633501014107895267e1, 9.80010754185999661536e1, -5.66762857469070293439e1),
    *(1.39312609387279679503e1, -1.23916583867381258016e0),
)
_DENOMINATOR = (
    *(1.0, 1.95448858338141759834e0, 4.67627912898881538453e0, 8.63602421390890590575e1),
    *(-2.25462687854119370527e2, 2.00260212380060660359e2, -8.20372256168333339912e1),
    *(1.59056225126211695515e1, -1.18331621121330003142e0),
)


def emit_normal_quantile(low: Lowering, kind: Kind, x: str, call: Callable[[str], str]) -> str:
    """Emit the quantiles of a vector; `call` emits that of a number."""
    w, flags = low.w, Kind(BOOL, kind.lanes)
    if not platform().is_x86:  # elsewhere C compilers fuse multiplications and additions
        return _of_lanes(low, kind, flags.literal(True), x, x, call)
    is_above = w.define(f"fcmp ogt {kind.text} {x}, {kind.literal(_TAIL)}")
    is_below = w.define(f"fcmp ole {kind.text} {x}, {kind.literal(1 - _TAIL)}")
    is_central = w.define(f"and {flags.text} {is_above}, {is_below}")
    is_tail = w.define(f"xor {flags.text} {is_central}, {flags.literal(True)}")
    return _of_lanes(low, kind, is_tail, x, _central(low, kind, x), call)


def _central(low: Lowering, kind: Kind, x: str) -> str:
    def compute(opcode: str, a: str, b: str) -> str:
        return low.w.define(f"{opcode} {kind.text} {a}, {b}")

    def polynomial(coefficients: Sequence[float]) -> str:
        first, *others = map(kind.literal, coefficients)
        value = first
        for k, coefficient in enumerate(others):
            is_one = k == 0 and coefficients[0] == 1
            scaled = square if is_one else compute("fmul", value, square)
            value = compute("fadd", scaled, coefficient)
        return value

    y = compute("fsub", x, kind.literal(0.5))
    square = compute("fmul", y, y)
    scaled = compute("fmul", square, polynomial(_NUMERATOR))
    ratio = compute("fdiv", scaled, polynomial(_DENOMINATOR))
    total = compute("fadd", y, compute("fmul", y, ratio))
    return compute("fmul", total, kind.literal(_ROOT_TWO_PI))


def _of_lanes(
    low: Lowering, kind: Kind, mask: str, x: str, others: str, call: Callable[[str], str]
) -> str:
    """Emit the values of a function for the lanes of a mask, one after the other."""
    w, bits = low.w, f"i{kind.lanes}"
    values, left = w.allocate(kind.text), w.allocate(bits)
    choice = f"<{kind.lanes} x i1> {mask}, {kind.text} {x}, {kind.text} {others}"
    w.do(f"store {kind.text} {w.define(f'select {choice}')}, ptr {values}")
    w.do(f"store {bits} {w.define(f'bitcast <{kind.lanes} x i1> {mask} to {bits}')}, ptr {left}")
    head, inside, done = map(w.new_label, ("head", "lane", "done"))
    w.jump(head)
    w.start(head)
    lanes = w.define(f"load {bits}, ptr {left}")
    w.branch(w.define(f"icmp eq {bits} {lanes}, 0"), done, inside)
    w.start(inside)
    lane = w.define(f"call {bits} @llvm.cttz.{bits}({bits} {lanes}, i1 true)")
    place = w.define(f"zext {bits} {lane} to i64")
    address = w.define(f"getelementptr {kind.element}, ptr {values}, i64 {place}")
    number = call(w.define(f"load {kind.element}, ptr {address}"))
    w.do(f"store {kind.element} {number}, ptr {address}")
    cleared = w.define(f"and {bits} {lanes}, {w.define(f'sub {bits} {lanes}, 1')}")
    w.do(f"store {bits} {cleared}, ptr {left}")
    w.jump(head)
    w.start(done)
    return w.define(f"load {kind.text}, ptr {values}")
