"""Writes a graph as the text of an LLVM module with one function.

    i32 @wend_run(ptr block)

The block holds, in slots of eight bytes: the arguments, the results, and for every arena its data
and room. The function returns a status of `arenas.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wend.backends.native import arithmetic, math
from wend.backends.native.arenas import BAD_INDEX, BAD_LENGTH, DONE, GROW, NO_MEMORY
from wend.backends.native.emit import (
    control,
    creating,
    elementwise,
    lists,
    maybe,
    shaping,
    state,
)
from wend.backends.native.lowering import Lowering
from wend.backends.native.ownership import Ownership
from wend.backends.native.places import Places
from wend.backends.native.slots import (
    SLOT_BYTES,
    Slots,
    UnknownTypeError,
    refuse,
    refuse_at,
    registers,
)
from wend.ir.graph import Graph, Value
from wend.ir.op import Effect
from wend.ir.types import ListType, Type, without_maybe

ENTRY = "wend_run"
EMITTERS = {
    **creating.EMITTERS,
    **elementwise.EMITTERS,
    **shaping.EMITTERS,
    **lists.EMITTERS,
    **maybe.EMITTERS,
    **state.EMITTERS,
    **control.EMITTERS,
}


@dataclass(frozen=True, slots=True)
class Program:
    """A module, and what it takes.

    Attributes:
        text: the module.
        imports: functions of the C library that it calls by name.
        params: the types of the arguments.
        results: the types of the results.
        strides: for each arena the bytes of a record.
    """

    text: str
    imports: tuple[str, ...]
    params: tuple[Type, ...]
    results: tuple[Type, ...]
    strides: tuple[int, ...]


def write(graph: Graph) -> Program:
    """Write a graph as a module.

    Raises:
        UnsupportedError: it needs something that native code does not know.
    """
    check(graph)
    places = Places(graph)
    ownership = Ownership(places)
    ownership.find(graph, set())
    low = Lowering(EMITTERS, places, ownership)
    params, results = graph.param_types, graph.result_types
    results_at = _size(params)
    arenas_at = results_at + _size(results)

    low.w.start("entry")
    arenas = low.w.define(f"getelementptr i8, ptr %block, i64 {arenas_at}")
    low.arenas.enter(arenas)
    found = low.graph(graph, _load(low, params))
    _store(low, results, found, results_at)
    done = low.w.block
    low.w.jump("leave")
    statuses = (NO_MEMORY, BAD_INDEX, BAD_LENGTH)
    for code in statuses:
        low.w.start(f"fail{code}")
        low.w.jump("leave")
    low.w.start("leave")
    status = low.w.phi("i32", (str(DONE), done), *((str(s), f"fail{s}") for s in statuses))
    low.arenas.leave(arenas)
    low.w.do(f"ret i32 {status}")

    declarations = [
        f"declare double @{name}({', '.join(['double'] * count)}) nounwind willreturn memory(none)"
        for name, count in sorted(low.libm.items())
    ]
    text = "\n".join(
        [
            math.definitions(sorted(low.math), with_cold=False),
            arithmetic.definitions(low.helpers),
            GROW,
            *declarations,
            f"define i32 @{ENTRY}(ptr noalias %block) nounwind {{",
            *low.w.lines,
            "}",
            '!0 = !{!"branch_weights", i32 1048575, i32 1}',
        ]
    )
    strides = tuple(arena.stride * SLOT_BYTES for arena in places.arenas)
    return Program(text, tuple(sorted(low.libm)), params, results, strides)


def check(graph: Graph) -> None:
    """Find what native code cannot do before anything is written, and say where it is.

    Raises:
        UnsupportedError: an operation, or a type of value.
    """
    for node in graph.walk():
        if node.op.effect is Effect.WORLD:
            raise refuse(node, "it has an effect, which native code cannot have yet")
        if node.op not in EMITTERS:
            raise refuse(node, "it has no native code for this operation")
        for value in (*node.operands, *node.results):
            try:
                registers(value.type)
            except UnknownTypeError as error:
                raise refuse(node, f"it has no native code for {error}") from None
    for kind, values in (("argument", graph.params), ("result", graph.results)):
        for index, value in enumerate(values):
            _check_outer(graph, f"{kind} {index}", value)


def _check_outer(graph: Graph, what: str, value: Value) -> None:
    reason = f"it is {value.type}"
    try:
        registers(value.type)
    except UnknownTypeError:
        raise refuse_at(f"`{graph.name}`, {what}", reason) from None
    if isinstance(without_maybe(value.type), ListType):
        raise refuse_at(f"`{graph.name}`, {what}", reason)


def _size(types: Sequence[Type]) -> int:
    return SLOT_BYTES * sum(len(registers(type)) for type in types)


def _load(low: Lowering, types: Sequence[Type]) -> list[Slots]:
    given: list[Slots] = []
    offset = 0
    for type in types:
        slots = []
        for register in registers(type):
            place = low.w.define(f"getelementptr i8, ptr %block, i64 {offset}")
            stored = "i8" if register == "i1" else register
            value = low.w.define(f"load {stored}, ptr {place}, align 8")
            slots.append(low.w.define(f"icmp ne i8 {value}, 0") if register == "i1" else value)
            offset += SLOT_BYTES
        given.append(tuple(slots))
    return given


def _store(low: Lowering, types: Sequence[Type], found: Sequence[Slots], offset: int) -> None:
    for type, slots in zip(types, found, strict=True):
        for register, slot in zip(registers(type), slots, strict=True):
            place = low.w.define(f"getelementptr i8, ptr %block, i64 {offset}")
            stored, value = register, slot
            if register == "i1":
                stored, value = "i8", low.w.define(f"zext i1 {slot} to i8")
            low.w.do(f"store {stored} {value}, ptr {place}, align 8")
            offset += SLOT_BYTES
