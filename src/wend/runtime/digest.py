"""Short bytes that stand for long ones."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any


def digest(*parts: Any, size: int = 32) -> bytes:
    """The hash of bytes, and of what gives its memory as such, one after another."""
    made = blake2b(digest_size=size)
    for part in parts:
        made.update(part)
    found: bytes = made.digest()
    return found
