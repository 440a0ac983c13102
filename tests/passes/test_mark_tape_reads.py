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


def reads_of(graph: Graph) -> list[Node]:
    return [node for node in graph.walk() if node.op is lists.list_get]


def marked(f: Callable[..., Any], *args: Any) -> Graph:
    graph = wend.function(f).get_concrete_function(*args).graph
    return mark_tape_reads(run_passes(graph, passes_of("numpy")))


@pytest.mark.parametrize("f", [*LOOPS, nested, nested_with_breaks, in_a_branch, three_deep])
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
