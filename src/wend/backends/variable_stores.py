"""Executables of graphs that assign to variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wend.backends.fastcall import FALLBACK, CallSignature, FastCall, FastCallWrapper
from wend.backends.protocol import Executable, FastCallable
from wend.backends.wrapper import ExecutableWrapper, FastExecutableWrapper
from wend.runtime.storage import Storage


class StoresInRun(ExecutableWrapper):
    """An executable of a graph with assignments; copies memory that variables share afterwards."""

    def __init__(self, execute: Executable, variables: Sequence[Storage]) -> None:
        super().__init__(execute)
        self._variables = variables

    def __call__(self, arguments: Sequence[Any]) -> Sequence[Any]:
        try:
            return self._execute(arguments)
        finally:
            for variable in self._variables:
                variable.copy_shared(arguments)


class StoresAfterRun(FastExecutableWrapper):
    """An executable of a graph without assignments, which stores the new values of variables.

    Args:
        execute: runs the graph.
        variables: the variables, by the position of the result that is the new value.
        result_count: the number of results.
    """

    def __init__(
        self, execute: Executable, variables: Mapping[int, Storage], result_count: int
    ) -> None:
        super().__init__(execute)
        self._variables, self._result_count = variables, result_count

    def __call__(self, arguments: Sequence[Any]) -> Sequence[Any]:
        results = self._execute(arguments)
        for k, variable in self._variables.items():
            variable.put(results[k])
        for k, variable in self._variables.items():
            variable.copy_shared([*arguments, *results[:k], *results[k + 1 :]])
        return results

    def fast_call(self, signature: CallSignature) -> FastCall | None:
        """Return a fast call that stores the new values, if there is one."""
        if not isinstance(self._execute, FastCallable):
            return None
        of_all = replace(signature, result_count=self._result_count, is_single=False)
        fast = self._execute.fast_call(of_all)
        return None if fast is None else self._around(fast, signature)

    def _around(self, fast_call: FastCall, signature: CallSignature) -> FastCall:
        return _StoringFastCall(fast_call, self._variables, signature)


class _StoringFastCall(FastCallWrapper):
    """A fast call that stores the new values of variables: each result is an array of its own."""

    def __init__(
        self, fast_call: FastCall, variables: Mapping[int, Storage], signature: CallSignature
    ) -> None:
        self._variables, self._signature = variables, signature
        super().__init__(fast_call)

    def call_or(self, otherwise: Callable[..., Any]) -> Callable[..., Any]:
        call, variables = self._fast_call.call, [*self._variables.items()]
        count, is_single = self._signature.result_count, self._signature.is_single

        def call_and_store_or(*args: Any, **kwargs: Any) -> Any:
            results: Any = FALLBACK if kwargs else call(*args)
            if results is FALLBACK:
                return otherwise(*args, **kwargs)
            for k, variable in variables:
                value = results[k]
                if type(value) is np.ndarray:
                    value.flags.writeable = False
                variable.put(value)
            return results[0] if is_single else results[:count]

        return call_and_store_or
