"""`check_grads` itself over every op's cases, and over whole programs at third order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import wend
from tests.helpers.cases import Case, graph_of, run, type_of, value_of
from tests.helpers.programs import PROGRAMS, Program
from tests.ops.cases import CASES
from wend.base.zero import ZERO
from wend.ir import Graph, Value
from wend.ir.op import Effect, NoGradient
from wend.ir.rewrite import inline
from wend.ir.types import ListType, without_maybe
from wend.ops.build import Build
from wend.runtime.sequence import Sequence
from wend.testing import check_grads
from wend.trace.recording.recording import current

NAMED = {"argnames": "case", "ids": str}
# Their operand may be Zero at run time, which is nothing that a function is called with.
OF_MAYBES = {"instantiate", "present"}
DERIVED = [
    case
    for case in CASES
    if case.smooth
    and case.wrt != ()
    and case.op not in OF_MAYBES
    and case.record.effect is not Effect.WORLD  # they take tokens; see test_py_function
    and case.op != "after"  # so does this; see tests/trace/state/test_effects.py
    and not isinstance(case.record.derivative, NoGradient)
]


def leaves(x: Any) -> list[Any]:
    """The arrays of an operand: of a list its items."""
    if isinstance(x, Sequence):
        return [leaf for item in x.items() for leaf in leaves(item)]
    return [x]


def operand(b: Build, like: Any, type: Any, arrays: Iterator[Value]) -> Value:
    """What stands for an operand, made of values that stand for its arrays."""
    if not isinstance(like, Sequence):
        return next(arrays)
    element = without_maybe(type).element
    made = b.list_new(element)
    for item in like.items():
        made = b.list_push(made, operand(b, item, element, arrays))
    return made


def arrays_of(b: Build, value: Value, found: Any) -> Iterator[Value]:
    """The arrays of a result, of which an example was found."""
    if found is ZERO:
        return
    value = b.present(value)
    if not isinstance(value.type, ListType):
        yield value
        return
    for k, item in enumerate(found.items()):
        yield from arrays_of(b, b.list_get(value, b.integer(k)), item)


def on_arrays(case: Case, operands: tuple[Any, ...]) -> tuple[Graph, list[Any]]:
    """A row as a graph of arrays only, whatever the op takes and gives."""
    values = [value_of(x) for x in operands]
    found = run(graph_of(case, operands), values)
    b = Build(case.op)
    args = [leaf for x in values for leaf in leaves(x)]
    params = iter([b.param(type_of(x)) for x in args])
    given = [operand(b, x, type_of(o), params) for x, o in zip(values, operands, strict=True)]
    whole = graph_of(case, operands, [value.type for value in given])
    made = zip(inline(whole, given, b.nodes), found, strict=True)
    return b.finish([leaf for pair in made for leaf in arrays_of(b, *pair)]), args


def as_function(graph: Graph, args: list[Any], free: list[int]) -> Callable[..., Any]:
    """A function of the arguments that are free; the others are what they are."""

    @wend.function
    def fun(*given: Any) -> Any:
        recording = current()
        assert recording is not None
        moved = dict(zip(free, given, strict=True))
        operands = [recording.lift(moved.get(k, arg)) for k, arg in enumerate(args)]
        return tuple(map(recording.wrap, recording.call(graph, operands, None).results))

    return fun


@pytest.mark.sampled(30)
@pytest.mark.parametrize(argvalues=DERIVED, **NAMED)
def test_every_op(case: Case) -> None:
    for operands in case.smooth:
        graph, args = on_arrays(case, operands)
        floats = [k for k, x in enumerate(args) if x.dtype.kind in "fc"]
        free = [k for k in floats if case.wrt is None or k in case.wrt]
        if free:
            check_grads(as_function(graph, args, free), [args[k] for k in free], case.orders)


# Ten programs that are smooth where they are asked
SMOOTH = [
    "T1 K8 square until",
    "T3 captured",
    "T19 power 5",
    "T22 vector",
    "T27 tanh rnn",
    "T28 cos cos",
    "T30 newton by step",
    "T38 powers",
    "T42 geometric",
    "T52 call in loop",
    "T55 product",
    "K4 predicate",
    "K9 newton",
    "K16 c·c",
    "K31 nest",
    "A·v four times",
    "deep mixture",
]


@pytest.mark.sampled
@pytest.mark.parametrize("name", SMOOTH)
def test_programs_at_third_order(name: str) -> None:
    (program,) = (program for program in PROGRAMS if program.name == name)
    assert isinstance(program, Program)
    check_grads(program.fun, program.args, order=3)
