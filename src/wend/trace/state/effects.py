"""Effects in traced functions: they happen at run time, in program order (D16)."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from wend.base.errors import TypeMismatchError, explain
from wend.base.source import at, user_source
from wend.eager.dispatch import Staged
from wend.eager.promotion import is_weak
from wend.ir.types import TensorType
from wend.numpy.elementwise import logical_not
from wend.ops import effects as ops
from wend.trace.arrays.concrete_array import ConcreteTracedArray
from wend.trace.arrays.shown_text import ShownChoice, ShownList, ShownText
from wend.trace.recording.arguments import is_zero_dim
from wend.trace.recording.checks import check_predicate
from wend.trace.recording.recording import current
from wend.trace.state.templates import Template


def print(
    *values: Any,
    sep: str = " ",
    end: str = "\n",
    file: Any = None,
    flush: bool = False,
    format: str | None = None,
    **fields: Any,
) -> None:
    """Print values when the function runs, as often as it runs.

    In captured code `print` does the same, and f-strings with traced values can be printed.

    Args:
        *values: arrays, plain or traced, also in lists, tuples and dicts; other objects are
            printed as they were when traced.
        sep: the separator between values.
        end: the text after the last value.
        file: the output stream, as for Python's `print`.
        flush: whether to flush the stream.
        format: in place of `sep`, a format string for the values and the fields:
            `"{:.3f} of {n}"`. For an array it applies to each element.
        **fields: values that `format` refers to by name.

    Raises:
        TypeMismatchError: `format` has a field without a value, or a spec that does not fit the
            dtype.

    Example:
        >>> import wend
        >>> wend.print("x is", 3.0)
        x is 3.0
        >>> step = wend.function(lambda x, k: wend.print(x, k=k, format="{k:>3}: {:.2f}"))
        >>> step(0.125, 7)
          7: 0.12
    """
    if format is None and fields:
        raise TypeMismatchError(
            explain(
                f"print{at(user_source())}: {', '.join(fields)} belongs to no format.",
                cure='name it in one: wend.print(x, n=n, format="{} of {n}").',
            )
        )
    if format is None:
        template = text_of_print(values, sep)
    else:
        template = Template.of(format, values, fields, by_element=True)
    write(template, end, file, flush)


def text_of_print(values: Iterable[Any], separator: str) -> Template:
    """Return the text that `print` writes for some values."""
    template = Template()
    for k, value in enumerate(values):
        if k:
            template.value(separator)
        template.value(value, "s")
    return template


def write(template: Template, end: str = "\n", file: Any = None, flush: bool = False) -> None:
    """Write a text when the function runs, as often as it runs.

    A stream that is `sys.stdout` or `sys.stderr` is what these are in the run.
    """
    if isinstance(end, ShownText):
        template.value(end)
        end = ""
    if file is sys.stdout:
        file = None
    elif file is sys.stderr:
        file = ops.STDERR
    attrs: dict[str, Any] = {"format": str(template)}
    options = {"end": end, "file": file, "flush": flush}
    defaults = {"end": "\n", "file": None, "flush": False}
    attrs |= {name: value for name, value in options.items() if value is not defaults[name]}
    recording = current()
    if recording is None:
        assert ops.print_.kernel is not None
        ops.print_.kernel(None, *template.arrays, **attrs)
        return
    recording.emit(ops.print_, template.arrays, attrs)


class DeferredCall:
    """A call of Python that the run makes, with the values that it has then.

    Args:
        name: its name for the user.
        function: what to call.
        arguments: its arguments: texts and numbers may be traced, the others are passed as they
            are.
        errors: the exceptions that it may raise.
        remark: what `explain()` says of it, before its line.
        only_reads: whether nobody notices the call: it changes nothing.
        draw: how native code does the same without Python.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        arguments: Sequence[Any],
        errors: tuple[type[BaseException], ...] = (),
        remark: str | None = None,
        only_reads: bool = False,
        draw: ops.NumberDraw | None = None,
    ) -> None:
        self.name, self._function, self.errors, self.remark = name, function, errors, remark
        self.only_reads, self.draw = only_reads, draw
        self._by_python: DeferredCall | None = None
        self.arrays: list[Any] = []
        self._makers = [self._maker(argument) for argument in arguments]
        self.arrays += [] if draw is None else draw.operands

    def __repr__(self) -> str:
        return f"<call of {self.name}>"

    def _maker(self, argument: Any) -> Callable[[Sequence[Any]], Any]:
        """Return what makes an argument from the values of the run."""
        start = len(self.arrays)
        if isinstance(argument, ShownChoice):
            argument = str(argument)
        if isinstance(argument, ShownText):
            template = Template.of(argument)
            format, stop = str(template), start + len(template.arrays)
            self.arrays += template.arrays
            return lambda values: ops.format_values(format, values[start:stop])
        if isinstance(argument, ShownList):
            array, spec = argument.items_to_show()
            self.arrays.append(array)
            if spec == ops.LIST_OF_NUMBERS:
                return lambda values: values[start].tolist()
            return lambda values: [*values[start]]
        if isinstance(argument, ConcreteTracedArray) and not isinstance(argument, Staged):
            elements = np.array(np.ndarray.view(argument, np.ndarray))
            return lambda values: elements.copy()
        if not isinstance(argument, Staged):
            return lambda values: argument
        self.arrays.append(argument)
        if is_weak(argument):
            return lambda values: values[start].item()
        if is_zero_dim(argument):
            return lambda values: np.array(values[start])
        return lambda values: values[start]

    def run(self, values: Sequence[Any]) -> Any:
        """Make the call and return what it returns."""
        return self._function(*(make(values) for make in self._makers))

    def by_python(self) -> DeferredCall:
        """Return the same call, which native code leaves to Python: one for all graphs."""
        if self._by_python is None:
            self._by_python = self if self.draw is None else copy.copy(self)
            self._by_python.draw = None
        return self._by_python


