"""Buffer calls: how machine code of other systems enters a compiled graph, on their buffers."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import partial

import numpy as np

from wend.backends.fastcall import CallArgument, CallConstant, CallOperand
from wend.backends.native.fastcall import buffers as code
from wend.backends.native.fastcall.descriptor import WORDS
from wend.backends.native.jit.llvm import Library, engine
from wend.backends.native.program import ENTRY, Program
from wend.backends.native.run.entry import buffer_entry, holds_objects
from wend.backends.native.run.workspace_pool import NODE_WORDS, WorkspacePool
from wend.backends.native.target.value_layout import SLOT_BYTES, is_scalar, param_size, registers
from wend.base.config import settings
from wend.ir.types import TensorType, TokenType, Type

_HEADER_WORDS = code.HEADER_BYTES // SLOT_BYTES
_More = ctypes.CFUNCTYPE(ctypes.c_void_p)
_Trim = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class NativeBufferCall:
    """The buffer call of a compiled graph.

    Attributes:
        call: takes the addresses of inputs and outputs as ints.
    """

    def __init__(
        self,
        program: Program,
        library: Library,
        workspaces: WorkspacePool,
        params: Sequence[int],
        results: Sequence[int],
        constants: Sequence[np.ndarray],
        input_count: int,
    ) -> None:
        self._workspaces = workspaces
        count = len(params) // code.OPERAND_WORDS
        more = _More(partial(workspaces.more, _HEADER_WORDS * count))
        trim = _Trim(workspaces.trim)
        fail = partial(_fail, workspaces)
        idle = (ctypes.c_int64 * 2)()  # the top of the stack, and its lock
        tables = [np.array([*table, 0], np.int64) for table in (params, results, program.strides)]
        at_params, at_results, at_strides = (table.ctypes.data for table in tables)
        words_by_name = dict.fromkeys(WORDS, 0) | {
            "run": library.addresses[ENTRY],
            "idle": ctypes.addressof(idle),
            "params": at_params,
            "param_count": count,
            "results": at_results,
            "result_count": len(results) // code.RESULT_WORDS,
            "more": ctypes.cast(more, ctypes.c_void_p).value or 0,
            "fail": id(fail),
            "arguments": input_count,
            "trim": ctypes.cast(trim, ctypes.c_void_p).value or 0,
            "arenas": program.layout.arenas,
            "arena_count": len(program.strides),
            "strides": at_strides,
            "kept": settings().tape_keep,
        }
        words = np.array([words_by_name[name] for name in WORDS], np.int64)
        owned = words, tables, more, trim, fail, idle, library, constants
        self.words: int = words.ctypes.data
        self.entry: int = engine().trampoline.addresses[code.NAME]
        self.call = buffer_entry(owned)

    def error(self, failed: int, status: int, inputs: Sequence[int]) -> BaseException:
        """Return the exception for a status that is not 0, of a call of these inputs."""
        return _error(self._workspaces, failed, status)


def _error(workspaces: WorkspacePool, failed: int, status: int) -> BaseException:
    if status == code.NO_WORKSPACE:
        return MemoryError(f"{workspaces.name}: no memory for a call")
    return workspaces.failure(failed, status)


def _fail(workspaces: WorkspacePool, failed: int, status: int) -> None:
    raise _error(workspaces, failed, status)


def native_buffer_call(
    operands: Sequence[CallOperand],
    result_count: int,
    program: Program,
    library: Library,
    workspaces: WorkspacePool,
) -> NativeBufferCall | None:
    """Return the buffer call for these operands, or None where there can be none."""
    result_types = [field.type for field in program.results[:result_count]]
    if any(map(holds_objects, program.host_calls)) or not all(map(_is_static, result_types)):
        return None
    constants: list[np.ndarray] = []
    params: list[int] = []
    offset = 0
    for field, operand in zip(program.params, operands, strict=True):
        type = field.type
        if isinstance(type, TokenType):
            continue
        if not isinstance(type, TensorType) or not type.is_static:
            return None
        index, address = 0, 0
        if isinstance(operand, CallArgument):
            index = operand.index
        else:
            assert isinstance(operand, CallConstant)
            array = np.asarray(operand.array)
            if array.dtype != type.dtype or not (array.flags.c_contiguous and array.flags.aligned):
                return None  # a copy of it would not follow its elements
            constants.append(array)
            address = array.ctypes.data
        header = SLOT_BYTES * (NODE_WORDS + _HEADER_WORDS * (len(params) // code.OPERAND_WORDS))
        params += [_kind(type), offset, type.dtype.itemsize, address, index, header]
        offset += param_size(type)
    results: list[int] = []
    offset = program.layout.results
    for result_type in result_types:
        assert isinstance(result_type, TensorType)
        results += [_kind(result_type), offset, result_type.nbytes or 0]
        offset += SLOT_BYTES * len(registers(result_type))
    count = sum(isinstance(operand, CallArgument) for operand in operands)
    return NativeBufferCall(program, library, workspaces, params, results, constants, count)


def _is_static(type: Type) -> bool:
    return isinstance(type, TensorType) and type.is_static


def _kind(type: TensorType) -> int:
    return code.BY_VALUE if is_scalar(type) else code.BY_ADDRESS
