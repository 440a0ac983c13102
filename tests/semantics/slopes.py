"""Programs and their worlds under derivatives: a gradient is the difference quotient of Python.

Each call of `f` becomes one of a derivative of the sum of its results, which gives the results as
well. A difference quotient is taken between worlds made anew, by running the steps before again, so
that no evaluation sees what another has changed.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import cycle
from typing import Any

import numpy as np

import wend
from tests.semantics import world
from tests.semantics.world import PLAIN, WAYS, Difference, Program

_STEP = 1e-5
_KINK = 1e-3  # the one-sided quotients of smooth functions differ by less
_TOLERANCE = 1e-6
_DIRECTION = 0.7320508, -0.4142135, 0.2360679, 0.6457513  # along which few kinks lie

Function = Callable[..., Any]


def compare(program: Program, transform: str, ways: Iterable[str] = WAYS) -> Difference | None:
    """Return the worst difference between a derivative of `f`, and plain Python and its quotients.

    Args:
        program: the program, each of whose steps calls `f` at most once.
        transform: a name of `TRANSFORMS`.
        ways: where the derivative runs.
    """
    slopes = [*_slopes(program)]

    def differentiated(fun: Function) -> Function:
        return _Checked(fun, TRANSFORMS[transform], iter(slopes))

    return world.compare(program, ways, differentiated)


class _Checked:
    """Calls of a derivative, which give the results of `f` where the derivative is right."""

    def __init__(self, fun: Function, transform: Function, slopes: Iterator[float | None]) -> None:
        self._fun, self._transform, self._slopes = fun, transform, slopes
        self._compiled = wend.function(fun)
        self._made: dict[Any, Function] = {}

    def __call__(self, *args: Any, **options: Any) -> Any:
        expected, places = next(self._slopes), _places(self._fun, args)
        if not places:
            return self._compiled(*args, **options)
        if places not in self._made:
            self._made[places] = self._transform(_with_total(self._fun), places)
        result, slope = self._made[places](args, options)
        if expected is None or abs(slope - expected) <= _TOLERANCE * (1.0 + abs(expected)):
            return result
        return f"the slope is {expected}, and {slope} is found"


def _with_total(fun: Function) -> Function:
    def loss(*args: Any, **options: Any) -> Any:
        result = fun(*args, **options)
        return _total(result), result

    return loss


def _total(result: Any) -> Any:
    """Return a weighted sum of all numbers of a result."""
    weighted = (k * np.sum(x * 1.0) for k, x in enumerate(wend.tree.leaves(result), start=1))
    return sum(weighted, start=0.0)


def _places(fun: Function, args: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the positions of arguments of floats, but of those that the world holds, too."""
    held = [x for x in vars(_module_of(fun)).values() if isinstance(x, np.ndarray)]
    return tuple(
        k
        for k, arg in enumerate(args)
        if (leaves := _leaves(arg))
        and all(isinstance(x, (float, np.ndarray)) for x in leaves)
        and not any(np.may_share_memory(x, other) for x in leaves for other in held)
    )


def _module_of(fun: Any) -> types.SimpleNamespace:
    return types.SimpleNamespace(**fun.__globals__)


def _leaves(arg: Any) -> list[Any]:
    if isinstance(arg, (list, tuple)):
        return [leaf for item in arg for leaf in _leaves(item)]
    if isinstance(arg, dict):
        return [leaf for item in arg.values() for leaf in _leaves(item)]
    return [arg]


# Transforms: of a loss and positions, a function that returns the result and the slope
def _value_and_grad(loss: Function, places: tuple[int, ...]) -> Function:
    derivative = wend.value_and_grad(loss, places, has_aux=True)

    def run(args: Any, options: Any) -> Any:
        (_, result), gradient = derivative(*args, **options)
        return result, _slope(gradient)

    return run


def _grad(loss: Function, places: tuple[int, ...]) -> Function:
    derivative = wend.grad(loss, places, has_aux=True)

    def run(args: Any, options: Any) -> Any:
        gradient, result = derivative(*args, **options)
        return result, _slope(gradient)

    return run


