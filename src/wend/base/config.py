"""The settings of wend: one record, read from `WEND_*` once, changed by `config(...)`."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextvars import ContextVar, Token
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting with its default; `WEND_BACKEND=numpy` sets `backend` at start-up."""

    backend: str = "native"  # which backend runs compiled functions: numpy or native
    verify: bool = False  # verify every graph after each pass
    verify_memory: bool = False  # look after each native call whether it wrote past its arrays
    watch_globals: bool = False  # trace again where a value that a trace read has changed
    tape_keep: int = 1 << 27  # bytes that a compiled function keeps for its next runs
    threads: int = 0  # how many run one large loop on arrays; 0: as many as there are processors
    cache_dir: str = "auto"  # where code and derivatives wait for the next process; empty: nowhere
    debug: bool = False  # a line to stderr for each step: trace, passes, compile
    dump: str = ""  # a folder for what a graph is after each pass, and its machine code
    nans: bool = False  # where a result has a NaN or an inf, say which operation it came from
    compare: bool = False  # run everything on the numpy backend as well, and compare
    strict: bool = False  # give the same bits on every backend: NumPy's, at the price of calls
    profile: bool = False  # measure what runs take, for `wend.profile()`, which sets this
    eager: bool = False  # run the Python of wend.functions at every call: no trace, no capture


_READERS: dict[str, Callable[[str], Any]] = {
    "bool": lambda text: text.lower() in ("1", "true", "on", "yes"),
    "int": int,
    "str": str,
}


def _from_environment() -> Settings:
    found: dict[str, Any] = {}
    for name, type in Settings.__annotations__.items():
        text = os.environ.get(f"WEND_{name.upper()}")
        if text is not None:
            found[name] = _READERS[type](text)
    return Settings(**found)


_current: ContextVar[Settings] = ContextVar("wend_settings")


# What holds where no context has settings of its own, in threads of the program's making: one item
_process = [_from_environment()]


def settings() -> Settings:
    """Return the settings in force here (per thread and per context)."""
    return _current.get(_process[0])


def where_settings_are() -> tuple[ContextVar[Settings], list[Settings]]:
    """What holds them: the variable; where it is not set, the item of the list."""
    return _current, _process


class config:  # noqa: N801 - used like a function, and as a context manager
    """Change settings: for the rest of the program, or inside a `with` block.

    Args:
        **changes: names of `Settings` with their new values.

    Raises:
        TypeError: a name is not a setting.

    Example:
        >>> import wend
        >>> square = wend.function(lambda x: x * x)
        >>> with wend.config(backend="numpy"):
        ...     square(3.0)
        np.float64(9.0)
    """

    def __init__(self, **changes: Any) -> None:
        known = [*Settings.__annotations__]
        for name in changes:
            if name not in known:
                raise TypeError(f"{name!r} is not a setting of wend; there are {', '.join(known)}")
        self._token: Token[Settings] | None = _current.set(replace(settings(), **changes))
        # Without `with` it is for every thread; `__enter__` takes that back.
        self._before = _process[0]
        _process[0] = replace(_process[0], **changes)

    def __enter__(self) -> Settings:
        _process[0] = self._before
        return settings()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._token is not None:
            _current.reset(self._token)
            self._token = None
