"""Functions whose variables are arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wend.base.errors import VariableError, explain
from wend.capture.convert import capture
from wend.function.function import Function
from wend.trace.recording.recording import current
from wend.trace.state.creation import described
from wend.trace.state.variable import Variable


def with_variables_as_argument(
    fun: Callable[..., Any], variables: Sequence[Variable]
) -> Callable[..., Any]:
    """Return a function of the values of variables, and of the arguments of `fun`, for traces.

    It raises a VariableError if `fun` assigns to one of them.
    """
    captured = fun if isinstance(fun, Function) else capture(fun)

    def of_values(values: Sequence[Any], /, *args: Any, **kwargs: Any) -> Any:
        recording = current()
        assert recording is not None
        refs = recording.function().variables
        bound = [recording.lift(value) for value in values]
        for variable, value in zip(variables, bound, strict=True):
            refs.bind_argument(variable, recording.wrap(value))
        result = captured(*args, **kwargs)
        for variable, value in zip(variables, bound, strict=True):
            if refs.ref(variable).value is not value:
                problem = f"{described(variable)} is assigned to, and is an argument here."
                raise VariableError(explain(problem, cure="return its new value."))
        return result

    return of_values
