"""The backends there are, by name; each is imported when it is first asked for."""

from __future__ import annotations

from importlib import import_module

from wend.backends.protocol import Backend
from wend.base.errors import listed

BACKENDS = {"numpy": "wend.backends.numpy.backend", "native": "wend.backends.native.backend"}


def choose(name: str) -> Backend:
    """Return the backend of this name.

    Raises:
        ValueError: there is none of this name.
    """
    if name not in BACKENDS:
        raise ValueError(f"there is no backend {name!r}; there are {listed(BACKENDS)}")
    backend: Backend = import_module(BACKENDS[name]).BACKEND
    return backend
