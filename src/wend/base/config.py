"""The settings of wend: one record, read from `WEND_*` once, changed by `config(...)`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import replace
from types import TracebackType
from typing import Any, SupportsIndex

from wend.base.lazy.dataclass import dataclass
from wend.base.memory import Memory, memory_text, parsed, tape_limit_bytes


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting with its default; `WEND_BACKEND=numpy` sets `backend` at start-up."""

    backend: str = "native"  # which backend runs compiled functions: numpy or native
    verify: bool = False  # verify every graph after each pass
    verify_memory: bool = False  # check after each native call for writes past its arrays
    memory: Memory = "keep"  # what loops keep for their backward pass: a policy
    tape_limit: int | str | None = None  # bytes that a loop may record: 1000, "2GiB"; None: any
    spill_dir: str = ""  # folder for tapes of memory="spill"; empty: the one for temporary files
    guards: bool = True  # check at each call what a trace has read; else its values are frozen
    tape_keep: int = 1 << 27  # bytes of tape memory that a compiled function keeps between runs
    threads: int = 0  # threads for one large array loop; 0: the number of processors
    blas_kernels: str = "auto"  # auto: OpenBLAS is told of AVX-512 if it overlooks it; own: not
    jax_gather: bool = False  # let backend="jax" gather arrays of many devices for Python calls
    cache_dir: str = "auto"  # folder of the persistent cache of code and derivatives; empty: none
    debug: bool = False  # log each step to stderr: trace, passes, compile
    dump: str = ""  # folder for the graph after each pass, and its machine code
    nans: bool = False  # report the operation that first produced a NaN or an inf in a result
    compare: bool = False  # also run everything on the numpy backend, and compare
    strict: bool = False  # the same bits on every backend: those of NumPy, by calling it
    profile: bool = False  # measure the time of runs; set by `wend.profile()`
    eager: bool = False  # run the Python of wend.functions at every call: no trace, no capture


_READERS: dict[str, Callable[[str], Any]] = {
    "Memory": parsed,
    "int | str | None": str,
    "bool": lambda text: text.lower() in ("1", "true", "on", "yes"),
    "int": int,
    "str": str,
}


def _from_environment() -> Settings:
    values: dict[str, Any] = {}
    for name, type in Settings.__annotations__.items():
        text = os.environ.get(f"WEND_{name.upper()}")
        if text is not None:
            values[name] = _READERS[type](text)
    return Settings(**values)


# By setting: raises an error unless a value is one of the setting. Filled when wend is imported.
CHECKS: dict[str, Callable[[Any], object]] = {}


# The types of settings by annotation, and their names in errors; others have checks of their own
_TYPES: dict[str, tuple[Any, str]] = {
    "bool": (bool, "True or False"),
    "int": (SupportsIndex, "an int"),
    "str": (str | os.PathLike, "a str"),
}


def _check_type(name: str, value: Any) -> None:
    """Raise an error unless a value is of the type of a setting, and no negative number.

    Raises:
        TypeError: it is of another type.
        ValueError: it is negative.
    """
    annotation = Settings.__annotations__[name]
    if annotation not in _TYPES:
        return
    type, text = _TYPES[annotation]
    if not isinstance(value, type) or (annotation == "int" and isinstance(value, bool)):
        raise TypeError(f"{name} is {text}, not {value!r}")
    if annotation == "int" and value < 0:
        raise ValueError(f"{name} is at least 0, not {value!r}")


def _check_blas_kernels(value: Any) -> None:
    if value not in ("auto", "own"):
        raise ValueError(f"blas_kernels is one of auto, own, not {value!r}")


CHECKS["blas_kernels"] = _check_blas_kernels
CHECKS["memory"] = memory_text
CHECKS["tape_limit"] = tape_limit_bytes
_current: ContextVar[Settings] = ContextVar("wend_settings")


# The settings of contexts without their own, as in new threads; a list of one item
_process = [_from_environment()]


def settings() -> Settings:
    """Return the settings in force here (per thread and per context)."""
    return _current.get(_process[0])


def traced_settings() -> tuple[str, int, bool]:
    """Return the settings that a trace reads.

    They are the policy of loops, the limit of their tapes, and whether tapes spill past it.
    """
    in_force = settings()
    limit = tape_limit_bytes(in_force.tape_limit)
    return memory_text(in_force.memory), limit, spills_past_limit()


def spills_past_limit() -> bool:
    """Return whether what a tape has beyond its limit goes to `spill_dir`."""
    in_force = settings()
    if in_force.tape_limit is None or not in_force.spill_dir or in_force.backend != "native":
        return False
    return os.access(in_force.spill_dir, os.W_OK | os.X_OK)


def settings_storage() -> tuple[ContextVar[Settings], list[Settings]]:
    """Return the context variable of the settings, and the list that holds the fallback."""
    return _current, _process


@contextmanager
def set_here(**changes: Any) -> Iterator[None]:
    """Change settings in a block, for this context only."""
    token = _current.set(replace(settings(), **changes))
    try:
        yield
    finally:
        _current.reset(token)


class config:  # noqa: N801 - used like a function, and as a context manager
    """Change settings: for the rest of the program, or inside a `with` block.

    Args:
        **changes: names of `Settings` with their new values.

    Raises:
        TypeError: a name is not a setting, or a value is not of its type.
        ValueError: there is no backend, or no policy of `memory`, of that name.

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
            if name in CHECKS:
                CHECKS[name](changes[name])
            _check_type(name, changes[name])
        self._token: Token[Settings] | None = _current.set(replace(settings(), **changes))
        # Without `with` the change applies to every thread; `__enter__` undoes that.
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
