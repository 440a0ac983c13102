"""What the JAX backend computes, and what its programs are made of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import jax
import numpy as np

from wend.backends.jax.executable import XlaProgram
from wend.base import trees

_EXACT = 1e-9


def close(found: Any, expected: Any) -> None:
    """Check that arrays are those that another backend gives."""
    for a, b in zip(trees.flatten(found)[0], trees.flatten(expected)[0], strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(np.asarray(a), b, rtol=_EXACT, atol=_EXACT)


@contextmanager
def jaxprs_of_runs() -> Iterator[list[Any]]:
    """Yield a list that gets the jaxpr of each program that runs."""
    jaxprs: list[Any] = []
    run = XlaProgram.__call__

    def traced(self: XlaProgram, leaves: Any) -> Any:
        jaxprs.append(jax.make_jaxpr(self._function)(leaves).jaxpr)
        return run(self, leaves)

    with mock.patch.object(XlaProgram, "__call__", traced):
        yield jaxprs


def equations(jaxpr: Any) -> Iterator[Any]:
    """Yield the equations of a jaxpr, and those of its loops, branches and calls."""
    for equation in jaxpr.eqns:
        yield equation
        for value in equation.params.values():
            for part in value if isinstance(value, (tuple, list)) else [value]:
                inner = getattr(part, "jaxpr", part)
                if hasattr(inner, "eqns"):
                    yield from equations(inner)
