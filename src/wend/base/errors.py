"""The errors wend raises. Each is also the built-in error that a NumPy user would expect."""

from __future__ import annotations

import re
from collections.abc import Iterable
from types import CodeType


class WendError(Exception):
    """Base of every error that wend itself raises.

    Example:
        >>> import wend
        >>> try:
        ...     wend.grad(lambda x: (x, x))(1.0)
        ... except wend.WendError as error:
        ...     print(type(error).__name__, isinstance(error, TypeError))
        NotDifferentiableError True
    """


class TypeMismatchError(WendError, TypeError):
    """A dtype, a kind of value or a predicate is not accepted by the operation."""


class ShapeError(WendError, ValueError):
    """Shapes do not fit together."""


class StructureError(WendError, ValueError):
    """Two pytrees that must have the same structure differ."""


class CarryError(WendError, TypeError, ValueError):
    """A loop's body returns a carry of another type than it takes, or branches disagree."""


class VariableError(WendError, ValueError):
    """A variable is created where it cannot be, has no value yet, or no longer exists."""


class TapeError(WendError, RuntimeError):
    """A `GradientTape` is used in an order, or in a recording, that it does not allow."""


class LeakedValueError(WendError, TypeError):
    """A traced value was used outside the trace that made it."""


class AliasError(WendError, TypeError):
    """An array changes that may or may not share memory with another: only the run can tell."""


class ConcreteValueError(WendError, TypeError):
    """Python needed the number behind a traced value (`if x:`, `float(x)`, `np.asarray(x)`).

    Attributes:
        summary: what needed the number, the first line of the message.
        code: the code that needed it, where it is known.
    """

    summary: str = ""
    code: CodeType | None = None


class MissingRuleError(WendError, NotImplementedError):
    """An operation has no derivative, kernel or emitter where one is needed."""


class NotDifferentiableError(WendError, TypeError):
    """A gradient was asked for where none exists (an integer argument, a vector result)."""


class NestingError(WendError, RecursionError):
    """The calls of functions are nested more deeply than Python's stack allows."""

    @classmethod
    def of(cls, count: int) -> NestingError:
        """Return the error for a nesting of this many functions."""
        return cls(
            explain(
                f"{count} functions call each other, and recording all of them exceeds Python's "
                "recursion limit.",
                cure="raise it with sys.setrecursionlimit, or decorate fewer of them.",
            )
        )


class GraphError(WendError, ValueError):
    """The verifier found a fault in a graph."""


class ParseError(WendError, ValueError):
    """The text of a graph cannot be read."""


class UnsupportedError(WendError, NotImplementedError):
    """A backend does not support something that the graph needs."""


class AssertionFailed(WendError, AssertionError):
    """A `wend.assert_` was false at run time."""


class NotFiniteError(WendError, FloatingPointError):
    """A result has a NaN or an inf, and `config(nans=True)` says where it came from."""


class MismatchError(WendError, AssertionError):
    """Two backends computed different results, under `config(compare=True)`."""


class RetraceWarning(UserWarning):
    r"""A function was traced at many of its recent calls; says for which arguments.

    Example:
        >>> import warnings, wend
        >>> power = wend.function(lambda x, n: x**n, static_argnums=1)
        >>> with warnings.catch_warnings(record=True) as found:
        ...     warnings.simplefilter("always")
        ...     for n in range(8):
        ...         _ = power(2.0, n)
        >>> print(str(found[0].message).split("\n")[0])
        <lambda> was traced 5 times in its last 5 calls: each trace costs as much as many calls.
    """


class StaleTraceWarning(UserWarning):
    r"""A trace goes on with a Python value that has changed since; says which.

    Example:
        >>> import types, warnings, wend
        >>> options = types.SimpleNamespace(rate=0.5)
        >>> decayed = wend.function(lambda x: x * options.rate)
        >>> decayed(2.0)
        np.float64(1.0)
        >>> options.rate = 0.25
        >>> with warnings.catch_warnings(record=True) as found:
        ...     warnings.simplefilter("always")
        ...     decayed(2.0)
        np.float64(1.0)
        >>> print(str(found[0].message).split("\n")[0])
        <lambda> still uses the values of its trace: options.rate is 0.25, not 0.5.
    """


_PLACE = re.compile(r"\bat \S+:\d+")


def add_location(error: WendError, place: str) -> None:
    """Add the location to the first line of an error's message, unless it has one."""
    first, *other_lines = str(error).split("\n")
    if not _PLACE.search(first):
        stop = "." if first.endswith(".") else ""
        error.args = ("\n".join([first.removesuffix(".") + place + stop, *other_lines]),)


def explain(what: str, *details: str | None, cure: str | None = None) -> str:
    """Join the parts of an error message: what happened, the facts, the cure."""
    lines = [what, *(f"  {detail}" for detail in details if detail)]
    if cure:
        lines.append(f"  To fix it: {cure}")
    return "\n".join(lines)


def listed(items: Iterable[object]) -> str:
    """`a, b and c`, for messages."""
    words = [str(item) for item in items]
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"
