"""The LLVM engine: compiles modules to machine code and links them, one at a time."""

from __future__ import annotations

import ctypes
import itertools
import os
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import llvmlite
import llvmlite.binding as binding

from wend.backends.native.fastcall import trampoline
from wend.backends.native.jit import optimize as optimizing
from wend.backends.native.jit.optimize import optimize
from wend.backends.native.rt import (
    numpy_draws,
    numpy_fft,
    numpy_loops,
    python_callbacks,
    redzones,
    special_functions,
)
from wend.backends.native.rt.shared import QUICK, SharedModule, shared_module_of
from wend.backends.native.target import host_cpu, numpy_capi
from wend.base.lazy.cached_property import cached_property
from wend.base.locks import Rank, lock_of
from wend.runtime.disk_cache import digest, disk_cache

# C functions that LLVM may call of its own accord: for intrinsics without an instruction, for
# `frem`, and for loops that copy or clear memory.
RUNTIME = (
    *("memset", "memmove", "memcpy"),
    *("fmod", "fma", "floor", "ceil", "trunc", "rint"),
    *("fmodf", "fmaf", "floorf", "ceilf", "truncf", "rintf"),
)
# A linker keeps 9 KiB for each library that it has linked, even after the library is freed, so it
# is replaced after this many.
MAX_LIBRARIES_PER_LINKER = 64
MAX_CACHED_LIBRARIES = 32  # recent libraries kept alive, in use or not
_TRAMPOLINE_LEVEL = 0  # LLVM's passes would take 30 ms and save 5 ns a call

# Around every call of llvmlite but those that only read. Running machine code needs none.
_LOCK = lock_of(Rank.COMPILER)
lock_of(Rank.LLVMLITE, binding.ffi.lib._lock._lock)
_numbers = itertools.count()
_KIND = b"object code\n"  # begins what is kept on disk
# Libraries without references, freed at the next compilation: dropping the last reference must not
# wait for a compiler that runs in another thread.
_dropped: deque[Any] = deque()


class Library:
    """Machine code in memory, for as long as this object lives.

    Attributes:
        addresses: the addresses of its functions, by name.
    """

    def __init__(self, linker: Any, tracker: Any, names: Iterable[str], data: Sequence[Any]):
        self.addresses: dict[str, int] = {name: tracker[name] for name in names}
        self._data = data  # the arrays that the code refers to
        # A tuple drops its last element first, as LLVM needs it.
        self._resources = linker, tracker
        self._dropped = _dropped  # the module global may be gone when the interpreter shuts down

    def __del__(self) -> None:
        self._dropped.append(self._resources)


class ObjectCode(NamedTuple):
    """An object file that is not linked yet.

    Attributes:
        called: the functions that it declares but does not define.
        image: the object file.
    """

    called: Sequence[str]
    image: bytes

    def to_bytes(self) -> bytes:
        """Return the object code as bytes."""
        return _KIND + "\n".join(self.called).encode() + b"\0" + self.image

    @staticmethod
    def from_bytes(data: bytes) -> ObjectCode | None:
        """Return the object code that `to_bytes` has made the bytes of; None for other bytes."""
        if not data.startswith(_KIND):
            return None
        called, _, image = data[len(_KIND) :].partition(b"\0")
        return ObjectCode(called.decode().split("\n") if called else [], image)


def digest_of(text: str) -> bytes:
    """Return the digest of the text of a module."""
    return digest(text.encode())


def _features() -> str:
    cpu_features = host_cpu.features()
    features: str = cpu_features.flatten()
    # Scalar loads: gathers take three times as long on processors with the Downfall mitigation.
    return f"{features},+prefer-no-gather" if "avx2" in cpu_features else features


@cache
def _enable_ordered_reductions() -> None:
    """Have LLVM vectorize the terms of a sum that it adds in order; an option of the process.

    By default it does so on ARM only.
    """
    binding.set_option("wend", "-force-ordered-reductions")


