"""Checks for out-of-bounds writes of compiled code, after each call (`verify_memory`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wend.backends.fastcall import FALLBACK, CallSignature, FastCall, FastCallWrapper
from wend.backends.native.run import workspace
from wend.backends.protocol import Executable
from wend.backends.wrapper import FastExecutableWrapper
from wend.base.errors import WendError, explain, listed


class OverrunError(WendError, MemoryError):
    """Compiled code wrote outside its own memory, which is a bug of wend."""


class MemoryChecked(FastExecutableWrapper):
    """An executable whose redzones are checked after each call."""

    def __init__(self, name: str, execute: Executable) -> None:
        super().__init__(execute)
        self._name = name

    def __call__(self, arguments: Sequence[Any]) -> Sequence[Any]:
        try:
            return self._execute(arguments)
        finally:
            check(self._name)

    def _around(self, fast_call: FastCall, signature: CallSignature) -> FastCall:
        return _CheckedFastCall(fast_call, self._name)


class _CheckedFastCall(FastCallWrapper):
    """A fast call after which the redzones are checked."""

    def __init__(self, fast_call: FastCall, name: str) -> None:
        self._name = name
        super().__init__(fast_call)

    def call_or(self, otherwise: Callable[..., Any]) -> Callable[..., Any]:
        call, name = self._fast_call.call, self._name

        def call_checked_or(*args: Any, **kwargs: Any) -> Any:
            try:
                outcome = FALLBACK if kwargs else call(*args)
            finally:
                check(name)
            return otherwise(*args, **kwargs) if outcome is FALLBACK else outcome

        return call_checked_or


def check(name: str) -> None:
    """Check the redzones of all native memory, including that of other functions.

    Raises:
        OverrunError: a redzone was overwritten.
    """
    faults = [fault for checked in [*workspace.CHECKED] for fault in checked.faults()]
    if faults:
        raise OverrunError(
            explain(
                f"`{name}` wrote over {listed(faults)}.",
                cure='run it with backend="numpy", and report this as a fault of wend, with the '
                'files that wend.config(dump="folder") writes.',
            )
        )
