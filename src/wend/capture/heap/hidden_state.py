"""Objects written in C, and wrappers of such, whose state only their own methods see."""

from __future__ import annotations

import types
import weakref
from typing import Any

_HASH_LOOKS = frozenset({"copy", "digest", "hexdigest"})
_FUTURE_LOOKS = frozenset({"cancelled", "done", "exception", "get_loop", "result"})
_CODER_LOOKS = frozenset({"getstate"})
# By module and name of a class: the methods that look at the state. All others change it.
_LOOKS = {
    ("_contextvars", "ContextVar"): frozenset({"get"}),
    ("_queue", "SimpleQueue"): frozenset({"qsize", "empty"}),
    ("functools", "_lru_cache_wrapper"): frozenset({"cache_info", "cache_parameters"}),
    ("_hashlib", "HASH"): _HASH_LOOKS,
    ("_hashlib", "HASHXOF"): _HASH_LOOKS,
    ("_hashlib", "HMAC"): _HASH_LOOKS,
    ("hmac", "HMAC"): _HASH_LOOKS,
    ("_asyncio", "Future"): _FUTURE_LOOKS,
    ("_asyncio", "Task"): _FUTURE_LOOKS | {"get_coro", "get_name"},
    ("_io", "IncrementalNewlineDecoder"): _CODER_LOOKS,
    ("_multibytecodec", "MultibyteIncrementalDecoder"): _CODER_LOOKS,
    ("_multibytecodec", "MultibyteIncrementalEncoder"): _CODER_LOOKS,
    ("zlib", "Compress"): frozenset({"copy", "__copy__", "__deepcopy__"}),
    ("zlib", "Decompress"): frozenset({"copy", "__copy__", "__deepcopy__"}),
    ("xml.etree.ElementTree", "Element"): frozenset(
        {
            *("find", "findall", "findtext", "get", "items", "iter", "iterfind", "itertext"),
            *("keys", "__len__", "__copy__", "__deepcopy__", "__getstate__", "__sizeof__"),
        }
    ),
    **dict.fromkeys(
        (
            *(("_bz2", "BZ2Compressor"), ("_bz2", "BZ2Decompressor")),
            *(("_lzma", "LZMACompressor"), ("_lzma", "LZMADecompressor")),
            *(("_sre", "SRE_Scanner"), ("pyexpat", "xmlparser"), ("zlib", "_ZlibDecompressor")),
            *(("xml.etree.ElementTree", "TreeBuilder"), ("xml.etree.ElementTree", "XMLParser")),
            *(("builtins", "coroutine"), ("builtins", "async_generator")),
        ),
        frozenset[str](),
    ),
}
_HASH_MODULES = frozenset({"_blake2", "_md5", "_sha1", "_sha2", "_sha256", "_sha3", "_sha512"})
_LOCKS = frozenset({"lock", "RLock"})  # which a function takes and gives back


def has_hidden_state(value: Any) -> bool:
    """Return whether an object has a state that only its own methods see."""
    return _looking_methods(type(value)) is not None


def _looking_methods(kind: type) -> frozenset[str] | None:
    """Return the methods that look at the hidden state of a class; None if it has none."""
    for base in kind.__mro__[:-1]:
        if base.__module__ in _HASH_MODULES:
            return _HASH_LOOKS
        if (looking := _LOOKS.get((base.__module__, base.__name__))) is not None:
            return looking
    return None


def looks(fun: Any) -> bool:
    """Return whether a function or method looks at such a state."""
    if isinstance(fun, weakref.ref):
        return True
    if not isinstance(fun, types.BuiltinMethodType | types.MethodType):
        return False
    kind = type(fun.__self__)
    if issubclass(kind, type):  # classes know those derived from them
        return fun.__name__ == "__subclasses__"
    if kind.__module__ == "_thread" and kind.__name__ in _LOCKS:
        return fun.__name__ == "locked"
    return fun.__name__ in (_looking_methods(kind) or ())


def takes_lock(fun: Any) -> bool:
    """Return whether a method takes or gives back a lock by its name, not by `with`."""
    kind = type(getattr(fun, "__self__", None))
    is_of_lock = kind.__module__ == "_thread" and kind.__name__ in _LOCKS
    return is_of_lock and fun.__name__ in ("acquire", "release")


def changes(fun: Any) -> bool:
    """Return whether a method changes such a state."""
    if not isinstance(fun, types.BuiltinMethodType | types.MethodType):
        return False
    looking = _looking_methods(type(fun.__self__))
    return looking is not None and fun.__name__ not in looking
