"""The calls by which captured code tells the recorder of the active trace what it reads."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from wend.backends.fastcall import MISSING
from wend.base.context_values import scoped
from wend.base.errors import WendError
from wend.capture.guards.active import recorder_of_trace
from wend.capture.guards.free_names import code_key
from wend.capture.guards.liftable import places_to_lift
from wend.capture.guards.operand_reads import OperandReads
from wend.capture.guards.reads import GlobalRead, GuardSet, Read
from wend.capture.guards.recorder import GuardRecorder
from wend.capture.guards.unseen_calls import UnseenCalls
from wend.capture.heap.places import Place
from wend.capture.heap.trace_log import is_written_global
from wend.capture.libraries import is_library
from wend.capture.uncaptured import is_part_of_captured
from wend.eager.dispatch import Staged
from wend.trace.recording.known_values import contents_read_by
from wend.trace.state.variable import Variable


@contextmanager
def record_guards(
    check_call: Callable[[types.FrameType, Any], None] = lambda caller, called: None,
    operands: OperandReads | None = None,
) -> Iterator[GuardRecorder]:
    """Record guards in this block; `check_call`: see `UnseenCalls`."""
    recorder = GuardRecorder(UnseenCalls(check_call), operands or OperandReads())
    if (outer := recorder_of_trace.get()) is not None:
        recorder.take_growing(outer)
    with scoped(recorder_of_trace, recorder), contents_read_by(recorder.read_elements):
        try:
            yield recorder
        except Exception as error:
            if isinstance(error, WendError) and error.changed_outside:
                error.changed_outside = places_to_lift(error.changed_outside)
            recorder.unseen.check()
            recorder.restart()  # the error's frames may keep the recorder, which holds objects
            raise
        finally:
            recorder.unseen.stop()
        recorder.unseen.check()


def is_of_outside(value: Any) -> bool:
    """Return whether the active trace has found an object outside, which outlives it."""
    recorder = recorder_of_trace.get()
    return recorder is not None and recorder.is_of_outside(value)


def restart_guards() -> None:
    """Drop the guards of the active trace, which is made again."""
    recorder = recorder_of_trace.get()
    if recorder is not None:
        recorder.restart()


def guard_captured(fun: types.FunctionType) -> None:
    """Tell the active trace that it runs a function in captured form."""
    recorder = recorder_of_trace.get()
    if recorder is not None:
        recorder.add_captured(fun)


def guard_partial(partial: functools.partial[Any]) -> None:
    """Tell the active trace that it calls a `functools.partial`."""
    recorder = recorder_of_trace.get()
    if recorder is not None:
        recorder.add_partial(partial)


def guard_setter(owner: Any, name: str) -> None:
    """Guard what the user's code reads that sets an attribute of an object."""
    hook = getattr(type(owner), "__setattr__", None)
    if isinstance(hook, types.FunctionType) and not is_library(hook.__code__.co_filename):
        guard_uncaptured(hook, owner)
    descriptor = inspect.getattr_static(type(owner), name, None)
    is_property = isinstance(descriptor, property)
    setter = descriptor.fset if is_property else getattr(type(descriptor), "__set__", None)
    if isinstance(setter, types.FunctionType):
        guard_uncaptured(setter, owner if is_property else descriptor)


def guard_uncaptured(fun: Any, owner: Any = MISSING) -> None:
    """Tell the active trace that it runs a function of the user's as plain Python."""
    recorder = recorder_of_trace.get()
    if recorder is None or not isinstance(fun, types.FunctionType):
        return
    if not is_library(fun.__code__.co_filename) and not is_part_of_captured(fun.__code__):
        recorder.add_uncaptured(fun, owner)


def guard_argument(value: Any, label: str) -> None:
    """Tell the active trace that it gets an object that is part of its key by identity."""
    recorder = recorder_of_trace.get()
    if recorder is not None and not issubclass(type(value), (Staged, Variable)):
        recorder.enter(value, label)


def guard_host_function(fun: Any) -> None:
    """Tell the active trace that a function runs with the graph, not now."""
    recorder = recorder_of_trace.get()
    if recorder is not None and isinstance(fun, types.FunctionType):
        recorder.hosts.add(code_key(fun.__code__))


def guard_restored(restored: Iterable[Place]) -> None:
    """Guard that the globals which the active trace has set for a time hold what they held."""
    recorder = recorder_of_trace.get()
    if recorder is not None:
        for place in restored:
            recorder.read_restored_global(place.owner, place.label)


def include_guards(reads: GuardSet) -> None:
    """Tell the active trace that it calls a trace with these guards."""
    recorder = recorder_of_trace.get()
    if recorder is not None:
        own = [x for x in reads.reads if not (_is_of_written(x) or recorder.gives_argument(x))]
        recorder.include(GuardSet(own))


def _is_of_written(read: Read) -> bool:
    """Return whether a read is of a global that the active trace has set itself."""
    return isinstance(read, GlobalRead) and is_written_global(read.owner(), read.key)
