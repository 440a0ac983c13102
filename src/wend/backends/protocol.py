"""The backend interface: a compiler of graphs, with optional capabilities found by `isinstance`.

A backend has a name, an array boundary and `compile`. Its executables may also be
`FastCallable`, `BufferCallable`, `Explains` or `HoldsMemory`, and the backend itself a
`LazyCompiler` or one that `ChoosesPasses` or `ChecksGuards`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

from wend.backends.fastcall import CallOperand, CallSignature, FastCall, GuardCheck
from wend.base.config import CHECKS
from wend.base.errors import listed
from wend.base.lazy.dataclass import dataclass
from wend.base.source import Source
from wend.ir.graph import Graph, Node
from wend.passes.pipeline import LazyOptimized, Transform
from wend.runtime.array_boundary import HOST, ArrayBoundary, register_boundary


class Executable(Protocol):
    """Runs a graph: maps the values of its params to those of its results."""

    def __call__(self, arguments: Sequence[Any], /) -> Sequence[Any]: ...


class Backend(Protocol):
    """Compiles graphs.

    Attributes:
        name: the backend's name in `config(backend=…)`.
        boundary: how arrays cross between Python and its executables.
    """

    name: str
    boundary: ArrayBoundary

    def compile(self, graph: Graph) -> Executable:
        """Return the executable of a graph.

        Raises:
            UnsupportedError: the graph needs something that this backend does not support.
        """
        ...


# Optional capabilities
class LazyCompiler(ABC):
    """A backend that skips optimisation of a graph whose code is cached."""

    @abstractmethod
    def compile_lazy(self, lazy: LazyOptimized) -> Executable:
        """Return the executable of a graph, optimised only if code has to be generated.

        Raises:
            UnsupportedError: the graph needs something that this backend does not support.
        """


class ChoosesPasses(ABC):
    """A backend that runs nodes which other backends have lowered: maps, and chunks of them."""

    @abstractmethod
    def passes(self) -> Sequence[Transform]:
        """Return the passes before a run."""


class FastCallable(ABC):
    """An executable that can be called without any Python frame."""

    __slots__ = ()

    @abstractmethod
    def repays_fast_calls(self, calls: int) -> bool:
        """Return whether a fast call is worth its setup after so many calls."""

    @abstractmethod
    def fast_call(self, signature: CallSignature) -> FastCall | None:
        """Return the fast call for a signature, or None if there is none."""


class BufferCall(Protocol):
    """A compiled graph that machine code of another system enters, on its own buffers.

    Attributes:
        entry: the address of `i64 f(ptr words, ptr *inputs, ptr *outputs, ptr *failed)`, which
            takes the addresses of elements in C order, and runs without the GIL in any thread. It
            returns 0, or a status, and then sets `failed`.
        words: the address of what it takes first.
        call: the same for Python: takes the addresses of inputs and outputs, as ints, and raises.
    """

    entry: int
    words: int
    call: Callable[..., int]

    def error(self, failed: int, status: int, inputs: Sequence[int]) -> BaseException:
        """Return the exception for a status that is not 0, of a call of these inputs."""
        ...


class BufferCallable(ABC):
    """An executable that machine code of another system can enter."""

    __slots__ = ()

    @abstractmethod
    def buffer_call(self, operands: Sequence[CallOperand], result_count: int) -> BufferCall | None:
        """Return the buffer call, or None if there is none.

        Args:
            operands: the source of each param: one of the inputs, or an array.
            result_count: the number of results to write, the first ones of the graph.
        """


class ChecksGuards(ABC):
    """A backend that checks guards in compiled code."""

    @abstractmethod
    def guard_checker(self, checks: Sequence[GuardCheck]) -> Callable[[], bool]:
        """Return a callable that tells whether checks, which hold now, still hold."""


@dataclass(frozen=True, slots=True)
class FusedLoop:
    """Several array operations that compiled code runs as one loop over their elements.

    Attributes:
        count: the number of operations.
        sources: the user's lines.
        unstored: the number of arrays that are never in memory, since only this loop reads them.
        saved: the bytes of those; None where sizes are not known before the run.
        is_inside: whether a loop of the program is around it.
    """

    count: int
    sources: Sequence[Source]
    unstored: int
    saved: int | None
    is_inside: bool


class Explains(ABC):
    """An executable that reports how its graph was compiled."""

    __slots__ = ()

    @property
    @abstractmethod
    def host_nodes(self) -> Sequence[Node]:
        """The nodes for which compiled code calls Python because they have no emitter."""

    @property
    @abstractmethod
    def fused_loops(self) -> Sequence[FusedLoop]:
        """The loops that each fuse several operations."""

    @property
    def remarks(self) -> Sequence[str]:
        """Further remarks on how it was compiled, a line each."""
        return ()


class HoldsMemory(ABC):
    """An executable that holds memory between calls."""

    __slots__ = ()

    @abstractmethod
    def held_memory(self) -> Mapping[str, int]:
        """Return the bytes held for the next call, by purpose."""

    @abstractmethod
    def peak_memory(self) -> int:
        """Return the most bytes that a call has needed."""


class CompilesClusters(ABC):
    """A backend that leaves parts of graphs to another one, which `choose` tells it of."""

    @abstractmethod
    def use_cluster_compiler(self, compile: Callable[[Graph], Executable]) -> None:
        """Set what compiles the parts of a graph that are one task."""


# The backends by name; a module is imported when its backend is first used.
BACKENDS: dict[str, str | Backend] = {
    "numpy": "wend.backends.numpy.backend",
    "native": "wend.backends.native.backend",
    "dataflow": "wend.backends.dataflow.backend",
    "jax": "wend.backends.jax.backend",
}
# Those that are imported when they are chosen, for their arrays may be arguments of the first call
_WITH_ARRAYS = frozenset({"jax"})


def check_backend(name: Any) -> None:
    """Raise an error unless there is a backend of this name.

    Raises:
        ValueError: there is none of this name.
        ImportError: it needs a library that is not installed.
    """
    if name not in BACKENDS:
        raise ValueError(f"there is no backend {name!r}; there are {listed(BACKENDS)}")
    if name in _WITH_ARRAYS:
        _load(name)


CHECKS["backend"] = check_backend


def choose(name: str) -> Backend:
    """Return the backend of this name.

    Raises:
        ValueError: there is none of this name.
        ImportError: it needs a library that is not installed.
    """
    check_backend(name)
    return _load(name)


def _load(name: str) -> Backend:
    backend = BACKENDS[name]
    if isinstance(backend, str):
        backend = BACKENDS[name] = import_module(backend).BACKEND
        if isinstance(backend, CompilesClusters):
            backend.use_cluster_compiler(choose("native").compile)
        if backend.boundary is not HOST:
            register_boundary(backend.boundary)
    loaded: Backend = backend
    return loaded


def register_backend(backend: Backend) -> None:
    """Make a backend available by its name, and its arrays as arguments of functions."""
    BACKENDS[backend.name] = backend
    register_boundary(backend.boundary)