def call_in_run(
    name: str,
    function: Callable[..., Any],
    *arguments: Any,
    result: TensorType | None = None,
    errors: tuple[type[BaseException], ...] = (),
    remark: str | None = None,
    only_reads: bool = False,
    draw: ops.NumberDraw | None = None,
) -> Any:
    """Call Python when the function runs, in order with its other effects.

    Args:
        name: its name for the user.
        function: what to call.
        *arguments: its arguments; texts and numbers may be traced.
        result: the type of what it returns; None if that is ignored.
        errors: the exceptions that it may raise, which handlers around it do not catch.
        remark: what `explain()` says of it, before its line.
        only_reads: whether nobody notices the call: it changes nothing.
        draw: how native code does the same without Python.
    """
    recording = current()
    assert recording is not None
    action = DeferredCall(name, function, arguments, errors, remark, only_reads, draw)
    attrs = {"action": action, "result": result}
    results = recording.emit(ops.host_action, action.arrays, attrs)
    return results[0] if results else None


def assert_(condition: Any, message: str = "", *values: Any, **fields: Any) -> None:
    """Raise an error unless the condition holds when the function runs.

    In captured code `assert test, message` does the same.

    Args:
        condition: a bool scalar, plain or traced.
        message: the error's text: a format string for the values and the fields, or an f-string of
            captured code.
        *values: values for the message.
        **fields: values that the message refers to by name.

    Raises:
        AssertionError: the condition is false.
        TypeMismatchError: the message has a field without a value.

    Example:
        >>> import wend
        >>> wend.assert_(1 < 2, "one is {}", 1)
    """
    where = at(user_source())
    check_predicate(condition, f"assert_{where}")
    text = message or f"assertion{where} failed"
    raise_if(logical_not(condition), AssertionError, text, *values, **fields)


def raise_if(
    predicate: Any,
    error: type[BaseException],
    text: str | None = None,
    /,
    *values: Any,
    **fields: Any,
) -> None:
    """Raise an exception if a predicate holds when the function runs.

    The check is made after earlier effects and before later ones, in the forward pass alone.

    Args:
        predicate: a bool scalar, plain or traced.
        error: the class of the exception; it is called with the text, if there is one.
        text: a format string for the values and the fields, or an f-string of captured code.
        *values: values for the text.
        **fields: values that the text refers to by name.

    Raises:
        error: the predicate holds.
        TypeMismatchError: the error is no exception class, or the text has a field without a value.

    Example:
        >>> import wend
        >>> wend.raise_if(1 > 2, ValueError, "one is {}", 1)
    """
    where = at(user_source())
    check_predicate(predicate, f"raise_if{where}")
    if not (isinstance(error, type) and issubclass(error, BaseException)):
        raise TypeMismatchError(f"raise_if{where}: the error must be a class, not {error!r:.60}")
    template = Template.of("" if text is None else text, values, fields, by_element=True)
    format = None if text is None else str(template)
    recording = current()
    if recording is None:
        if predicate:
            raise error(*(() if format is None else (ops.format_values(format, template.arrays),)))
        return
    recording.emit_raise(ops.error_name(error), format, predicate, template.arrays)
