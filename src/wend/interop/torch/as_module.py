"""`as_module`: a wend function and its variables as a module of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from wend.base.errors import VariableError, explain
from wend.interop.torch.as_torch import as_torch
from wend.interop.variable_arguments import with_variables_as_argument
from wend.trace.state.variable import Variable


def as_module(
    fun: Callable[..., Any], variables: Mapping[str, Variable] | Sequence[Variable]
) -> torch.nn.Module:
    """Return a module that runs a wend function, with its variables as parameters.

    Calls of the module are calls of the function, as by `as_torch`. A parameter begins as a copy of
    its variable's value; PyTorch's optimizers change the parameter, and `update_variables()` of the
    module copies the parameters' values back. A variable that is not trainable becomes a buffer.

    Args:
        fun: a function of pytrees of arrays that reads the variables, or an object with `__call__`.
        variables: all variables that `fun` reads, by the names of the parameters; in a sequence
            they have their own names, or `v0`, `v1`, … by position.

    Raises:
        VariableError: `fun` reads a variable that is not among these, or assigns to one.
        TypeError: `variables` holds something else, or holds a variable or a name twice.

    Example:
        >>> import torch  # doctest: +SKIP
        >>> import wend
        >>> from wend.interop.torch import as_module  # doctest: +SKIP
        >>> rate = wend.Variable(0.5, "rate")
        >>> def decayed(y):
        ...     while y > 1e-3:
        ...         y = y - rate * y
        ...     return y
        >>> module = as_module(decayed, [rate])  # doctest: +SKIP
        >>> [name for name, _ in module.named_parameters()]  # doctest: +SKIP
        ['rate']
    """
    named = _named(variables)
    of_values = with_variables_as_argument(fun, [*named.values()])
    of_values.__name__ = str(getattr(fun, "__name__", type(fun).__name__))
    return _FunctionModule(as_torch(of_values), named)


def _named(variables: Mapping[str, Variable] | Sequence[Variable]) -> dict[str, Variable]:
    """Return the variables by name."""
    if isinstance(variables, Mapping):
        pairs = [*variables.items()]
    else:
        pairs = [(getattr(v, "name", None) or f"v{k}", v) for k, v in enumerate(variables)]
    for name, variable in pairs:
        if not isinstance(variable, Variable):
            raise TypeError(f"as_module takes variables; {name!r} is {type(variable).__name__!r}")
    named = dict(pairs)
    if len(named) < len(pairs) or len({id(v) for v in named.values()}) < len(pairs):
        cure = "name each once, in a dict."
        raise TypeError(explain("as_module takes a name or a variable twice.", cure=cure))
    return named


class _FunctionModule(torch.nn.Module):  # type: ignore[misc]  # torch may not be installed
    """A module whose forward pass is a function of its parameters, its buffers and arguments."""

    def __init__(self, fun: Callable[..., Any], variables: dict[str, Variable]) -> None:
        super().__init__()
        self._names = tuple(variables)
        for name, variable in variables.items():
            value = torch.from_numpy(np.array(variable.concrete))
            if variable.trainable and (value.is_floating_point() or value.is_complex()):
                self.register_parameter(name, torch.nn.Parameter(value))
            else:
                self.register_buffer(name, value)

        def update() -> None:
            for name, variable in variables.items():
                value = getattr(self, name).detach().numpy()
                if value.dtype != variable.dtype:
                    problem = f"parameter {name!r} has become {value.dtype}; its variable has not."
                    raise VariableError(explain(problem, cure="keep the dtype of the module."))
                variable.assign(value)

        self._fun, self._update = fun, update  # a copy of the module keeps the variables

    def forward(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._fun([getattr(self, name) for name in self._names], *args, **kwargs)

    def update_variables(self) -> None:
        """Assign the parameters' and buffers' values to the variables.

        Raises:
            VariableError: a parameter has another dtype than its variable.
        """
        self._update()
