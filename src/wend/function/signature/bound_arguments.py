"""Python's rule for which argument belongs to which parameter."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any


def bound_arguments(
    signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> inspect.BoundArguments:
    """Return the arguments of a call by the names of its parameters.

    A keyword with the name of a positional-only parameter belongs to `**kwargs`; `inspect` of
    Python 3.11 refuses it.

    Raises:
        TypeError: they do not fit.
    """
    parameters = signature.parameters.values()
    more = next((x.name for x in parameters if x.kind is inspect.Parameter.VAR_KEYWORD), None)
    if more is None:
        return signature.bind(*args, **kwargs)
    positional = {x.name for x in parameters if x.kind is inspect.Parameter.POSITIONAL_ONLY}
    bound = signature.bind(*args, **{k: x for k, x in kwargs.items() if k not in positional})
    if not positional.isdisjoint(kwargs):
        known = bound.arguments.get(more, {})
        others = {k: x for k, x in kwargs.items() if k in positional or k in known}
        bound.arguments[more] = others
    return bound
