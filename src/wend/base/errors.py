"""The errors wend raises. Each is also the built-in error that a NumPy user would expect."""

from __future__ import annotations

import re
from collections.abc import Iterable
from types import CodeType
from typing import Any, ClassVar

from wend.base import refusals
from wend.base.marked_text import without_marks


class WendError(Exception):
    """Base of every error that wend itself raises.

    While a function is traced most are refusals: no handler in it can catch them (D45).

    Attributes:
        is_refusal: whether neither Python nor NumPy would raise it there.
        changed_outside: the arrays of outside, or places in objects, that the function changes.

    Example:
        >>> import wend
        >>> try:
        ...     wend.grad(lambda x: (x, x))(1.0)
        ... except wend.WendError as error:
        ...     print(type(error).__name__, isinstance(error, TypeError))
        NotDifferentiableError True
    """

    is_refusal: ClassVar[bool] = True
    changed_outside: tuple[Any, ...] = ()

    def __init__(self, /, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.is_refusal:
            refusals.note(self)


class TypeMismatchError(WendError, TypeError):
    """A dtype, a kind of value or a predicate is not accepted by the operation."""


class ShapeError(WendError, ValueError):
    """Shapes do not fit together, as in NumPy."""

    is_refusal = False


class StructureError(WendError, ValueError):
    """Two pytrees that must have the same structure differ."""


class CarryError(WendError, TypeError, ValueError):
    """A loop's body returns a carry of another type than it takes, or branches disagree."""


class VariableError(WendError, ValueError):
    """A variable is created where it cannot be, has no value yet, or no longer exists."""


class TapeError(WendError, RuntimeError):
    """A `GradientTape` is used in an order, or in a recording, that it does not allow."""


class TapeLimitError(WendError, MemoryError):
    """The records of a loop would take more memory than `config(tape_limit=…)` allows.

    Example:
        >>> import wend
        >>> def fun(x, n):
        ...     for _ in range(n):
        ...         x = x + 0.1 * x * x
        ...     return x
        >>> with wend.config(tape_limit="1KiB"):
        ...     try:
        ...         wend.grad(fun)(1e-6, 100_000)
        ...     except wend.TapeLimitError as error:
        ...         print(str(error).partition("would")[2].splitlines()[0])
         take more than tape_limit=1 KiB after 129 trips.
    """

    is_refusal = False


class SpillError(WendError, OSError):
    """The tape of a loop could not be written to `config(spill_dir=…)`, or read back from it.

    Example:
        >>> import wend
        >>> def fun(x):
        ...     return wend.fori_loop(0, 9, lambda k, y: y * y, x, memory="spill")
        >>> with wend.config(spill_dir="/no/such/folder"):
        ...     try:
        ...         wend.grad(fun)(1.0)
        ...     except wend.SpillError as error:
        ...         print(str(error).rpartition("'/no")[2].splitlines()[0])
        /such/folder': No such file or directory.
    """

    is_refusal = False


class LeakedValueError(WendError, TypeError):
    """A traced value was used outside the trace that made it."""


class AliasError(WendError, TypeError):
    """An array changes that may or may not share memory with another: only the run can tell."""


class SideEffectError(WendError, TypeError):
    """A traced function changes what outlives the call, which a graph cannot repeat."""


class ConcreteValueError(WendError, TypeError):
    """Python needed the number behind a traced value (`if x:`, `float(x)`, `np.asarray(x)`).

    Attributes:
        summary: what needed the number, the first line of the message.
        code: the code that needed it, where it is known.
        sources: the arguments that the number was computed from, if all are integers.
    """

    summary: str = ""
    sources: tuple[str, ...] = ()
    code: CodeType | None = None


class MissingRuleError(WendError, NotImplementedError):
    """An operation has no derivative, kernel or emitter where one is needed."""


class NotDifferentiableError(WendError, TypeError):
    """A gradient was asked for where none exists (an integer argument, a vector result)."""


class StagedRaiseError(WendError):
    """An exception is raised, or caught, depending on traced values."""


class NestingError(WendError, RecursionError):
    """Calls, statements or containers are nested more deeply than Python's stack allows."""

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

    @classmethod
    def of_statements(cls, name: str, where: str) -> NestingError:
        """Return the error for a function whose statements or expressions are nested too deeply."""
        return cls(
            explain(
                f"`{name}`{where} has statements or expressions nested hundreds deep, and "
                "recording them exceeds Python's recursion limit.",
                cure="split it into functions, or raise the limit with sys.setrecursionlimit.",
            )
        )

    @classmethod
    def of_tree(cls) -> NestingError:
        """Return the error for containers that are nested too deeply."""
        return cls(
            explain(
                "lists, dicts or tuples are nested a thousand levels deep, or contain themselves.",
                cure="keep the values in one array or flat list, and the structure in indices.",
            )
        )


class GraphError(WendError, ValueError):
    """The verifier found a fault in a graph."""


class ParseError(WendError, ValueError):
    """The text of a graph cannot be read."""


class SaveError(WendError, TypeError):
    """A function or an object holds what a file cannot, such as a call of Python."""


class LoadError(WendError, ValueError):
    """A file is not one that wend has saved, or it was changed."""


class UnsupportedError(WendError, NotImplementedError):
    """A backend does not support something that the graph needs, or a graph what Python does."""


class NotFiniteError(WendError, FloatingPointError):
    """A result has a NaN or an inf, and `config(nans=True)` says where it came from."""

    is_refusal = False


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
    return without_marks("\n".join(lines))


# For arrays that are not traced, which traced values would change
CURE_OF_OUTSIDE = (
    "pass it as an argument, in a dataclass if it is an attribute; keep it in a wend.Variable; or "
    "change a copy: x = x.copy() before."
)


def change_of_outside(array: Any, what: str, other_cure: str = "") -> TypeMismatchError:
    """Return the error for an array of outside that traced values would change."""
    error = TypeMismatchError(explain(what, cure=other_cure + CURE_OF_OUTSIDE))
    error.changed_outside = (array,)
    return error


def listed(items: Iterable[object]) -> str:
    """`a, b and c`, for messages."""
    words = [str(item) for item in items]
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"
