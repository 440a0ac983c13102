"""Calls from native code into the Python interpreter: host calls and safepoints.

Native code runs without the GIL and acquires it for these calls. An exception is stored in the
block, and raised again when native code has returned.

    i32 wend.python(ptr words)              run the callable; 0, or 1: an exception is pending
    i64 wend.safepoint(ptr words, ptr counter)  trips until the next safepoint, or 0: likewise

A safepoint of a chunk of elements also ends it where an earlier chunk has failed, or a signal has
come: their limit is below its number.

A safepoint adapts the number of trips to the next one so that a loop reads the clock about every
0.1 ms, whatever a trip takes: it doubles the number if it came too soon, and scales it down if it
came too late. It checks for signals every 10 ms, less often if acquiring the GIL takes long, and
only in the main thread, where Python handles them.

Once the interpreter is finalizing, other threads must not ask for the GIL, which is about to be
destroyed: they block until the process ends.
"""

from __future__ import annotations

import ctypes
import struct
import sys
import threading
from typing import Any

from wend.backends.native.rt.clock import NOW

# Words of the block: the callable; the number of the host call to run; the main thread; the time of
# the next signal check; the pending exception (type, value and traceback). Where chunks run: the
# address of their limit, the number of this one, and the status that the last one ended with
_CALLABLE, NUMBER, _THREAD, _DUE, _ERROR = range(0, 5 * 8, 8)
LIMIT, CHUNK, STATUS = range(_ERROR + 3 * 8, _ERROR + 6 * 8, 8)
BYTES = STATUS + 8

NAMES = ("wend.python", "wend.safepoint")
# The limit of chunks where none has failed
NO_LIMIT = (1 << 63) - 1

# Between two clock readings
_MIN_SAFEPOINT_NS, _TARGET_SAFEPOINT_NS, _MAX_SAFEPOINT_NS = 50_000, 100_000, 400_000
# Between two signal checks, and its limit
_SIGNAL_CHECK_NS, _MAX_SIGNAL_DELAY_NS = 10_000_000, 100_000_000


def _word(name: str, offset: int) -> str:
    return f"  %{name} = getelementptr i8, ptr %words, i64 {offset}\n"


_FETCH_ERROR = f"""
{_word("type", _ERROR)}{_word("value", _ERROR + 8)}{_word("traceback", _ERROR + 16)}
  call void @PyErr_Fetch(ptr %type, ptr %value, ptr %traceback)
"""

# Acquires the GIL, and returns what releases it. Each module that does has a copy
TAKE = f"""
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i64 @PyThread_get_thread_ident()
declare i32 @Py_IsFinalizing()
declare i32 @pause()

define internal i1 @wend.is_main(ptr %words) {{
{_word("main.at", _THREAD)}
  %main = load i64, ptr %main.at
  %me = call i64 @PyThread_get_thread_ident()
  %is = icmp eq i64 %me, %main
  ret i1 %is
}}

define internal i32 @wend.take(ptr %words) {{
  %ends = call i32 @Py_IsFinalizing()
  %goes.on = icmp eq i32 %ends, 0
  br i1 %goes.on, label %take, label %ask
ask:
  %is.main = call i1 @wend.is_main(ptr %words)
  br i1 %is.main, label %take, label %stay
stay:
  %signal = call i32 @pause()
  br label %stay
take:
  %lock = call i32 @PyGILState_Ensure()
  ret i32 %lock
}}
"""

