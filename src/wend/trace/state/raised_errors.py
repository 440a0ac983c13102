"""Exceptions that captured code makes in the trace, and the run raises or hands to a handler."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import WrapperDescriptorType
from typing import Any

from wend.base import trees
from wend.base.context_values import scoped
from wend.base.source import raised_at
from wend.eager.dispatch import Staged
from wend.ops import effects as ops
from wend.trace.arrays.shown_text import ShownChoice, ShownList, ShownText
from wend.trace.recording.recording import current
from wend.trace.state.effects import DeferredCall
from wend.trace.state.templates import Template, Text


class RaisedError(DeferredCall):
    """How the run makes an exception that the user's code has made in the trace.

    Its constructor does not run again: the exception gets the same arguments, attributes and cause.

    Attributes:
        error: the class of the exception.
        is_plain: whether it is made of texts, numbers and traced values alone.
    """

    def __init__(self, error: BaseException) -> None:
        self.error = type(error)
        self._base = _builtin_base(self.error)
        _, args, *state = self._base.__reduce__(error)
        parts = [*args], state, [error.__cause__]
        leaves, self._tree = trees.flatten(parts, self._is_leaf)
        self._suppresses_context = error.__suppress_context__
        texts = [Text.adopted(leaf) if isinstance(leaf, str) else leaf for leaf in leaves]
        self.is_plain = all(isinstance(leaf, _PLAIN) for leaf in leaves)
        super().__init__(self.error.__name__, self._make_error, texts)

    @staticmethod
    def _is_leaf(part: Any) -> bool:
        """Return whether a list or text of the run becomes one of Python's."""
        return isinstance(part, (ShownList, ShownChoice))

    def _maker(self, argument: Any) -> Callable[[Sequence[Any]], Any]:
        if not isinstance(argument, BaseException):
            return super()._maker(argument)
        error, start = type(self)(argument), len(self.arrays)
        self.arrays += error.arrays
        stop = len(self.arrays)
        return lambda values: error.run(values[start:stop])

    def _make_error(self, *leaves: Any) -> BaseException:
        args, state, (cause,) = trees.unflatten(self._tree, leaves)
        error: BaseException = self._base.__new__(self.error, *args)
        self._base.__init__(error, *args)
        for attributes in state:
            self._base.__setstate__(error, attributes)
        error.__cause__, error.__suppress_context__ = cause, self._suppresses_context
        return error


_PLAIN = (type(None), bool, int, float, complex, str, bytes, Staged, ShownChoice)

# The exceptions of the trace that handlers get, or that stand for those of an `assert`
_carried: ContextVar[list[BaseException] | None] = ContextVar("wend_carried_errors", default=None)


@contextmanager
def carried_errors() -> Iterator[None]:
    """Note exceptions that are carried to handlers in this block; release their frames after it."""
    errors: list[BaseException] = []
    with scoped(_carried, errors):
        try:
            yield
        except BaseException as error:
            errors = [other for other in errors if other is not error]
            raise
        finally:
            for carried in errors:
                carried.__traceback__ = None


def is_noted(error: BaseException) -> bool:
    """Return whether an exception is noted as one that the code of the user raises."""
    return any(error is other for other in _carried.get() or ())


class CarriedError(RaisedError):
    """An exception that a handler gets in the trace, with the traced values that reach it."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.original = error
        self._attributes = {**vars(error)}  # which the branch that raises it takes back
        note_raised(error)

    @staticmethod
    def _is_leaf(part: Any) -> bool:
        return False

    def _maker(self, argument: Any) -> Callable[[Sequence[Any]], Any]:
        start = len(self.arrays)
        if isinstance(argument, ShownText):
            template = Template.of(argument)
            self.arrays += template.arrays
            stop = len(self.arrays)
            return lambda values: template.with_arrays(values[start:stop]).text()
        if isinstance(argument, Staged):
            self.arrays.append(argument)
            return lambda values: values[start]
        return super()._maker(argument)

    def remade(self, arrays: Sequence[Any]) -> BaseException:
        """Return the exception with other arrays in place of its own."""
        if all(new is old for new, old in zip(arrays, self.arrays, strict=True)):
            vars(self.original).update(self._attributes)
            return self.original
        error: BaseException = self.run(arrays)
        error.__context__ = self.original.__context__
        note_raised(error)
        return error.with_traceback(self.original.__traceback__)


def note_raised(error: BaseException) -> None:
    """Note an exception that the code of the user raises, though not by a `raise` of its own."""
    errors = _carried.get()
    if errors is not None and not is_noted(error):
        errors.append(error)


def _builtin_base(error: type[BaseException]) -> Any:
    return next(c for c in error.__mro__ if c.__module__ == "builtins")


def raise_in_run(error: BaseException, predicate: Any = True) -> None:
    """Record that an exception that the user's code has made is raised if a predicate holds."""
    recording = current()
    assert recording is not None
    source = raised_at(error)
    match error.args:
        case (str() as text,) if _is_made_of_a_text(error):
            template = Template()
            template.shown(text)
            name = ops.error_name(type(error))
            recording.emit_raise(name, str(template), predicate, template.arrays, source)
        case _:
            remade = RaisedError(error)
            recording.emit_raise(remade, None, predicate, remade.arrays, source)


def _is_made_of_a_text(error: BaseException) -> bool:
    """Return whether calling its class with a text makes the error."""
    if vars(error) or error.__cause__ is not None or error.__suppress_context__:
        return False
    return all(
        isinstance(getattr(type(error), name), _BUILT_IN) for name in ("__init__", "__new__")
    )


_BUILT_IN = (WrapperDescriptorType, type(object.__new__))
