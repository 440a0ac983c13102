"""LLVM itself: text to machine code, one module at a time."""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import llvmlite
import llvmlite.binding as binding

from wend.backends.native.fastcall import trampoline
from wend.backends.native.jit import optimize as optimizing
from wend.backends.native.jit.optimize import optimize
from wend.backends.native.rt import python_callbacks, redzones, special_functions
from wend.backends.native.rt.shared import Shared, shared_with
from wend.backends.native.target import host_cpu, numpy_capi
from wend.runtime.disk_cache import digest, disk_cache

# What LLVM may call of its own accord: for intrinsics that the processor has no instruction for,
# for `frem`, and for loops that copy or clear memory.
RUNTIME = (
    *("memset", "memmove", "memcpy"),
    *("fmod", "fma", "floor", "ceil", "trunc", "rint"),
    *("fmodf", "fmaf", "floorf", "ceilf", "truncf", "rintf"),
)
# LLVM keeps 9 KiB for each library that it has linked, also when that is gone, until the linker
# is: so there is a new one after so many.
BATCH = 64
KEPT = 32  # how many libraries are kept that nobody may need any more

# Around every call of llvmlite but those that only read. Running machine code needs none.
_LOCK = threading.RLock()
_numbers = itertools.count()
# Libraries that nobody needs any more, until somebody compiles: whoever drops the last reference
# is not to wait for a compiler that runs in another thread.
_dropped: deque[Any] = deque()


class Library:
    """Machine code in memory, for as long as this object lives.

    Attributes:
        addresses: where its functions are, by name.
    """

    def __init__(self, linker: Any, tracker: Any, names: Iterable[str], data: Sequence[Any]):
        self.addresses: dict[str, int] = {name: tracker[name] for name in names}
        self._data = data  # what it refers to
        self._held = (linker, tracker)  # a tuple drops its last element first, as LLVM needs it
        self._dropped = _dropped  # also there when the interpreter shuts down

    def __del__(self) -> None:
        self._dropped.append(self._held)


class Code(NamedTuple):
    """Machine code that is not linked yet.

    Attributes:
        called: the functions that it declares and does not define.
        image: an object file.
    """

    called: Sequence[str]
    image: bytes

    def written(self) -> bytes:
        """All of it in a row."""
        return "\n".join(self.called).encode() + b"\0" + self.image

    @staticmethod
    def read(data: bytes) -> Code:
        """What was written."""
        called, _, image = data.partition(b"\0")
        return Code(called.decode().split("\n") if called else [], image)


def digest_of(text: str) -> bytes:
    """What stands for the text of a module."""
    return digest(text.encode())


def _features() -> str:
    found = host_cpu.features()
    features: str = found.flatten()
    # Single loads: where gathering had to be made safe (Downfall) it takes three times as long.
    return f"{features},+prefer-no-gather" if "avx2" in found else features


