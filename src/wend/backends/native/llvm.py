"""LLVM itself: text to machine code, one module at a time."""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import llvmlite.binding as binding

from wend.backends.native import array_memory, entry_code, interpreter, math, pool, sums

# What LLVM may call of its own accord: for intrinsics that the processor has no instruction for,
# for `frem`, and for loops that copy or clear memory; and what grows the arenas.
RUNTIME = (
    *("realloc", "memset", "memmove", "memcpy"),
    *("fmod", "fma", "floor", "ceil", "trunc", "rint"),
    *("fmodf", "fmaf", "floorf", "ceilf", "truncf", "rintf"),
)
_LOCK = threading.Lock()
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Library:
    """Machine code in memory, for as long as this object lives."""

    tracker: Any
    addresses: Mapping[str, int]


class Engine:
    """The compiler for this machine."""

    def __init__(self) -> None:
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        self.machine = self._machine()
        self.jit = binding.create_lljit_compiler(self._machine())
        self.cold = self._link(math.cold_definitions(), math_symbols(), {})

    def _machine(self) -> Any:
        return binding.Target.from_default_triple().create_target_machine(
            opt=3,
            cpu=binding.get_host_cpu_name(),
            features=binding.get_host_cpu_features().flatten(),
            jit=True,
        )

    def compile(
        self,
        text: str,
        exports: Iterable[str],
        imports: Iterable[str],
        data: Mapping[str, int],
        *,
        uses_pool: bool,
        uses_python: bool,
    ) -> Library:
        """Make machine code of a module.

        Args:
            text: the module in LLVM's language; it may call the cold functions of `math.py`.
            exports: the functions whose addresses are wanted.
            imports: functions of the C library that it calls, beside those of `RUNTIME`.
            data: addresses of what else it refers to.
            uses_pool: whether it calls the functions of `pool.py` and `sums.py`.
            uses_python: whether it calls those of `interpreter.py`.
        """
        addresses = {name: c_function(name) for name in (*RUNTIME, *imports)}
        addresses |= {**self.cold.addresses, **data}
        addresses |= self.pool.addresses if uses_pool else {}
        addresses |= self.interpreter.addresses if uses_python else {}
        with _LOCK:
            return self._link(text, exports, addresses)

    @cached_property
    def pool(self) -> Library:
        """The functions of `pool.py` and `sums.py`."""
        with _LOCK:
            text, names = pool.LIBRARY + sums.LIBRARY, (*pool.NAMES, *sums.NAMES)
            return self._link(text, names, {name: c_function(name) for name in pool.IMPORTS})

    @cached_property
    def interpreter(self) -> Library:
        """The functions of `interpreter.py`."""
        addresses = {name: c_function(name) for name in interpreter.C_IMPORTS}
        addresses |= {name: interpreter.python_function(name) for name in interpreter.IMPORTS}
        with _LOCK:
            return self._link(interpreter.LIBRARY, interpreter.NAMES, addresses)

    @cached_property
    def entry(self) -> Library:
        """The functions of `entry_code.py`."""
        addresses = {name: c_function(name) for name in entry_code.C_IMPORTS}
        addresses |= {name: interpreter.python_function(name) for name in entry_code.IMPORTS}
        addresses |= array_memory.numpy_functions(entry_code.NUMPY_IMPORTS)
        addresses |= {name: id(type) for name, type in entry_code.TYPES.items()}
        with _LOCK:
            return self._link(entry_code.LIBRARY, entry_code.NAMES, addresses)

    @cached_property
    def take(self) -> Any:
        """The function that takes memory from a pool: `(pool, bytes) -> address or None`."""
        type = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
        return type(self.pool.addresses["wend.take"])

    def optimized(self, text: str) -> Any:
        """The module after LLVM's passes."""
        module = binding.parse_assembly(text)
        module.verify()
        options = binding.create_pipeline_tuning_options(speed_level=3)
        # A third of the time to compile, and nothing gained by it
        options.loop_interleaving = options.loop_unrolling = False
        builder = binding.create_pass_builder(self.machine, options)
        passes = builder.getModulePassManager()
        passes.run(module, builder)
        # llvmlite does not: its class of passes inherits another `_dispose` before its own
        binding.ffi.lib.LLVMPY_DisposeNewModulePassManger(passes)
        passes.detach()
        return module

    def assembly(self, text: str) -> str:
        """The machine code as text, to look at."""
        with _LOCK:
            assembly: str = self.machine.emit_assembly(self.optimized(text))
            return assembly

    def _link(self, text: str, exports: Iterable[str], imports: Mapping[str, int]) -> Library:
        names = list(exports)
        builder = binding.JITLibraryBuilder().add_ir(self.optimized(text))
        for name in names:
            builder.export_symbol(name)
        for name, address in imports.items():
            builder.import_symbol(name, address)
        tracker = builder.link(self.jit, f"wend{next(_numbers)}")
        return Library(tracker, {name: tracker[name] for name in names})


def math_symbols() -> list[str]:
    """The names of the cold functions as LLVM knows them."""
    return [f"wend.{name}" for name in math.COLD_NAMES]


@cache
def engine() -> Engine:
    """The one engine, made when it is first needed."""
    with _LOCK:
        return Engine()


@cache
def c_function(name: str) -> int:
    """The address of a function of the C library."""
    process = ctypes.CDLL(None)
    address = ctypes.cast(getattr(process, name), ctypes.c_void_p).value
    assert address is not None
    return address
