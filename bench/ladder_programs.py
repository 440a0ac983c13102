"""Programs of so many operations, as text: those whose first calls `bench.ladder` measures.

Each kind is a function of a number of operations, whether JAX runs the program, and NumPy. It
returns the text of a module with a function `program`, and its argument.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Made = tuple[str, Any]
NAMES = "xyz"
TRIPS = 10  # of each loop
OPERATIONS = (  # in turn, so that numbers stay small
    "{a} = np.sin({b})",
    "{a} = {a} * {b}",
    "{a} = {b} + {a}",
    "{a} = np.tanh({a})",
    "{a} = {a} - 0.5",
)


def operations(count: int, first: int = 0) -> list[str]:
    """Return so many lines, each an operation on `x`, `y` and `z`."""
    return [
        OPERATIONS[k % len(OPERATIONS)].format(a=NAMES[k % 3], b=NAMES[(k + 1) % 3])
        for k in range(first, first + count)
    ]


def indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def module(body: Sequence[str], is_jax: bool, before: Sequence[str] = ()) -> str:
    """Return the text of a module whose function has this body."""
    library = ("import jax", "import jax.numpy as np") if is_jax else ("import numpy as np",)
    return "\n".join((*library, *before, "def program(p):", *indented(body), ""))


def of_three(lines: Sequence[str], is_jax: bool, before: Sequence[str] = ()) -> str:
    """Return a program over three numbers or arrays."""
    body = ["x, y, z = p", *lines, "return np.sum(x + y + z)"]
    return module(body, is_jax, before)


def looped(lines: Sequence[str], is_jax: bool) -> list[str]:
    """Return a loop around lines."""
    if not is_jax:
        return [f"for k in range({TRIPS}):", *indented(lines)]
    body = ["x, y, z = carry", *lines, "return x, y, z"]
    call = f"x, y, z = jax.lax.fori_loop(0, {TRIPS}, trip, (x, y, z))"
    return ["def trip(k, carry):", *indented(body), call]


def numbers() -> Any:
    return (0.3, 0.5, 0.7)


def vectors(np: Any) -> Any:
    return tuple(np.linspace(0.1, 0.9, 50) + 0.1 * k for k in range(3))


def scalars(count: int, is_jax: bool, np: Any) -> Made:
    """Straight code over numbers."""
    return of_three(operations(count), is_jax), numbers()


def arrays(count: int, is_jax: bool, np: Any) -> Made:
    """Straight code over arrays of 50 numbers."""
    return of_three(operations(count), is_jax), vectors(np)


def loop(count: int, is_jax: bool, np: Any) -> Made:
    """One loop."""
    return of_three(looped(operations(count), is_jax), is_jax), numbers()


def loops(count: int, is_jax: bool, np: Any) -> Made:
    """Loops in a row, of ten operations each."""
    rows = (looped(operations(10, 10 * k), is_jax) for k in range(count // 10))
    return of_three([line for row in rows for line in row], is_jax), numbers()


def nested(count: int, is_jax: bool, np: Any) -> Made:
    """Loops in loops, in a row, over arrays; ten operations each."""
    rows = (looped(looped(operations(10, 10 * k), is_jax), is_jax) for k in range(count // 10))
    return of_three([line for row in rows for line in row], is_jax), vectors(np)


def unrolled(count: int, is_jax: bool, np: Any) -> Made:
    """A recurrent network without its loop; four operations a step."""
    steps = range(count // 4)
    body = ["w, v, h = p", *(f"h = np.tanh(w @ h + v[{k % 5}])" for k in steps), "return np.sum(h)"]
    w = np.linspace(-0.5, 0.5, 64).reshape(8, 8)
    return module(body, is_jax), (w, np.linspace(0.1, 0.9, 40).reshape(5, 8), np.ones(8))


def leaves(count: int, is_jax: bool, np: Any) -> Made:
    """A dict of arrays; three operations each."""
    body = ["total = 0.0", "for k in p:", "    total = total + np.sum(p[k] * p[k])", "return total"]
    made = {f"w{k}": np.full((4, 3), 1.0 / (k + 1)) for k in range(count // 3)}
    return module(body, is_jax), made


def ifs(count: int, is_jax: bool, np: Any) -> Made:
    """Branches in a row: a test, and an operation on each side."""
    lines: list[str] = []
    for k in range(count // 3):
        a, b = NAMES[k % 3], NAMES[(k + 1) % 3]
        then, other = f"{a} * {b}", f"{a} - 0.5 * {b}"
        if is_jax:
            sides = f"lambda {a}, {b}: {then}, lambda {a}, {b}: {other}"
            lines.append(f"{a} = jax.lax.cond({b} > 0.1, {sides}, {a}, {b})")
        else:
            lines += [f"if {b} > 0.1:", f"    {a} = {then}", "else:", f"    {a} = {other}"]
    return of_three(lines, is_jax), numbers()


def functions(count: int, is_jax: bool, np: Any) -> Made:
    """Calls of ten small functions, of five operations each."""
    before: list[str] = []
    for k in range(10):
        body = [*operations(5, 7 * k), "return x, y, z"]
        before += [f"def step{k}(x, y, z):", *indented(body)]
    calls = [f"x, y, z = step{k % 10}(x, y, z)" for k in range(count // 5)]
    return of_three(calls, is_jax, before), numbers()


KINDS: dict[str, Callable[[int, bool, Any], Made]] = {
    made.__name__: made
    for made in (scalars, arrays, loop, loops, nested, unrolled, leaves, ifs, functions)
}