class Engine:
    """The compiler for this machine.

    Attributes:
        effort: the optimization level of LLVM's code generator, from 0 to 3.
        level: the level of the passes before that; None lets the size of a module decide.
    """

    effort = 3
    level: int | None = None

    def __init__(self) -> None:
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        _enable_ordered_reductions()
        self.machine = self._machine()
        self._linked_trampoline = False
        self._shared: dict[SharedModule, Library] = {}
        self._shared_linker = self._new_linker()
        self._linker, self._linked_count = self._new_linker(), 0
        self._libraries: WeakValueDictionary[Any, Library] = WeakValueDictionary()
        self._recent: OrderedDict[Any, Library] = OrderedDict()

    def _machine(self, effort: int | None = None) -> Any:
        effort = self.effort if effort is None else effort
        return binding.Target.from_default_triple().create_target_machine(
            opt=effort, cpu=host_cpu.name(), features=_features(), jit=True
        )

    def _new_linker(self) -> Any:
        return binding.create_lljit_compiler(self._machine())

    def compile(
        self,
        text: str,
        exports: Sequence[str],
        constants: Sequence[Any] = (),
        *,
        checked: bool = False,
    ) -> Library:
        """Compile a module, or return the library of an equal one.

        Functions that the module declares are looked up in `rt/`, in the Python interpreter
        (`Py…`), and in the C library.

        Args:
            text: the module as LLVM IR.
            exports: the functions whose addresses are needed.
            constants: the arrays that the module calls `const0`, `const1`, …
            checked: whether arrays get redzones; see `rt/redzones.py`.
        """
        with _LOCK:
            library = self._find_or_link(digest_of(text), exports, constants, checked, text)
        assert library is not None
        return library

    def find(
        self,
        text_digest: bytes,
        exports: Sequence[str],
        constants: Sequence[Any] = (),
        *,
        checked: bool = False,
    ) -> Library | None:
        """Return the library of the text with this digest, or None if it was never compiled."""
        with _LOCK:
            return self._find_or_link(text_digest, exports, constants, checked, None)

    def _find_or_link(
        self,
        text_digest: bytes,
        exports: Sequence[str],
        constants: Sequence[Any],
        checked: bool,
        text: str | None,
    ) -> Library | None:
        data = {f"const{k}": array.ctypes.data for k, array in enumerate(constants)}
        # A library keeps its arrays alive, so an address identifies an array.
        key = (text_digest, tuple(exports), tuple(data.values()), checked)
        _dropped.clear()
        library = self._libraries.get(key)
        if library is None:
            code = self._find_or_compile_object(text_digest, text)
            if code is None:
                return None
            if self._linked_count >= MAX_LIBRARIES_PER_LINKER:
                self._linker, self._linked_count = self._new_linker(), 0
            if checked:
                data |= self._checked_pool_functions()
            library = self._link(self._linker, code, exports, data, constants)
            self._linked_count += 1
            self._libraries[key] = library
        self._recent[key] = library
        self._recent.move_to_end(key)
        if len(self._recent) > MAX_CACHED_LIBRARIES:
            self._recent.popitem(last=False)
        return library

    @cached_property
    def trampoline(self) -> Library:
        """The library of `fastcall/trampoline.py`."""
        data = numpy_capi.numpy_functions(trampoline.NUMPY_IMPORTS)
        data |= {name: id(x) for name, x in trampoline.OBJECTS.items()}
        with _LOCK:
            code = self._compile_object(trampoline.LIBRARY, _TRAMPOLINE_LEVEL)
            library = self._link(self._shared_linker, code, trampoline.NAMES, data)
        self._linked_trampoline = True
        return library

    @cached_property
    def _has_trampoline_on_disk(self) -> bool:
        digest = digest_of(trampoline.LIBRARY)
        with _LOCK:
            return self._find_or_compile_object(digest, None, _TRAMPOLINE_LEVEL) is not None

    @property
    def has_trampoline(self) -> bool:
        """Whether the trampoline is compiled, here or on disk."""
        return self._linked_trampoline or self._has_trampoline_on_disk

    def shared_address(self, name: str) -> int:
        """Return the address of a function of the run-time library."""
        with _LOCK:
            return self._address(name)

    @cached_property
    def pool_take(self) -> Any:
        """The function that allocates from a pool: `(pool, bytes) -> address or None`."""
        type = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
        return type(self.shared_address("wend.take"))

    def optimized(self, text: str, level: int | None = None) -> Any:
        """Return the module after LLVM's passes; the default level depends on its size."""
        with _LOCK:
            return optimize(text, self.machine, level if self.level is None else self.level)

    def assembly(self, text: str) -> str:
        """Return the machine code of a module as assembly."""
        with _LOCK:
            assembly: str = self.machine.emit_assembly(self.optimized(text))
            return assembly

    def _link(
        self,
        linker: Any,
        code: ObjectCode,
        exports: Iterable[str],
        data: dict[str, int],
        constants: Sequence[Any] = (),
    ) -> Library:
        names = list(exports)
        builder = binding.JITLibraryBuilder().add_object_img(code.image)
        for name in names:
            builder.export_symbol(name)
        for name in dict.fromkeys((*RUNTIME, *code.called, *data)):
            builder.import_symbol(name, data[name] if name in data else self._address(name))
        return Library(linker, builder.link(linker, f"wend{next(_numbers)}"), names, constants)

    def _compile_object(self, text: str, level: int | None) -> ObjectCode:
        """Return the object code of a module, from disk or compiled now."""
        code = self._find_or_compile_object(digest_of(text), text, level)
        assert code is not None
        return code

    def _find_or_compile_object(
        self, text_digest: bytes, text: str | None, level: int | None = None
    ) -> ObjectCode | None:
        """Return the object code of a module; None if it is not on disk and `text` is None."""
        cache = disk_cache()
        key = f"{self.build_fingerprint}\n{level}\n{text_digest.hex()}".encode()
        cached = cache and cache.find(key)
        if cached and (code := ObjectCode.from_bytes(cached)) is not None:
            return code
        if text is None:
            return None
        module = self.optimized(text, level)
        declared = (f.name for f in module.functions if f.is_declaration)
        called = [name for name in declared if not name.startswith("llvm.")]
        machine = self._machine(effort=0) if level == QUICK else self.machine
        code = ObjectCode(called, machine.emit_object(module))
        if cache:
            cache.keep(key, code.to_bytes())
        return code

    @cached_property
    def build_fingerprint(self) -> str:
        """Everything but the text that determines the machine code of a module."""
        version = ".".join(map(str, binding.llvm_version_info))
        passes = digest(Path(optimizing.__file__).read_bytes()).hex()
        target = (self.machine.triple, host_cpu.name(), _features())
        levels = (str(self.effort), str(self.level))
        return "\n".join((*target, version, llvmlite.__version__, passes, *levels))

    def _checked_pool_functions(self) -> dict[str, int]:
        return {name: self._address(checked) for name, checked in redzones.FUNCTIONS.items()}

    def _address(self, name: str) -> int:
        """Return the address of a function that a module declares."""
        if name.startswith("Py"):
            return python_callbacks.python_function(name)
        if special_functions.is_special_function(name):
            return special_functions.address(name)
        if numpy_draws.is_draw(name):
            return numpy_draws.address(name)
        if numpy_fft.is_transform(name):
            return numpy_fft.address(name)
        if numpy_loops.is_loop(name):
            return numpy_loops.address(name)
        if not name.startswith("wend."):
            return c_function(name)
        module = shared_module_of(name)
        if module not in self._shared:
            library = self._link(
                self._shared_linker,
                self._compile_object(module.text(), module.level),
                module.exports,
                module.addresses(),
            )
            self._shared[module] = library
            if module.forget and hasattr(os, "register_at_fork"):
                os.register_at_fork(after_in_child=partial(_run, library, module.forget))
        return self._shared[module].addresses[name]


def _run(library: Library, name: str) -> None:
    ctypes.CFUNCTYPE(None)(library.addresses[name])()


_engine: list[Engine] = []


def engine() -> Engine:
    """Return the engine of the process, made by the first thread that needs it."""
    if not _engine:
        with _LOCK:
            if not _engine:
                _engine.append(Engine())
    return _engine[0]


@cache
def c_function(name: str) -> int:
    """Return the address of a function of the C library."""
    address = ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value
    assert address is not None
    return address
