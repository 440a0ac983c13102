"""Reads of tapes: those of backward loops are marked, others are checked."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
from tests.helpers.tape_programs import LOOPS, PROGRAMS_WITH_LISTS
from wend.backends.build import passes_of
from wend.ir.dtypes import FLOAT64
from wend.ir.graph import Graph, Node
from wend.ir.parser import parse
from wend.ir.printer import to_text
from wend.ir.types import TensorType
from wend.ops import lists
from wend.passes.mark_tape_reads import mark_tape_reads
from wend.passes.pipeline import run_passes


def nested(a: Any) -> Any:
    x = a
    while x < 50.0:
        y = x
        while y < 9.0:
            y = y * y
        x = x + y
    return x


def nested_with_breaks(a: Any) -> Any:
    x = a
    for k in range(9):
        for _ in range(k):
            x = x + np.sin(x)
            if x > 40.0:
                break
        if x > 30.0:
            break
    return x


def in_a_branch(a: Any) -> Any:
    x = a
    while x < 50.0:
        if x > 3.0:
            while x < 20.0:
                x = x * a
        x = x + 1.0
    return x


def three_deep(a: Any) -> Any:
    x = a
    for i in range(3):
        while x < 4.0 * i:
            y = 0.1 * x
            while y < 1.0:
                y = y + 0.1 * x * y
            x = x + y
    return x


def exits_in_the_middle(a: Any) -> Any:
    """The tests record too, so there is one record more than there are trips."""
    x = a
    while True:
        x = 0.9 * np.sin(x)
        if x < 0.5:
            break
        while True:
            x = x + 0.1 * np.cos(x)
            if x > 1.0:
                break
            x = 1.1 * x
    return x


def reads_of(graph: Graph) -> list[Node]:
    return [node for node in graph.walk() if node.op is lists.list_get]


def marked(f: Callable[..., Any], *args: Any) -> Graph:
    graph = wend.function(f).get_concrete_function(*args).graph
    return mark_tape_reads(run_passes(graph, passes_of("numpy")))


@pytest.mark.parametrize(
    "f", [*LOOPS, nested, nested_with_breaks, in_a_branch, three_deep, exits_in_the_middle]
)
def test_backward_loops_read_what_there_is(f: Callable[..., Any]) -> None:
    graph = marked(wend.grad(f), 2.2)
    reads = reads_of(graph)
    assert reads
    assert all(node.attrs.get("in_bounds") for node in reads), graph


@pytest.mark.parametrize("f", PROGRAMS_WITH_LISTS)
def test_other_lists_are_checked(f: Callable[..., Any]) -> None:
    reads = reads_of(marked(f, 1.5, 4))
    assert reads
    assert not any(node.attrs.get("in_bounds") for node in reads)


# The test of the backward loop reads; each test of the forward loop records
TEXT = """graph exits(%0: f64[]) {
  %1: list<f64[]> = list_new() {element=:f64[]}
  %2: i64[] = constant() {value=i64[]<0>}
  %3: f64[], %4: i64[], %5: list<f64[]> = while(%0, %2, %1) {carry=3}
    before(%6: f64[], %7: i64[], %8: list<f64[]>) {
      %9: f64[] = sin(%6)
      %10: bool[] = lt(%9, %6)
      %11: list<f64[]> = list_push(%8, %6)
      return %10, %9, %7, %11
    }
    after(%12: f64[], %13: i64[], %14: list<f64[]>) {
      %15: i64[] = constant() {value=i64[]<1>}
      %16: i64[] = add(%13, %15)
      %17: list<f64[]> = list_push(%14, %12)
      return %12, %16, %14
    }
  %18: i64[], %19: f64[] = while(%4, %0, %5) {carry=2}
    before(%20: i64[], %21: f64[], %22: list<f64[]>) {
      %23: i64[] = constant() {value=i64[]<1>}
      %24: i64[] = sub(%20, %23)
      %25: f64[] = list_get(%22, %20)
      %26: i64[] = constant() {value=i64[]<0>}
      %27: bool[] = gt(%20, %26)
      return %27, %20, %25
    }
    after(%28: i64[], %29: f64[], %30: list<f64[]>) {
      %31: i64[] = constant() {value=i64[]<1>}
      %32: i64[] = sub(%28, %31)
      return %32, %29
    }
  return %19
}
"""
OF_TRIPS = TEXT.replace("%7, %11", "%7, %8").replace("%16, %14", "%16, %17")  # a record fewer
OF_THE_ONE_BEFORE = TEXT.replace("(%22, %20)", "(%22, %24)")  # -1 after the last trip


@pytest.mark.parametrize(
    ("text", "is_in_range"), [(TEXT, True), (OF_TRIPS, False), (OF_THE_ONE_BEFORE, False)]
)
def test_tests_read_what_tests_have_recorded(text: str, is_in_range: bool) -> None:
    (read,) = reads_of(mark_tape_reads(parse(text)))
    assert bool(read.attrs.get("in_bounds")) is is_in_range


def test_a_tape_with_the_trips_of_another_is_checked() -> None:
    """In a nest, both are records, and must be those of one trip."""
    text = to_text(marked(wend.grad(nested), 2.2)).replace(" {in_bounds=True}", "")

    def of_numbers(graph: Graph) -> set[bool]:
        reads = [x for x in reads_of(graph) if x.results[0].type == TensorType(FLOAT64, ())]
        return {bool(node.attrs.get("in_bounds")) for node in reads}

    assert of_numbers(mark_tape_reads(parse(text))) == {True}
    tape = re.compile(r"(: list<f64\[\]> = list_get\(%\d+, )(%\d+)\)")
    counter = re.search(rf"{tape.search(text)[2]}: i64\[\] = sub\((%\d+)", text)[1]  # type: ignore[index]
    assert False in of_numbers(mark_tape_reads(parse(tape.sub(rf"\1{counter})", text))))
