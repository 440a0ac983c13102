"""Messages of code that runs without Python: text with numbers, written by C's `snprintf`.

Such code has a block of memory, the caller's workspace, which begins with the message of the last
error, a function that prints, and what is passed to it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import Formatter

from wend.backends.native.codegen.calls import Calls
from wend.backends.native.target.kinds import REGISTERS, Kind
from wend.backends.native.target.value_layout import Registers, is_scalar
from wend.backends.native.target.writer import Writer
from wend.ir.dtypes import FLOAT64
from wend.ir.graph import Value

MESSAGE_BYTES = 512
PRINT, PRINT_CONTEXT = MESSAGE_BYTES, MESSAGE_BYTES + 8
HEADER_BYTES = MESSAGE_BYTES + 16
_MAX_PRINTED_BYTES = 1024
# The specs of Python's formats that C shares
_SHARED_SPEC = re.compile(r"[-+ ]?0?\d*(\.\d+)?[eEfFgG]|[-+ ]?0?\d*d?")


def write_message(
    w: Writer,
    calls: Calls,
    workspace: str,
    text: str,
    values: Sequence[Value],
    slots: Sequence[Registers],
) -> None:
    """Emit the writing of a message; `{}` in the text stands for the next value."""
    _write(w, calls, workspace, MESSAGE_BYTES, text, values, slots)


def print_text(
    w: Writer,
    calls: Calls,
    workspace: str,
    text: str,
    values: Sequence[Value],
    slots: Sequence[Registers],
) -> None:
    """Emit a call of the function that prints, unless it is null."""
    room = w.allocate(f"[{_MAX_PRINTED_BYTES} x i8]")
    function = _word(w, workspace, PRINT)
    is_set = w.define(f"icmp ne ptr {function}, null")
    prints, done = w.new_label("prints"), w.new_label("printed")
    w.branch(is_set, prints, done)
    w.start(prints)
    _write(w, calls, room, _MAX_PRINTED_BYTES, text, values, slots)
    w.do(f"call void {function}(ptr {_word(w, workspace, PRINT_CONTEXT)}, ptr {room})")
    w.jump(done)
    w.start(done)


def _word(w: Writer, workspace: str, offset: int) -> str:
    address = w.define(f"getelementptr i8, ptr {workspace}, i64 {offset}")
    return w.define(f"load ptr, ptr {address}")


def _write(
    w: Writer,
    calls: Calls,
    room: str,
    size: int,
    text: str,
    values: Sequence[Value],
    slots: Sequence[Registers],
) -> None:
    pattern, arguments, place = "", [], 0
    for literal, field, spec, _ in Formatter().parse(text):
        pattern += literal.replace("%", "%%")
        if field is None:
            continue
        number = int(field) if field.isdigit() else place
        place += 1
        conversion, argument = _converted(w, calls, values[number], slots[number], spec or "")
        pattern += conversion
        arguments += argument
    operands = "".join(f", {argument}" for argument in arguments)
    w.do(
        f"call i32 (ptr, i64, ptr, ...) @snprintf(ptr {room}, i64 {size}, "
        f"ptr {calls.text(pattern)}{operands})"
    )


def _converted(
    w: Writer, calls: Calls, value: Value, slots: Registers, spec: str
) -> tuple[str, list[str]]:
    """Return a conversion of C's `printf`, and what it converts."""
    if not is_scalar(value.type):
        return str(value.type).replace("%", "%%"), []
    kind, x = Kind(value.tensor.dtype), slots[0]
    if kind.is_bool:
        yes, no = calls.text("True"), calls.text("False")
        return "%s", [f"ptr {w.define(f'select i1 {x}, ptr {yes}, ptr {no}')}"]
    shared = spec if _SHARED_SPEC.fullmatch(spec) else ""
    if kind.is_real:
        wide = x if kind.dtype == FLOAT64 else w.define(f"fpext float {x} to double")
        return f"%{shared if shared and shared[-1] in 'eEfFgG' else '.17g'}", [f"double {wide}"]
    if shared and shared[-1] in "eEfFgG":
        opcode = "uitofp" if kind.is_unsigned else "sitofp"
        return f"%{shared}", [f"double {w.define(f'{opcode} {kind.text} {x} to double')}"]
    letter = "u" if kind.is_unsigned else "d"
    if kind.bits < 64:
        x = w.define(f"{'zext' if kind.is_unsigned else 'sext'} {REGISTERS[kind.dtype]} {x} to i64")
    return f"%{shared.rstrip('d')}ll{letter}", [f"i64 {x}"]
