"""Fast calls: callables that enter a compiled graph without running Python code in between."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from wend.backends.fastcall import (
    FALLBACK,
    CallArgument,
    CallConstant,
    CallOperand,
    CallSignature,
    GuardCheck,
)
from wend.backends.native.fastcall import buffers
from wend.backends.native.fastcall import descriptor as code
from wend.backends.native.jit.llvm import Library, engine
from wend.backends.native.program import ENTRY, HostCall, Program
from wend.backends.native.run.guard_table import GuardTable, guard_table
from wend.backends.native.run.marshal import struct_format
from wend.backends.native.run.static_records import StaticRecords
from wend.backends.native.run.workspace import Workspace
from wend.backends.native.run.workspace_pool import WorkspacePool
from wend.backends.native.target.numpy_capi import HANDLER_FUNCTIONS, MemoryHandler
from wend.backends.native.target.value_layout import (
    SLOT_BYTES,
    is_object,
    is_scalar,
    param_size,
    registers,
)
from wend.base.config import settings
from wend.base.locks import Rank, lock_of
from wend.ir.dtypes import BOOL, COMPLEXES, FLOAT64, INT64
from wend.ir.types import Dim, HostType, Symbol, TensorType, TokenType, Type, without_maybe

# A graph without loops keeps the GIL unless its arguments and results are larger than this: then
# it runs longer than the 0.1 µs that releasing the GIL takes.
_MAX_BYTES_UNDER_GIL = 1 << 16
_ARGUMENTS, _OTHERWISE, _CHECKS, _STALE = map(
    code.WORDS.index, ("arguments", "otherwise", "checks", "stale")
)
_WEAK_KINDS = {FLOAT64: code.FLOAT, INT64: code.INTEGER, BOOL: code.BOOLEAN}


class _PyMethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_METH_FASTCALL, _METH_KEYWORDS, _METH_NOARGS = 0x80, 0x02, 0x04
_LOCK = lock_of(Rank.FAST_CALLS)  # there is one handler, to which arrays may refer forever
# Of its own: the attributes of `ctypes.pythonapi` are shared with whoever else sets their types.
_new_function = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
)(("PyCFunction_NewEx", ctypes.pythonapi))
_add_reference = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", ctypes.pythonapi))


class _EntryMethods(NamedTuple):
    """The methods of machine code that Python calls, and the memory handler of their results.

    They are never freed. Functions and arrays refer to them by address, and the last ones of a
    process outlive its modules.
    """

    call: _PyMethodDef
    call_or: _PyMethodDef
    check: _PyMethodDef
    enter: _PyMethodDef
    handler: MemoryHandler


@cache
def _methods() -> _EntryMethods:
    addresses = engine().trampoline.addresses

    def method(name: str, flags: int) -> _PyMethodDef:
        return _PyMethodDef(b"wend", addresses[name], flags, None)

    methods = _EntryMethods(
        method("wend.call", _METH_FASTCALL),
        method("wend.call.or", _METH_FASTCALL | _METH_KEYWORDS),
        method("wend.guards.check", _METH_NOARGS),
        method(buffers.ENTER, _METH_FASTCALL),
        MemoryHandler({name: engine().shared_address(name) for name in HANDLER_FUNCTIONS}),
    )
    for owner in methods, engine():
        _add_reference(owner)  # which is never released
    return methods


def guard_checker(checks: Sequence[GuardCheck]) -> Callable[[], bool]:
    """Return a callable that tells whether checks, which hold now, still hold."""
    with _LOCK:
        method = _methods().check
    checker: Callable[[], bool] = _new_function(ctypes.addressof(method), guard_table(checks), None)
    return checker


def buffer_entry(owner: tuple[Any, ...]) -> Callable[..., int]:
    """Return `wend.buffers.enter` for a tuple whose first item is the array of words."""
    with _LOCK:
        method = _methods().enter
    enter: Callable[..., int] = _new_function(ctypes.addressof(method), owner, None)
    return enter


class ArrayReader:
    """The reader of an array result, which makes the NumPy array as `wend.call` does.

    Attributes:
        format: the `struct` format of the slots.
    """

    def __init__(self, type: TensorType, offset: int) -> None:
        with _LOCK:
            self._handler = _methods().handler
        self.format = struct_format(type)
        self._slots = len(registers(type))
        self._words = np.array(_result(type, offset), np.int64)
        function = ctypes.PYFUNCTYPE(ctypes.py_object, *[ctypes.c_void_p] * 4)
        self._get = function(engine().trampoline.addresses["wend.get"])

    def read(self, slots: Iterator[Any], workspace: Workspace) -> Any:
        assert workspace.pool is not None
        for _ in range(self._slots):
            next(slots)
        addresses = self._words.ctypes.data, workspace.address
        return self._get(*addresses, id(self._handler.capsule), workspace.pool.address)


def array_reader(type: Type, offset: int) -> ArrayReader | None:
    """Return the reader of a result that is an array of known rank, else None."""
    if not isinstance(type, TensorType) or type.shape is None or is_scalar(type):
        return None
    return ArrayReader(type, offset)


class NativeFastCall:
    """The fast call of a compiled graph for one call signature.

    Attributes:
        call: takes the arguments and returns the results, or `FALLBACK`.
    """

    def __init__(
        self,
        signature: CallSignature,
        program: Program,
        library: Library,
        workspaces: WorkspacePool,
    ) -> None:
        with _LOCK:
            methods = _methods()
        self._call_or_method, handler = methods.call_or, methods.handler
        params, results = _params(signature, program), _results(signature, program)
        statics = StaticRecords(signature.statics)
        objects = [workspaces.more, workspaces.fail, workspaces.trim]
        guards = [
            word
            for guard in signature.guards
            for word in (
                id(guard.variable),
                0 if guard.default_cell is None else id(guard.default_cell),
                id(guard.expected),
            )
        ]
        tables = [
            np.array([*table, 0], np.int64)
            for table in (params + statics.words(), results, guards, program.strides)
        ]
        at_params, at_results, at_guards, at_strides = (table.ctypes.data for table in tables)
        self._guards = tables[2]
        self._expected = [guard.expected for guard in signature.guards]
        self._checks: list[GuardTable | None] = [None]
        counter = ctypes.c_int64() if signature.counter is None else signature.counter
        words_by_name = {
            "calls": ctypes.addressof(counter),
            "run": library.addresses[ENTRY],
            "idle": workspaces.top,
            "flags": code.RELEASES * (program.may_take_long or bool(program.slow_nodes))
            + code.SINGLE * signature.is_single
            + code.COPIES * signature.copies_arrays,
            "arguments": signature.argument_count,
            "params": at_params,
            "param_count": len(program.params) + len(signature.statics),
            "results": at_results,
            "result_count": signature.result_count,
            "guards": at_guards,
            "guard_count": len(signature.guards),
            "checks": 0,
            "stale": 0,
            "miss": id(FALLBACK),
            "otherwise": 0,
            "more": id(objects[0]),
            "fail": id(objects[1]),
            "trim": id(objects[2]),
            "handler": id(handler.capsule),
            "bytes": sum(_static_bytes(field.type) for field in program.results),
            "limit": _MAX_BYTES_UNDER_GIL,
            "arenas": program.layout.arenas,
            "arena_count": len(program.strides),
            "strides": at_strides,
            "kept": settings().tape_keep,
        }
        self._words = np.array([words_by_name[name] for name in code.WORDS], np.int64)
        # The callable owns everything that the words point to.
        self._owner = owner = (
            self._words,
            tables,
            objects,
            replace(signature, statics=()),
            statics.references(self._words),
            program,
            library,
            workspaces,
            self._expected,
            self._checks,
            counter,
        )
        self.call: Callable[..., Any] = _new_function(ctypes.addressof(methods.call), owner, None)

    @property
    def has_stale_checks(self) -> bool:
        """Whether a check has failed since they were set."""
        return bool(self._words[_STALE])

    def call_or(self, otherwise: Callable[..., Any]) -> Callable[..., Any]:
        """Return a callable that accepts keywords and calls `otherwise` where `call` falls back."""
        self._words[_OTHERWISE] = id(otherwise)
        owner = (*self._owner, otherwise)
        callable_or: Callable[..., Any] = _new_function(
            ctypes.addressof(self._call_or_method), owner, None
        )
        return callable_or

    def stop(self) -> None:
        """Fall back at every call from now on."""
        self._words[_ARGUMENTS] = -1

    def set_checks(self, checks: Sequence[GuardCheck]) -> None:
        """Set the checks on Python objects, which hold now."""
        by_words = not self.has_stale_checks  # a class that changes now and then has more numbers
        table = guard_table(checks, by_words=by_words) if checks else None
        self._words[_CHECKS] = 0 if table is None else id(table)
        self._checks[0] = table  # the old table lives until here
        self._words[_STALE] = 0

    def set_guard(self, number: int, value: Any) -> None:
        """Set the value that a guard expects."""
        self._expected[number] = value
        self._guards[3 * number + 2] = id(value)


def native_fast_call(
    signature: CallSignature, program: Program, library: Library, workspaces: WorkspacePool
) -> NativeFastCall | None:
    """Return the fast call for a call signature, or None where there can be none."""
    result_fields = program.results[: signature.result_count]
    pairs = zip(program.params, signature.operands, strict=True)
    symbols = {dim for field in program.params for dim in _symbols(field.type)}
    is_possible = (
        all(_accepts(field.type, operand) for field, operand in pairs)
        and all(_can_return(field.type) for field in result_fields)
        and len(symbols) <= code.MAX_AXES
        and not any(map(holds_objects, program.host_calls))
    )
    return NativeFastCall(signature, program, library, workspaces) if is_possible else None


def _accepts(type: Type, operand: CallOperand) -> bool:
    if operand is None or not isinstance(type, TensorType):
        return operand is None and isinstance(type, TokenType)
    if isinstance(operand, CallArgument) and operand.is_weak:
        return type.shape == () and (type.dtype in _WEAK_KINDS or type.dtype in COMPLEXES)
    return is_scalar(type) or is_object(type)


def _can_return(type: Type) -> bool:
    is_ranked = isinstance(type, TensorType) and type.shape is not None
    return is_ranked or isinstance(type, TokenType)


def holds_objects(call: HostCall) -> bool:
    """Return whether Python holds objects for a host call until the graph has run."""
    types = [without_maybe(field.type) for field in (*call.operands, *call.results)]
    return any(isinstance(type, HostType) for type in types)


def _symbols(type: Type) -> list[Symbol]:
    dims = type.shape or () if isinstance(type, TensorType) else ()
    return [dim for dim in dims if isinstance(dim, Symbol)]


def _params(signature: CallSignature, program: Program) -> list[int]:
    """Return the table of params that `wend.put` reads."""
    words: list[int] = []
    symbol_numbers: dict[Symbol, int] = {}
    offset = 0
    for field, operand in zip(program.params, signature.operands, strict=True):
        kind, *checks = _param_kind(field.type, operand, symbol_numbers)
        constant_id = id(operand.array) if isinstance(operand, CallConstant) else 0
        index = operand.index if isinstance(operand, CallArgument) else 0
        size = SLOT_BYTES * (5 + len(checks))
        words += [kind, size, constant_id, index, offset, *checks]
        offset += param_size(field.type)
    return words


def _param_kind(type: Type, operand: CallOperand, symbol_numbers: dict[Symbol, int]) -> list[int]:
    """Return the kind of a param and the words that its check reads."""
    if operand is None or not isinstance(type, TensorType):
        return [code.NOTHING, 0, 0, 0, 0]
    dtype = _canonical_dtype(type.dtype)
    is_array = isinstance(operand, CallArgument | CallConstant) and operand.is_zero_dim
    if not type.shape and not is_scalar(type) and not is_array:
        is_weak = isinstance(operand, CallArgument) and operand.is_weak
        return [code.BOXED, id(complex if is_weak else dtype.type), id(dtype), dtype.itemsize, 0]
    if not is_scalar(type):
        axes = [word for dim in type.dims for word in _axis(dim, operand, symbol_numbers)]
        return [code.ARRAY, 0, id(dtype), dtype.itemsize, len(type.dims), *axes]
    if isinstance(operand, CallArgument) and operand.is_weak:
        return [_WEAK_KINDS[dtype], id(True), id(False), 0, 0]
    kind = code.ZERO_DIM if operand.is_zero_dim else code.SCALAR
    return [kind, id(dtype.type), id(dtype), dtype.itemsize, 0]


def _axis(dim: Dim, operand: CallOperand, symbol_numbers: dict[Symbol, int]) -> tuple[int, int]:
    """Return the check of a size, and the number of its symbol.

    A symbol is bound at its first axis; every later axis has to have the same size.
    """
    if not isinstance(dim, Symbol):
        return dim, 0
    if dim in symbol_numbers:
        return code.SAME, symbol_numbers[dim]
    symbol_numbers[dim] = len(symbol_numbers)
    is_at_least_two = isinstance(operand, CallArgument) and not operand.accepts_zero_one
    return code.PLURAL if is_at_least_two else code.ANY, symbol_numbers[dim]


def _results(signature: CallSignature, program: Program) -> list[int]:
    """Return the table of results that `wend.get` reads."""
    words: list[int] = []
    offset = program.layout.results
    for field in program.results[: signature.result_count]:
        words += _result(field.type, offset)
        offset += SLOT_BYTES * len(registers(field.type))
    return words


def _result(type: Type, offset: int) -> list[int]:
    kind, object_id, size, *dims = _result_kind(type)
    return [kind, SLOT_BYTES * (6 + len(dims)), offset, object_id, size, len(dims), *dims]


def _result_kind(type: Type) -> list[int]:
    """Return the kind of a result, its dtype, its item size and its sizes."""
    if not isinstance(type, TensorType):
        return [code.OBJECT, id(None), 0]
    dtype = _canonical_dtype(type.dtype)
    if is_scalar(type):
        return [code.NUMBER, id(dtype), dtype.itemsize]
    dims = [-1 if isinstance(dim, Symbol) else dim for dim in type.dims]
    return [code.NEW if dims else code.POINTED, id(dtype), dtype.itemsize, *dims]


def _canonical_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype object of this type that NumPy never frees."""
    return np.dtype(dtype.type)


def _static_bytes(type: Type) -> int:
    """Return the bytes of a value whose sizes are all static, else 0."""
    if not isinstance(type, TensorType) or type.shape is None or _symbols(type):
        return 0
    return type.dtype.itemsize * prod(dim for dim in type.shape if isinstance(dim, int))
