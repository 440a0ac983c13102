"""Operations with visible effects: they take and give the world token, which orders them (D16)."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from wend.base.errors import TapeLimitError, TypeMismatchError
from wend.base.lazy.dataclass import dataclass
from wend.base.source import at
from wend.ir.dtypes import BOOL
from wend.ir.graph import Graph, Node
from wend.ir.op import Effect, Linear, Op, no_gradient
from wend.ir.types import TOKEN, TensorType, TokenType, Type
from wend.ops import creating
from wend.ops.shapes import tensor_of
from wend.runtime.host_results import noted_results


class ErrorTemplate(Protocol):
    """An exception to make in the run, of a class with arguments or attributes of its own."""

    error: type[BaseException]

    def run(self, values: Sequence[Any]) -> Any:
        """Return the exception, with the values that the run has."""


# An exception class, the name of one that every process has, or how to make an exception
ErrorClass: TypeAlias = str | type[BaseException] | ErrorTemplate


def _check_token(type: Type) -> None:
    if type != TOKEN:
        raise TypeMismatchError(f"the first operand must be a token, not {type}")


# Format specs of an array that stands for a list (of Python numbers, or of arrays and scalars), or,
# with its one element, for an array without axes
LIST_OF_NUMBERS, LIST, WITHOUT_AXES = "list of numbers", "list", "array without axes"
TEXTS = "one of the texts "


def spec_of_texts(texts: Sequence[str]) -> str:
    """Return the format spec of a number that stands for one of several texts."""
    return TEXTS + " ".join(text.encode("utf-8", "surrogatepass").hex() for text in texts)


class _TextNumber:
    """A scalar among the values of a format string with such specs."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __format__(self, spec: str) -> str:
        if not spec.startswith(TEXTS):
            return format(self.value, spec)
        text = spec.removeprefix(TEXTS).split(" ")[int(self.value)]
        return bytes.fromhex(text).decode("utf-8", "surrogatepass")

    def __str__(self) -> str:
        return str(self.value)

    def __repr__(self) -> str:
        return repr(self.value)


class _Elementwise:
    """An array to be formatted elementwise: a format spec applies to its elements."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self.array)
        if spec == LIST_OF_NUMBERS:
            return repr(self.array.tolist())
        if spec == LIST:
            return repr([*self.array])
        if spec == WITHOUT_AXES:
            return repr(self.array.reshape(()))
        return np.array2string(self.array, formatter={"all": lambda x: format(x, spec)})

    def __str__(self) -> str:
        return str(self.array)

    def __repr__(self) -> str:
        return repr(self.array)


def format_values(format: str, values: Sequence[Any]) -> str:
    """Return a format string with values filled in; a spec for an array applies to its elements."""
    formattable = [_Elementwise(x) if isinstance(x, np.ndarray) and x.ndim else x for x in values]
    if TEXTS in format:
        formattable = [x if isinstance(x, _Elementwise) else _TextNumber(x) for x in formattable]
    return format.format(*formattable)


STDERR = "stderr"  # in place of `sys.stderr`, which may be another stream in the run


def _infer_print(token: Type, *values: Type, format: str, **how: Any) -> TokenType:
    _check_token(token)
    return TOKEN


def _kernel_print(token: Any, *values: Any, format: str, file: Any = None, **how: Any) -> Any:
    file = sys.stderr if isinstance(file, str) else file
    print(format_values(format, values), file=file, **how)
    return token


# Prints the values by a format; `end`, `file` and `flush` are as in Python's `print`
print_ = Op("print", _infer_print, _kernel_print, no_gradient(), effect=Effect.WORLD)


# Functions that NumPy's library does not export: normal numbers of `RandomState`; `random` and an
# integer below a bound of Python's `random.Random`
POLAR, TWISTER, TWISTER_BELOW = "polar", "twister", "twister_below"


@dataclass(eq=False, slots=True)
class NumberDraw:
    """A draw of numbers that native code makes, mostly by a function of NumPy's library.

    Attributes:
        function: its name there, or one of `POLAR`, `TWISTER` and `TWISTER_BELOW`, which are
            wend's: with two parameters, a number is multiplied by the second, and added to the
            first; an integer is below the second.
        operands: its parameters, and last the address of the bit generator. They are the last
            operands of the node.
        is_legacy: whether it is one of `RandomState`: the address is then that of the state of its
            normal numbers, which begins with the address of the bit generator.
        lock: what those hold who draw from the generator; None if the run has made it.
    """

    function: str
    operands: list[Any]
    is_legacy: bool = False
    lock: Any = None


class HostAction(Protocol):
    """A call of Python for its effect, such as a line of a log or the draw of a random number."""

    name: str
    errors: tuple[type[BaseException], ...]  # that it may raise
    remark: str | None  # what `explain()` says of it, before its line
    only_reads: bool  # whether nobody notices the call: it changes nothing
    draw: NumberDraw | None  # how native code does the same without Python

    def run(self, values: Sequence[Any]) -> Any:
        """Make the call; return an array or a number, or None."""

    def by_python(self) -> HostAction:
        """Return the same call, which native code leaves to Python."""


def _infer_action(
    token: Type, *values: Type, action: HostAction, result: TensorType | None
) -> tuple[Type, ...]:
    _check_token(token)
    return (TOKEN,) if result is None else (TOKEN, result)


def _kernel_action(token: Any, *values: Any, action: HostAction, result: TensorType | None) -> Any:
    noted = noted_results.get()
    x = action.run(values) if noted is None else noted.of(action.run, values)
    return token if result is None else (token, np.asarray(x, result.dtype)[()])


# Calls Python; the type of what it gives is `result`, None if that is nothing
host_action = Op(
    "host_action",
    _infer_action,
    _kernel_action,
    no_gradient(),
    effect=Effect.WORLD,
    raises=lambda node: node.attrs["action"].errors,
    is_portable=False,
)


def only_draws(graph: Graph) -> bool:
    """Return whether all that a graph does to the world are draws that native code may make."""
    return all(
        node.op is host_action and node.attrs["action"].draw is not None
        for node in graph.walk()
        if node.op.effect is Effect.WORLD
    )


def error_note(node: Node) -> str:
    """Return the note on an error that a node has raised: the operation, and the user's line."""
    if node.op is checked:
        return f"raised{at(node.source)}"
    if node.op is not raise_if:
        name = node.attrs["action"].name if node.op is host_action else node.op.name
        return f"in {node.attrs.get('of', name)}{at(node.source)}"  # a part of what was called
    is_assertion = error_class(node.attrs["error"]) is AssertionError
    return f"{'in assert' if is_assertion else 'raised'}{at(node.source)}"