class Engine:
    """The compiler for this machine.

    Attributes:
        effort: how much LLVM does to choose instructions, from 0 to 3.
        level: of its passes before that, for every module; None: as each needs it.
    """

    effort = 3
    level: int | None = None

    def __init__(self) -> None:
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        self.machine = self._machine()
        self._shared: dict[Shared, Library] = {}
        self._for_shared = self._new_linker()
        self._linker, self._linked = self._new_linker(), 0
        self._known: WeakValueDictionary[Any, Library] = WeakValueDictionary()
        self._latest: OrderedDict[Any, Library] = OrderedDict()

    def _machine(self) -> Any:
        return binding.Target.from_default_triple().create_target_machine(
            opt=self.effort,
            cpu=host_cpu.name(),
            features=_features(),
            jit=True,
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
        """Make machine code of a module, or find that which was made of an equal one.

        What the module declares and does not define is looked for in `library/`, in Python's
        interpreter (`Py…`), and in the C library.

        Args:
            text: the module in LLVM's language.
            exports: the functions whose addresses are wanted.
            constants: the arrays that it calls `const0`, `const1`, …
            checked: whether to look if it writes past the ends of arrays; see `canaries.py`.
        """
        with _LOCK:
            found = self._known_or_linked(digest_of(text), exports, constants, checked, text)
        assert found is not None
        return found

    def find(
        self,
        text_digest: bytes,
        exports: Sequence[str],
        constants: Sequence[Any] = (),
        *,
        checked: bool = False,
    ) -> Library | None:
        """As `compile`, of a text of which only the digest is known; None: that code is nowhere."""
        with _LOCK:
            return self._known_or_linked(text_digest, exports, constants, checked, None)

    def _known_or_linked(
        self,
        text_digest: bytes,
        exports: Sequence[str],
        constants: Sequence[Any],
        checked: bool,
        text: str | None,
    ) -> Library | None:
        data = {f"const{k}": array.ctypes.data for k, array in enumerate(constants)}
        # A library keeps its arrays alive, so one address is one array.
        key = (text_digest, tuple(exports), tuple(data.values()), checked)
        _dropped.clear()
        found = self._known.get(key)
        if found is None:
            code = self._code_of(text_digest, text)
            if code is None:
                return None
            if self._linked >= BATCH:
                self._linker, self._linked = self._new_linker(), 0
            if checked:
                data |= self._checked_pool()
            found = self._link(self._linker, code, exports, data, constants)
            self._linked += 1
            self._known[key] = found
        self._latest[key] = found
        self._latest.move_to_end(key)
        if len(self._latest) > KEPT:
            self._latest.popitem(last=False)
        return found

    @cached_property
    def entry(self) -> Library:
        """The functions of `entry_code.py`."""
        data = numpy_capi.numpy_functions(trampoline.NUMPY_IMPORTS)
        data |= {name: id(type) for name, type in trampoline.TYPES.items()}
        with _LOCK:
            # LLVM's passes would take 30 ms, and gain 5 ns a call.
            code = self._code(trampoline.LIBRARY, 0)
            return self._link(self._for_shared, code, trampoline.NAMES, data)

    def shared(self, name: str) -> int:
        """The address of one of the functions that modules share."""
        with _LOCK:
            return self._address(name)

    @cached_property
    def take(self) -> Any:
        """The function that takes memory from a pool: `(pool, bytes) -> address or None`."""
        type = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
        return type(self.shared("wend.take"))

    def optimized(self, text: str, level: int | None = None) -> Any:
        """The module after LLVM's passes, of a level that goes by its size if none is given."""
        with _LOCK:
            return optimize(text, self.machine, level if self.level is None else self.level)

    def assembly(self, text: str) -> str:
        """The machine code as text, to look at."""
        with _LOCK:
            assembly: str = self.machine.emit_assembly(self.optimized(text))
            return assembly

    def _link(
        self,
        linker: Any,
        code: Code,
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
        tracker = builder.link(linker, f"wend{next(_numbers)}")
        return Library(linker, tracker, names, constants)

    def _code(self, text: str, level: int | None) -> Code:
        """The machine code of a module: of an earlier process, or made now."""
        found = self._code_of(digest_of(text), text, level)
        assert found is not None
        return found

    def _code_of(
        self, text_digest: bytes, text: str | None, level: int | None = None
    ) -> Code | None:
        """The machine code of the module of a digest; where nobody has its text, it may be None."""
        cache = disk_cache()
        key = f"{self.build_fingerprint}\n{level}\n{text_digest.hex()}".encode()
        found = cache and cache.find(key)
        if found:
            return Code.read(found)
        if text is None:
            return None
        module = self.optimized(text, level)
        called = [f.name for f in module.functions if f.is_declaration]
        called = [name for name in called if not name.startswith("llvm.")]
        code = Code(called, self.machine.emit_object(module))
        if cache:
            cache.keep(key, code.written())
        return code

    @cached_property
    def build_fingerprint(self) -> str:
        """What makes code of a text: where one of these is another, so is the code."""
        version = ".".join(map(str, binding.llvm_version_info))
        passes = digest(Path(optimizing.__file__).read_bytes()).hex()
        about = [
            self.machine.triple,
            host_cpu.name(),
            _features(),
            version,
            llvmlite.__version__,
            passes,
        ]
        about += [str(self.effort), str(self.level)]
        return "\n".join(about)

    def _checked_pool(self) -> dict[str, int]:
        free, reset = self._address("wend.free"), self._address("wend.reset")
        found = redzones.functions(free, reset)
        return {name: ctypes.cast(f, ctypes.c_void_p).value or 0 for name, f in found.items()}

    def _address(self, name: str) -> int:
        """Where a function is that a module declares."""
        if name.startswith("Py"):
            return python_callbacks.python_function(name)
        if special_functions.is_one(name):
            return special_functions.address(name)
        if not name.startswith("wend."):
            return c_function(name)
        shared = shared_with(name)
        if shared not in self._shared:
            library = self._link(
                self._for_shared,
                self._code(shared.text(), shared.level),
                shared.exports,
                shared.addresses(),
            )
            self._shared[shared] = library
        return self._shared[shared].addresses[name]


_engine: list[Engine] = []


def engine() -> Engine:
    """The one engine, made when it is first needed, by whichever thread comes first."""
    if not _engine:
        with _LOCK:
            if not _engine:
                _engine.append(Engine())
    return _engine[0]


@cache
def c_function(name: str) -> int:
    """The address of a function of the C library."""
    process = ctypes.CDLL(None)
    address = ctypes.cast(getattr(process, name), ctypes.c_void_p).value
    assert address is not None
    return address