def _vjp(loss: Function, places: tuple[int, ...]) -> Function:
    def run(args: Any, options: Any) -> Any:
        fun = _of_places(loss, places, args, options)
        _, pullback, result = wend.vjp(fun, *(args[k] for k in places), has_aux=True)
        return result, _slope(pullback(1.0))

    return run


def _jvp(loss: Function, places: tuple[int, ...]) -> Function:
    def run(args: Any, options: Any) -> Any:
        fun = _of_places(loss, places, args, options)
        primals = tuple(args[k] for k in places)
        tangents = _moved(tuple(_zeros(x) for x in primals), 1.0)
        _, slope, result = wend.jvp(fun, primals, tangents, has_aux=True)
        return result, float(slope)

    return run


TRANSFORMS: dict[str, Function] = {
    "value_and_grad": _value_and_grad,
    "grad": _grad,
    "vjp": _vjp,
    "jvp": _jvp,
}


def _of_places(loss: Function, places: tuple[int, ...], args: Any, options: Any) -> Function:
    def fun(*moving: Any) -> Any:
        whole = list(args)
        for k, x in zip(places, moving, strict=True):
            whole[k] = x
        return loss(*whole, **options)

    return fun


def _slope(gradient: Any) -> float:
    """Return the derivative along the direction."""
    parts = zip(_leaves(gradient), cycle(_DIRECTION), strict=False)
    return float(sum(d * np.sum(leaf * _ramp(leaf)) for leaf, d in parts))


def _moved(arg: Any, size: float) -> Any:
    """Return an argument, or several, moved along the direction."""
    directions = cycle(_DIRECTION)

    def moved(x: Any) -> Any:
        if isinstance(x, (list, tuple)):
            return type(x)([moved(item) for item in x])
        if isinstance(x, dict):
            return {key: moved(item) for key, item in x.items()}
        return x + size * next(directions) * _ramp(x)

    return moved(arg)


def _zeros(arg: Any) -> Any:
    if isinstance(arg, (list, tuple)):
        return type(arg)([_zeros(item) for item in arg])
    if isinstance(arg, dict):
        return {key: _zeros(item) for key, item in arg.items()}
    return arg * 0.0


def _ramp(x: Any) -> Any:
    """Return a weight for each element, so that few kinks lie along them."""
    if not isinstance(x, np.ndarray) or x.ndim == 0:
        return 1.0
    return 1.0 + 0.3 * np.arange(x.size).reshape(x.shape)


def _slopes(program: Program) -> Iterator[float | None]:
    """Yield the slope of each call, or None where it has none."""
    calls = [k for k, step in enumerate(program.steps) if step.startswith("f(")]
    for number, k in enumerate(calls):
        part = Program(program.name, program.source, program.steps[: k + 1])
        values = [_value(part, number, size) for size in (-_STEP, 0.0, _STEP)]
        yield _quotient(*values)


def _quotient(below: float | None, value: float | None, above: float | None) -> float | None:
    if below is None or value is None or above is None:
        return None
    slope = (above - below) / (2 * _STEP)
    bend = (above - 2 * value + below) / _STEP
    return slope if abs(bend) <= _KINK * (1.0 + abs(slope)) else None


def _value(program: Program, number: int, size: float) -> float | None:
    """Return the total of a program's last call, number `number`, with moved arguments."""
    totals: list[float] = []

    def moving(fun: Function) -> Function:
        calls = iter(range(number + 1))

        def run(*args: Any, **options: Any) -> Any:
            if next(calls) == number:
                places = _places(fun, args)
                moved = iter(_moved(tuple(args[k] for k in places), size))
                args = tuple(next(moved) if k in places else x for k, x in enumerate(args))
                totals.append(float(_total(fun(*args, **options))))
                return None
            return fun(*args, **options)

        return run

    with suppress(Exception):
        for _ in world.run(program, PLAIN, moving):
            pass
    return totals[0] if totals else None
