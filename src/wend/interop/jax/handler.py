"""The handler by which XLA calls wend functions: machine code on XLA's buffers.

    XLA_FFI_Error *wend.xla.handle(XLA_FFI_CallFrame *frame)

It answers the request for its version, and runs the function whose number the call has. The number
leads to the words of a buffer call (`backends/native/fastcall/buffers.py`). A function without one
is run by Python, which also makes the errors.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from wend.backends.native.jit.llvm import engine
from wend.backends.native.rt.blocks import load, put
from wend.backends.protocol import BufferCall
from wend.interop.jax import ffi_types as ffi

_NAME = "wend.xla.handle"

# What the machine code reads: the words of each function by its number, the function that runs
# such words, and two functions of Python, `run(frame)` and `fail(frame, number, failed, status)`
_FUNCTIONS, _ENTRY, _RUN, _FAIL = range(4)
_Run = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(ffi.CallFrame))
_Fail = ctypes.CFUNCTYPE(
    ctypes.c_void_p, ctypes.POINTER(ffi.CallFrame), ctypes.c_int64, ctypes.c_int64, ctypes.c_int64
)


def _offset(*fields: Any) -> int:
    return sum(field.offset for field in fields)


def _addresses(what: str, buffers: Any) -> str:
    """Return the lines that put the addresses of the elements of buffers into `%{what}`."""
    return f"""
{load(f"{what}.count", "frame", _offset(buffers, ffi.Buffers.count))}
{load(f"{what}.items", "frame", _offset(buffers, ffi.Buffers.items), "ptr")}
  %{what} = alloca ptr, i64 %{what}.count
  br label %{what}.next
{what}.next:
  %{what}.k = phi i64 [ 0, %{what}.from ], [ %{what}.k1, %{what}.each ]
  %{what}.left = icmp slt i64 %{what}.k, %{what}.count
  br i1 %{what}.left, label %{what}.each, label %{what}.done
{what}.each:
  %{what}.k1 = add i64 %{what}.k, 1
  %{what}.item.at = getelementptr ptr, ptr %{what}.items, i64 %{what}.k
  %{what}.item = load ptr, ptr %{what}.item.at
{load(f"{what}.data", f"{what}.item", ffi.Buffer.data.offset, "ptr")}
  %{what}.to = getelementptr ptr, ptr %{what}, i64 %{what}.k
  store ptr %{what}.data, ptr %{what}.to
  br label %{what}.next
{what}.done:
"""


_TEXT = f"""
@const0 = external global i8

define ptr @{_NAME}(ptr %frame) {{
  %failed = alloca ptr
{load("extension", "frame", ffi.CallFrame.extension.offset, "ptr")}
  %alone = icmp eq ptr %extension, null
  br i1 %alone, label %stages, label %extended
extended:
{load("type", "extension", ffi.Extension.type.offset, "i32")}
  %asks = icmp eq i32 %type, {ffi.METADATA}
  br i1 %asks, label %answer, label %stages
answer:
{load("metadata", "extension", ffi.MetadataExtension.metadata.offset, "ptr")}
{put(str(ffi.MAJOR), "metadata", ffi.Metadata.major.offset, "i32")}
{put(str(ffi.MINOR), "metadata", ffi.Metadata.minor.offset, "i32")}
{put("0", "metadata", ffi.Metadata.traits.offset, "i32")}
  ret ptr null
stages:
{load("stage", "frame", ffi.CallFrame.stage.offset, "i32")}
  %executes = icmp eq i32 %stage, {ffi.EXECUTE}
  br i1 %executes, label %find, label %leave
leave:
  ret ptr null
find:
{load("attributes", "frame", _offset(ffi.CallFrame.attributes, ffi.Attributes.items), "ptr")}
  %scalar = load ptr, ptr %attributes
{load("number.at", "scalar", ffi.Scalar.value.offset, "ptr")}
  %number = load i64, ptr %number.at
  %functions = load ptr, ptr @const0
  %words.at = getelementptr ptr, ptr %functions, i64 %number
  %words = load ptr, ptr %words.at
  %slow = icmp eq ptr %words, null
  br i1 %slow, label %by.python, label %inputs.from
by.python:
  %run.at = getelementptr ptr, ptr @const0, i64 {_RUN}
  %run = load ptr, ptr %run.at
  %answer.of.python = call ptr %run(ptr %frame)
  ret ptr %answer.of.python
inputs.from:
{_addresses("inputs", ffi.CallFrame.operands)}
  br label %outputs.from
outputs.from:
{_addresses("outputs", ffi.CallFrame.results)}
  %entry.at = getelementptr ptr, ptr @const0, i64 {_ENTRY}
  %entry = load ptr, ptr %entry.at
  %status = call i64 %entry(ptr %words, ptr %inputs, ptr %outputs, ptr %failed)
  %good = icmp eq i64 %status, 0
  br i1 %good, label %leave, label %report
report:
  %fail.at = getelementptr ptr, ptr @const0, i64 {_FAIL}
  %fail = load ptr, ptr %fail.at
  %where = load i64, ptr %failed
  %error = call ptr %fail(ptr %frame, i64 %number, i64 %where, i64 %status)
  ret ptr %error
}}
"""


class XlaHandler:
    """The handler of a process. It lives forever: XLA keeps its address.

    Args:
        run: runs a call by Python; it returns the address of an error, or None.
        error: returns the address of an error for a call and an exception.
    """

    def __init__(
        self,
        run: Callable[[Any], int | None],
        error: Callable[[Any, BaseException], int | None],
    ) -> None:
        self._calls: dict[int, BufferCall] = {}
        self._tables = [np.zeros(64, np.int64)]  # a thread may still read one that was replaced

        def fail(frame: Any, number: int, failed: int, status: int) -> int | None:
            operands = frame.contents.operands
            inputs = [operands.items[k].contents.data for k in range(operands.count)]
            return error(frame, self._calls[number].error(failed, status, inputs))

        self._callbacks = _Run(run), _Fail(fail)
        self._shared = np.zeros(4, np.int64)
        self._shared[_FUNCTIONS] = self._tables[0].ctypes.data
        for word, callback in zip((_RUN, _FAIL), self._callbacks, strict=True):
            self._shared[word] = ctypes.cast(callback, ctypes.c_void_p).value or 0
        self._library = engine().compile(_TEXT, [_NAME], [self._shared])

    @property
    def address(self) -> int:
        """The address of the machine code."""
        return self._library.addresses[_NAME]

    def add(self, number: int, call: BufferCall | None) -> None:
        """Set the buffer call that calls of a number run; if it is None, Python runs them.

        The caller holds a lock: tables are replaced as they grow.
        """
        table = self._tables[-1]
        if number >= len(table):
            table = np.zeros(2 * max(number, len(table)), np.int64)
            table[: len(self._tables[-1])] = self._tables[-1]
            self._tables.append(table)
            self._shared[_FUNCTIONS] = table.ctypes.data
        if call is not None:
            self._calls[number] = call
            self._shared[_ENTRY] = call.entry
            table[number] = call.words
