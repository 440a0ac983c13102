"""Runs compiled code, and looks after each call if it wrote where it should not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from wend.backends.fastcall import FALLBACK, CallSignature, FastCall
from wend.backends.native.rt import redzones
from wend.backends.native.run import workspace
from wend.backends.protocol import Executable
from wend.backends.wrapper import ExecutableWrapper
from wend.base.errors import WendError, explain, listed


class OverrunError(WendError, MemoryError):
    """Compiled code wrote where nothing of its own is, which is a fault of wend."""


class MemoryChecked(ExecutableWrapper):
    """An executable whose memory is looked at after each call."""

    def __init__(self, name: str, execute: Executable) -> None:
        super().__init__(execute)
        self._name = name

    def __call__(self, arguments: Sequence[Any]) -> Sequence[Any]:
        try:
            return self._execute(arguments)
        finally:
            check(self._name)

    def fast_call(self, form: CallSignature) -> FastCall | None:
        """What calls it without a line of Python between, but for the look at its memory."""
        found = self._execute.fast_call(form)
        return None if found is None else _CheckedFastCall(self._name, found)


@dataclass(frozen=True, slots=True)
class _CheckedFastCall:
    name: str
    fast_call: FastCall

    @property
    def left(self) -> int:
        return self.fast_call.left

    def call(self, *args: Any) -> Any:
        try:
            return self.fast_call.call(*args)
        finally:
            check(self.name)

    def call_or(self, otherwise: Callable[..., Any]) -> Callable[..., Any]:
        def call_checked(*args: Any, **kwargs: Any) -> Any:
            found = FALLBACK if kwargs else self.call(*args)
            return otherwise(*args, **kwargs) if found is FALLBACK else found

        return call_checked

    def allow_calls(self, count: int) -> int:
        return self.fast_call.allow_calls(count)

    def set_guard(self, number: int, value: Any) -> None:
        self.fast_call.set_guard(number, value)


def check(name: str) -> None:
    """Look at all memory of native code, what other functions use included.

    Raises:
        OverrunError: something was written over.
    """
    found = list(redzones.faults())
    for space in [*workspace.CHECKED]:
        found += space.faults()
    if found:
        raise OverrunError(
            explain(
                f"`{name}` wrote over {listed(found)}, which belongs to nobody.",
                cure='run it with backend="numpy", and report this as a fault of wend, with the '
                'files that wend.config(dump="folder") writes.',
            )
        )
