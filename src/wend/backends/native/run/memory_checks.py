"""Checks for out-of-bounds writes of compiled code, after each call (`verify_memory`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from wend.backends.fastcall import FALLBACK, CallSignature, FastCall, GuardCheck
from wend.backends.native.run import workspace
from wend.backends.protocol import Executable, FastCallable
from wend.backends.wrapper import ExecutableWrapper
from wend.base.errors import WendError, explain, listed


class OverrunError(WendError, MemoryError):
    """Compiled code wrote outside its own memory, which is a bug of wend."""


class MemoryChecked(ExecutableWrapper, FastCallable):
    """An executable whose redzones are checked after each call."""

    def __init__(self, name: str, execute: Executable) -> None:
        super().__init__(execute)
        self._name = name

    def __call__(self, arguments: Sequence[Any]) -> Sequence[Any]:
        try:
            return self._execute(arguments)
        finally:
            check(self._name)

    def repays_fast_calls(self, calls: int) -> bool:
        """Return whether a fast call of what it wraps is worth its setup."""
        return isinstance(self._execute, FastCallable) and self._execute.repays_fast_calls(calls)

    def fast_call(self, signature: CallSignature) -> FastCall | None:
        """Return a fast call that checks the redzones after each call."""
        if not isinstance(self._execute, FastCallable):
            return None
        fast = self._execute.fast_call(signature)
        return None if fast is None else _CheckedFastCall(self._name, fast)


@dataclass(frozen=True, slots=True)
class _CheckedFastCall:
    name: str
    fast_call: FastCall

    @property
    def has_stale_checks(self) -> bool:
        return self.fast_call.has_stale_checks

    def call(self, *args: Any) -> Any:
        try:
            return self.fast_call.call(*args)
        finally:
            check(self.name)

    def call_or(self, otherwise: Callable[..., Any]) -> Callable[..., Any]:
        def call_checked(*args: Any, **kwargs: Any) -> Any:
            outcome = FALLBACK if kwargs else self.call(*args)
            return otherwise(*args, **kwargs) if outcome is FALLBACK else outcome

        return call_checked

    def stop(self) -> None:
        self.fast_call.stop()

    def set_checks(self, checks: Sequence[GuardCheck]) -> None:
        self.fast_call.set_checks(checks)

    def set_guard(self, number: int, value: Any) -> None:
        self.fast_call.set_guard(number, value)


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
