"""Short bytes that stand for long ones."""

from __future__ import annotations

# By way of `hashlib` it would load OpenSSL, for functions that nobody here wants: 2 ms.
from _blake2 import blake2b
from typing import Any


def digest(*parts: Any, size: int = 32) -> bytes:
    """The hash of bytes, and of what gives its memory as such, one after another."""
    made = blake2b(digest_size=size)
    for part in parts:
        made.update(part)
    found: bytes = made.digest()
    return found
