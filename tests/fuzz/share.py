"""What of a program's costly ways is run: all in the tests, a share in each batch of a long run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Share:
    """Ways in which a program is run, besides plainly and by the interpreter.

    Attributes:
        values: those whose results are compared, of those that compile.
        gradients: those whose gradients are.
        tangents: those whose tangents are.
        second: those whose second gradients are.
        calls: how many calls are made, the last ones: their sizes differ, so a trace more each.
        is_nested: whether derivatives are of a `wend.function`, and not of the plain function.
    """

    values: tuple[str, ...] = ()
    gradients: tuple[str, ...] = ()
    tangents: tuple[str, ...] = ()
    second: tuple[str, ...] = ()
    calls: int = 1
    is_nested: bool = False


NATIVE = ("strict", "native")
WHOLE = Share(
    values=NATIVE,
    gradients=("eager", *NATIVE),
    tangents=("strict",),
    second=NATIVE,
    calls=9,
)
# A trace and a compilation take about the same time, and all else little: each has one of either
# beyond the trace of the value and that of the gradient, or two of one.
TURNS = (
    Share(values=("strict",), calls=2, is_nested=True),
    Share(gradients=("strict",), is_nested=True),
    Share(tangents=("strict",), is_nested=True),
    Share(gradients=("native", "eager")),
    Share(values=("native",), calls=2, is_nested=True),
    Share(second=("strict",), is_nested=True),
    Share(tangents=("native",)),
    Share(second=("native",), is_nested=True),
)
