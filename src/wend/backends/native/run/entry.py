"""Makes the functions by which Python calls a compiled graph without a line of Python between."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from functools import cache
from math import prod
from typing import Any

import numpy as np

from wend.backends.fastcall import (
    FALLBACK,
    CallArgument,
    CallConstant,
    CallOperand,
    CallSignature,
)
from wend.backends.native.fastcall import descriptor as code
from wend.backends.native.jit.llvm import Library, engine
from wend.backends.native.program import ENTRY, HostCall, Program, is_object, param_size
from wend.backends.native.run.marshal import code_of
from wend.backends.native.run.workspace import Workspace
from wend.backends.native.run.workspace_pool import WorkspacePool
from wend.backends.native.target.numpy_capi import HANDLING, Handler
from wend.backends.native.target.value_layout import SLOT_BYTES, is_scalar, registers
from wend.base.config import settings
from wend.ir.dtypes import BOOL, FLOAT64, INT64
from wend.ir.types import (
    Dim,
    HostType,
    Symbol,
    TensorType,
    TokenType,
    Type,
    without_maybe,
)

# Graphs without loops keep the interpreter's lock, unless arguments and results are larger: then
# they run longer than the 0.1 µs that it takes to release the lock.
_LIMIT = 1 << 16
_NO_LIMIT = 1 << 62  # of calls
_WEAK = {FLOAT64: code.FLOAT, INT64: code.INTEGER, BOOL: code.BOOLEAN}


class _Method(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_FASTCALL, _KEYWORDS = 0x80, 0x02
_LOCK = threading.Lock()  # arrays may refer to the one handler for good
_new_function = ctypes.pythonapi.PyCFunction_NewEx
_new_function.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
_new_function.restype = ctypes.py_object


@cache
def _methods() -> tuple[_Method, _Method, Handler]:
    """What makes Python call `wend.call` and `wend.call.or`, and memory for what they give."""
    addresses = engine().entry.addresses
    call, other = addresses["wend.call"], addresses["wend.call.or"]
    both = _Method(b"wend", other, _FASTCALL | _KEYWORDS, None)
    handler = Handler({name: engine().shared(name) for name in HANDLING})
    return _Method(b"wend", call, _FASTCALL, None), both, handler


class ArrayGiver:
    """Makes NumPy's array of a result, as `wend.call` does, for calls that go another way.

    Attributes:
        format: how struct packs the slots.
    """

    def __init__(self, type: TensorType, offset: int) -> None:
        with _LOCK:
            self._handler = _methods()[2]
        self.format = code_of(type)
        self._slots = len(registers(type))
        self._words = np.array(_result(type, offset), np.int64)
        function = ctypes.PYFUNCTYPE(ctypes.py_object, *[ctypes.c_void_p] * 4)
        self._get = function(engine().entry.addresses["wend.get"])

    def read(self, slots: Iterator[Any], space: Workspace) -> Any:
        assert space.pool is not None
        for _ in range(self._slots):
            next(slots)
        where = self._words.ctypes.data, space.address
        return self._get(*where, id(self._handler.capsule), space.pool.address)


def array_giver(type: Type, offset: int) -> ArrayGiver | None:
    """What makes arrays of a result, if it is one of known rank."""
    if not isinstance(type, TensorType) or type.shape is None or is_scalar(type):
        return None
    return ArrayGiver(type, offset)


class Entry:
    """Calls a compiled graph as a form says.

    Attributes:
        call: takes arguments, gives results or `FALLBACK`.
    """

    def __init__(
        self, form: CallSignature, program: Program, library: Library, spaces: WorkspacePool
    ) -> None:
        with _LOCK:
            method, self._other, handler = _methods()
        params, results = _params(form, program), _results(form, program)
        objects = [spaces.more, spaces.fail, spaces.trim]
        guards = [
            word
            for guard in form.guards
            for word in (
                id(guard.variable),
                0 if guard.otherwise is None else id(guard.otherwise),
                id(guard.expected),
            )
        ]
        tables = [
            np.array([*table, 0], np.int64) for table in (params, results, guards, program.strides)
        ]
        at_params, at_results, at_guards, at_strides = (table.ctypes.data for table in tables)
        self._guards = tables[2]
        self._expected = [guard.expected for guard in form.guards]
        words = {
            "left": _NO_LIMIT,
            "run": library.addresses[ENTRY],
            "idle": spaces.top,
            "flags": code.RELEASES * (program.may_take_long or bool(program.slow_nodes))
            + code.SINGLE * form.is_single,
            "arguments": form.count,
            "params": at_params,
            "param_count": len(program.params),
            "results": at_results,
            "result_count": form.gives,
            "guards": at_guards,
            "guard_count": len(form.guards),
            "miss": id(FALLBACK),
            "otherwise": 0,
            "more": id(objects[0]),
            "fail": id(objects[1]),
            "trim": id(objects[2]),
            "handler": id(handler.capsule),
            "bytes": sum(_known_bytes(field.type) for field in program.results),
            "limit": _LIMIT,
            "arenas": program.layout.arenas,
            "arena_count": len(program.strides),
            "strides": at_strides,
            "kept": settings().tape_keep,
        }
        self._words = np.array([words[name] for name in code.WORDS], np.int64)
        # What the words refer to lives as long as the function does.
        self._owner = owner = (
            self._words,
            tables,
            objects,
            form,
            program,
            library,
            spaces,
            self._expected,
        )
        self.call: Callable[..., Any] = _new_function(ctypes.addressof(method), owner, None)

    @property
    def left(self) -> int:
        """How many calls it may still serve."""
        return int(self._words[0])

    def call_or(self, otherwise: Callable[..., Any]) -> Callable[..., Any]:
        """What calls another callable, by keyword too, where `call` misses."""
        self._words[code.WORDS.index("otherwise")] = id(otherwise)
        owner = (*self._owner, otherwise)
        made: Callable[..., Any] = _new_function(ctypes.addressof(self._other), owner, None)
        return made

    def allow_calls(self, count: int) -> int:
        """Let it serve so many calls, then none; returns how many are left of those before."""
        left, self._words[0] = self.left, count
        return left

    def set_guard(self, number: int, value: Any) -> None:
        """Let a guard ask for another value."""
        self._expected[number] = value
        self._guards[3 * number + 2] = id(value)


def entry(
    form: CallSignature, program: Program, library: Library, spaces: WorkspacePool
) -> Entry | None:
    """A function for calls of this form; None where there can be none."""
    wanted = program.results[: form.gives]
    pairs = zip(program.params, form.takes, strict=True)
    symbols = {dim for field in program.params for dim in _symbols(field.type)}
    is_possible = (
        all(_can_take(field.type, taken) for field, taken in pairs)
        and all(_can_give(field.type) for field in wanted)
        and len(symbols) <= code.MOST_AXES
        and not any(map(_hands_on, program.host_calls))
    )
    return Entry(form, program, library, spaces) if is_possible else None


def _can_take(type: Type, taken: CallOperand) -> bool:
    if taken is None or not isinstance(type, TensorType):
        return taken is None and isinstance(type, TokenType)
    if isinstance(taken, CallArgument) and taken.is_weak:
        return is_scalar(type) and type.dtype in _WEAK
    return is_scalar(type) or is_object(type)


def _can_give(type: Type) -> bool:
    is_ranked = isinstance(type, TensorType) and type.shape is not None
    return is_ranked or isinstance(type, TokenType)


def _hands_on(call: HostCall) -> bool:
    """Whether Python keeps objects for it until the call is over."""
    types = [without_maybe(field.type) for field in (*call.operands, *call.results)]
    return any(isinstance(type, HostType) for type in types)


def _symbols(type: Type) -> list[Symbol]:
    dims = type.shape or () if isinstance(type, TensorType) else ()
    return [dim for dim in dims if isinstance(dim, Symbol)]


def _params(form: CallSignature, program: Program) -> list[int]:
    """What `wend.put` reads."""
    words: list[int] = []
    numbers: dict[Symbol, int] = {}
    offset = 0
    for field, taken in zip(program.params, form.takes, strict=True):
        kind, *looked_at = _taken(field.type, taken, numbers)
        object = id(taken.array) if isinstance(taken, CallConstant) else 0
        index = taken.index if isinstance(taken, CallArgument) else 0
        size = SLOT_BYTES * (5 + len(looked_at))
        words += [kind, size, object, index, offset, *looked_at]
        offset += param_size(field.type)
    return words


def _taken(type: Type, taken: CallOperand, numbers: dict[Symbol, int]) -> list[int]:
    """The kind of a param, and what is looked at."""
    if taken is None or not isinstance(type, TensorType):
        return [code.NOTHING, 0, 0, 0, 0]
    dtype = _known(type.dtype)
    if not is_scalar(type):
        axes = [word for dim in type.dims for word in _axis(dim, taken, numbers)]
        return [code.ARRAY, 0, id(dtype), dtype.itemsize, len(type.dims), *axes]
    if isinstance(taken, CallArgument) and taken.is_weak:
        return [_WEAK[dtype], id(True), id(False), 0, 0]
    return [code.SCALAR, id(dtype.type), id(dtype), dtype.itemsize, 0]


def _axis(dim: Dim, taken: CallOperand, numbers: dict[Symbol, int]) -> tuple[int, int]:
    """What a size has to be; one that is not known has a number, and is the same everywhere."""
    if not isinstance(dim, Symbol):
        return dim, 0
    if dim in numbers:
        return code.SAME, numbers[dim]
    numbers[dim] = len(numbers)
    is_plural = isinstance(taken, CallArgument) and not taken.is_special
    return code.PLURAL if is_plural else code.ANY, numbers[dim]


def _results(form: CallSignature, program: Program) -> list[int]:
    """What `wend.get` reads."""
    words: list[int] = []
    offset = program.layout.results
    for field in program.results[: form.gives]:
        words += _result(field.type, offset)
        offset += SLOT_BYTES * len(registers(field.type))
    return words


def _result(type: Type, offset: int) -> list[int]:
    kind, thing, size, *dims = _given(type)
    return [kind, SLOT_BYTES * (6 + len(dims)), offset, thing, size, len(dims), *dims]


def _given(type: Type) -> list[int]:
    """The kind of a result, its dtype, the size of an element, and its sizes."""
    if not isinstance(type, TensorType):
        return [code.OBJECT, id(None), 0]
    dtype = _known(type.dtype)
    if is_scalar(type):
        return [code.NUMBER, id(dtype), dtype.itemsize]
    dims = [-1 if isinstance(dim, Symbol) else dim for dim in type.dims]
    return [code.NEW if dims else code.POINTED, id(dtype), dtype.itemsize, *dims]


def _known(dtype: np.dtype) -> np.dtype:
    """The dtype object that NumPy keeps for good."""
    return np.dtype(dtype.type)


def _known_bytes(type: Type) -> int:
    """How many bytes a value takes whose sizes are known."""
    if not isinstance(type, TensorType) or type.shape is None or _symbols(type):
        return 0
    return type.dtype.itemsize * prod(dim for dim in type.shape if isinstance(dim, int))