def risk(node: Node) -> str:
    """Return how messages name a node that may raise an error in the run."""
    if node.op is raise_if and node.operands[1].node is not None:
        is_certain = node.operands[1].node.op is creating.constant
        return "`raise`" if is_certain else "the check"
    return "the check" if node.op in (raise_if, checked) else f"`{node.op.name}`"


def is_noticed(node: Node) -> bool:
    """Return whether somebody may notice that a node has run, but for an error that it raises."""
    if node.op is host_action and node.attrs["action"].only_reads:
        return False
    own = node.op.effect
    return own not in (Effect.NONE, Effect.CHECK) or any(
        any(map(is_noticed, region.nodes)) for region in node.regions
    )


def error_class(name: ErrorClass) -> type[BaseException]:
    """Return the exception class that `raise_if` refers to."""
    if isinstance(name, str):
        return _NAMED_ERRORS[name]
    return name if isinstance(name, type) else name.error


def error_name(error: type[BaseException]) -> ErrorClass:
    """Return how `raise_if` refers to an exception class: by name where every process has it."""
    return error.__name__ if _NAMED_ERRORS.get(error.__name__) is error else error


# The classes that the text of a graph names; others are entries of its side table
_NAMED_ERRORS: dict[str, type[BaseException]] = {
    error.__name__: error
    for error in (*vars(builtins).values(), np.linalg.LinAlgError, TapeLimitError)
    if isinstance(error, type) and issubclass(error, BaseException)
}


def _exception(error: ErrorClass, text: str | None, values: Sequence[Any]) -> BaseException:
    if not isinstance(error, (str, type)):
        exception: BaseException = error.run(values)
        return exception
    return error_class(error)(*(() if text is None else (format_values(text, values),)))


def _infer_raise_if(
    token: Type,
    predicate: Type,
    *values: Type,
    error: ErrorClass,
    text: str | None,
) -> TokenType:
    _check_token(token)
    if predicate != TensorType(BOOL, ()):
        raise TypeMismatchError(f"the predicate must be a bool scalar, not {predicate}")
    return TOKEN


def _kernel_raise_if(
    token: Any, predicate: Any, *values: Any, error: ErrorClass, text: str | None
) -> Any:
    if predicate:
        raise _exception(error, text, values)
    return token


# Raises an exception whose text is formatted from the values (D36)
raise_if = Op(
    "raise_if",
    _infer_raise_if,
    _kernel_raise_if,
    no_gradient(),
    effect=Effect.CHECK,
    raises=lambda node: (error_class(node.attrs["error"]),),
)


def _infer_after(x: Type, token: Type) -> Type:
    if token != TOKEN:
        raise TypeMismatchError(f"the second operand must be a token, not {token}")
    return x


def _pull_back_after(b: Any, node: Node, ct: Any, index: int) -> Any:
    return ct


# An order of its own, for a graph without a world: a rule's backward graph
token = Op("token", lambda: TOKEN, lambda: None, no_gradient())
# The first operand, where the checks before a token have passed; without its use they do not run
after = Op("after", _infer_after, lambda x, token: x, Linear(_pull_back_after, (0,)), shares=0)


def _infer_checked(
    x: Type, *predicates: Type, errors: Sequence[ErrorClass], texts: Sequence[str]
) -> TensorType:
    for predicate in predicates:
        if predicate != TensorType(BOOL, ()):
            raise TypeMismatchError(f"the predicate must be a bool scalar, not {predicate}")
    return tensor_of(x)


def _kernel_checked(
    x: Any, *predicates: Any, errors: Sequence[ErrorClass], texts: Sequence[str]
) -> Any:
    for predicate, error, text in zip(predicates, errors, texts, strict=True):
        if predicate:
            raise error_class(error)(format_values(text, [x]))
    return x


# A number, unchanged; the first predicate that holds raises its exception, with the number for
# `{}`. It has no token: it is part of the operation that makes the number or takes it (D36)
checked = Op(
    "check_number",
    _infer_checked,
    _kernel_checked,
    Linear(lambda b, node, ct, index: ct, operands=(0,)),
    raises=lambda node: tuple(map(error_class, node.attrs["errors"])),
    error_attrs=("errors", "texts"),
)