LIBRARY = f"""
{TAKE}
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare i32 @PyErr_CheckSignals()
declare ptr @PyObject_CallObject(ptr, ptr)
declare void @Py_DecRef(ptr)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)

define i32 @wend.python(ptr %words) {{
{_word("callable.at", _CALLABLE)}
  %callable = load ptr, ptr %callable.at
  %lock = call i32 @wend.take(ptr %words)
  %result = call ptr @PyObject_CallObject(ptr %callable, ptr null)
  %raised = icmp eq ptr %result, null
  br i1 %raised, label %keep, label %drop
keep:
{_FETCH_ERROR}
  call void @PyGILState_Release(i32 %lock)
  ret i32 1
drop:
  call void @Py_DecRef(ptr %result)
  call void @PyGILState_Release(i32 %lock)
  ret i32 0
}}

{NOW}

; The counter: when its loop was here last, how many trips it was given then.
define i64 @wend.safepoint(ptr %words, ptr %counter) {{
  %now = call i64 @wend.now()
  %trips.at = getelementptr i64, ptr %counter, i64 1
  %last = load i64, ptr %counter
  %trips = load i64, ptr %trips.at
  %since = sub i64 %now, %last
  %often = icmp ult i64 %since, {_MIN_SAFEPOINT_NS}
  %seldom = icmp ugt i64 %since, {_MAX_SAFEPOINT_NS}
  %twice = shl i64 %trips, 1
  %scaled = mul i64 %trips, {_TARGET_SAFEPOINT_NS}
  %some = call i64 @llvm.umax.i64(i64 %since, i64 1)
  %fewer = udiv i64 %scaled, %some
  %one = call i64 @llvm.umax.i64(i64 %fewer, i64 1)
  %same = select i1 %seldom, i64 %one, i64 %trips
  %next = select i1 %often, i64 %twice, i64 %same
  %first = icmp eq i64 %last, 0
  %given = select i1 %first, i64 %trips, i64 %next
  store i64 %now, ptr %counter
  store i64 %given, ptr %trips.at
{_word("due.at", _DUE)}
  %due = load i64, ptr %due.at
  %is.due = icmp uge i64 %now, %due
  br i1 %is.due, label %look, label %go
go:
  ret i64 %given
look:
{_word("limit.at", LIMIT)}{_word("chunk.at", CHUNK)}
  %limit = load ptr, ptr %limit.at
  %is.chunk = icmp ne ptr %limit, null
  br i1 %is.chunk, label %compare, label %own
compare:
  %end = load atomic i64, ptr %limit monotonic, align 8
  %chunk = load i64, ptr %chunk.at
  %is.over = icmp slt i64 %end, %chunk
  br i1 %is.over, label %leave, label %own
leave:
  ret i64 0
own:
  %is.main = call i1 @wend.is_main(ptr %words)
  br i1 %is.main, label %check, label %later
check:
  %lock = call i32 @PyGILState_Ensure()
  %status = call i32 @PyErr_CheckSignals()
  %quiet = icmp eq i32 %status, 0
  br i1 %quiet, label %release, label %keep
keep:
{_FETCH_ERROR}
  call void @PyGILState_Release(i32 %lock)
  br i1 %is.chunk, label %end.all, label %leave
end.all:
  store atomic i64 -1, ptr %limit monotonic, align 8
  br label %leave
release:
  call void @PyGILState_Release(i32 %lock)
  br label %later
later:
  %then = call i64 @wend.now()
  %took = sub i64 %then, %now
  %wait = mul i64 %took, 16
  %bounded = call i64 @llvm.umin.i64(i64 %wait, i64 {_MAX_SIGNAL_DELAY_NS})
  %pause = add i64 %bounded, {_SIGNAL_CHECK_NS}
  %next.due = add i64 %then, %pause
  store i64 %next.due, ptr %due.at
  ret i64 %given
}}
"""

# Pasted in front of a module. A safepoint changes no memory that the module reads.
INLINE = """
declare i32 @wend.python(ptr)
declare i64 @wend.safepoint(ptr, ptr) cold nounwind
    memory(argmem: readwrite, inaccessiblemem: readwrite)
"""

_POINTERS = struct.Struct("3P")
# Of its own: the attributes of `ctypes.pythonapi` are shared with whoever else sets their types.
_restore = ctypes.PYFUNCTYPE(None, *[ctypes.c_void_p] * 3)(("PyErr_Restore", ctypes.pythonapi))


# Before Python 3.13
_PRIVATE_NAMES = {
    "Py_IsFinalizing": "_Py_IsFinalizing",
    "PyObject_GetOptionalAttr": "_PyObject_LookupAttr",
}


def python_function(name: str) -> int:
    """Return the address of a function of the Python interpreter."""
    if sys.version_info < (3, 13):
        name = _PRIVATE_NAMES.get(name, name)
    address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
    assert address is not None
    return address


def prepare(block: Any, offset: int, callable: object | None) -> None:
    """Fill in the words; the callable takes no arguments and must live as long as the block."""
    struct.pack_into("P", block, offset + _CALLABLE, 0 if callable is None else id(callable))
    struct.pack_into("Q", block, offset + _THREAD, threading.main_thread().ident or 0)


def is_pending(block: Any, offset: int) -> bool:
    """Return whether native code has left an exception."""
    return bool(_POINTERS.unpack_from(block, offset + _ERROR)[0])


def raise_pending(block: Any, offset: int) -> None:
    """Raise the pending exception of native code and clear it; return if there is none."""
    pending = _POINTERS.unpack_from(block, offset + _ERROR)
    _POINTERS.pack_into(block, offset + _ERROR, 0, 0, 0)
    if pending[0]:
        _restore(*pending)
