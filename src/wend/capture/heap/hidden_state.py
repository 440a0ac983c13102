"""Objects written in C, and wrappers of such, whose state only their own methods see."""

from __future__ import annotations

import types
import weakref
from typing import Any

_HASH_LOOKS = {"copy", "digest", "hexdigest"}
# By module and name of a class: the methods that look at the state. All others change it.
_LOOKS = {
    ("_contextvars", "ContextVar"): {"get"},
    ("_queue", "SimpleQueue"): {"qsize", "empty"},
    ("functools", "_lru_cache_wrapper"): {"cache_info", "cache_parameters"},
    ("_hashlib", "HASH"): _HASH_LOOKS,
    ("_hashlib", "HMAC"): _HASH_LOOKS,
    ("_blake2", "blake2b"): _HASH_LOOKS,
    ("_blake2", "blake2s"): _HASH_LOOKS,
    ("hmac", "HMAC"): _HASH_LOOKS,
    ("xml.etree.ElementTree", "Element"): {
        *("find", "findall", "findtext", "get", "items", "iter", "iterfind", "itertext", "keys"),
        *("__len__", "__copy__", "__deepcopy__", "__getstate__", "__sizeof__"),
    },
}
_LOCKS = frozenset({"lock", "RLock"})  # which a function takes and gives back


def looks(fun: Any) -> bool:
    """Return whether a function or method looks at such a state."""
    if isinstance(fun, weakref.ref):
        return True
    if not isinstance(fun, types.BuiltinMethodType | types.MethodType):
        return False
    kind = type(fun.__self__)
    if kind.__module__ == "_thread" and kind.__name__ in _LOCKS:
        return fun.__name__ == "locked"
    return fun.__name__ in _LOOKS.get((kind.__module__, kind.__name__), ())


def changes(fun: Any) -> bool:
    """Return whether a method changes such a state."""
    if not isinstance(fun, types.BuiltinMethodType | types.MethodType):
        return False
    kind = type(fun.__self__)
    looking = _LOOKS.get((kind.__module__, kind.__name__))
    return looking is not None and fun.__name__ not in looking
