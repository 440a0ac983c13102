"""Effects in traced functions: they happen at run time, in program order (D16)."""

from __future__ import annotations

from typing import Any

from wend.base.errors import AssertionFailed, TypeMismatchError, explain
from wend.base.source import at, user_source
from wend.ops import effects as ops
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
    if format is None:
        if fields:
            raise TypeMismatchError(
                explain(
                    f"print{at(user_source())}: {', '.join(fields)} belongs to no format.",
                    cure='name it in one: wend.print(x, n=n, format="{} of {n}").',
                )
            )
        format = sep.replace("{", "{{").replace("}", "}}").join(["{}"] * len(values))
    template = Template.of(format, values, fields)
    attrs = {"format": str(template)}
    options = {"end": end, "file": file, "flush": flush}
    defaults = {"end": "\n", "file": None, "flush": False}
    attrs |= {name: value for name, value in options.items() if value is not defaults[name]}
    recording = current()
    if recording is None:
        assert ops.print_.kernel is not None
        ops.print_.kernel(None, *template.arrays, **attrs)
        return
    recording.emit(ops.print_, template.arrays, attrs)


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
        AssertionFailed: the condition is false; it is an `AssertionError`.
        TypeMismatchError: the message has a field without a value.

    Example:
        >>> import wend
        >>> wend.assert_(1 < 2, "one is {}", 1)
    """
    where = at(user_source())
    check_predicate(condition, f"assert_{where}")
    template = Template.of(message or f"assertion{where} failed", values, fields)
    recording = current()
    if recording is None:
        if not condition:
            raise AssertionFailed(ops.format_values(str(template), template.arrays))
        return
    recording.emit(ops.assert_, [condition, *template.arrays], {"message": str(template)})
