"""Nodes that are no branches are refused, with an error for each rule; values: test_while_from."""

from __future__ import annotations

import re
from typing import Any

import pytest

from wend.base.errors import GraphError
from wend.ir import case_of
from wend.ir.types import tensor
from wend.ops.build import Build

F64, I64 = tensor("f8"), tensor("i8")


class Two:
    """Two branches, a = −x and b = x·x, and y = a + x after them."""

    def __init__(self) -> None:
        b = Build("two")
        self.x, self.k = b.param(F64, "x"), b.param(I64, "k")
        self.a, self.b = b.neg(self.x), b.mul(self.x, self.x)
        self.c = b.neg(self.b)
        self.y = b.add(self.a, self.x)
        self.graph = b.finish([self.y])
        self.parts: dict[str, Any] = {
            "branches": [[self.a.node], [self.b.node, self.c.node]],
            "index": self.k,
            "outputs": [(self.x, self.a, self.c)],
        }


def test_the_graph_reads_the_output_in_place_of_a_branch():
    two = Two()
    result = case_of(two.graph, **two.parts)
    assert result.graph.results[0].node.operands[0] is result.outputs[0]
    assert result.with_results(*result.outputs).results == result.outputs


BROKEN: list[tuple[Any, str]] = [
    (lambda t: {"branches": [[t.a.node], [t.b.node, t.c.node, t.a.node]]},
     "neg is in two branches, 0 and 1"),
    (lambda t: {"index": t.x}, r"the index is f64\[\], not i64\[\]"),
    (lambda t: {"outputs": []}, "there are no outputs"),
    (lambda t: {"outputs": [(t.x, t.a)]}, "an output has 2 values for 2 branches"),
    (lambda t: {"outputs": [(t.k, t.a, t.c)]},
     r"an output the result of neg is f64\[\], and `k` i64"),
    (lambda t: {"outputs": [(t.x, t.c, t.c)]},
     "the result of neg is given by another branch than 0"),
    (lambda t: {"outputs": [(t.a, t.a, t.c)]}, "the result of neg is passed through, and is in a"),
    (lambda t: {"branches": [[t.a.node], [t.c.node]]}, None),
    (lambda t: {"branches": [[t.c.node], [t.b.node]], "outputs": [(t.x, t.c, t.b)]},
     "neg in branch 0 reads the result of mul of branch 1"),
    (lambda t: {"outputs": [(t.x, t.x, t.c)]},
     "add reads the result of neg of a branch, which is no"),
    (lambda t: {"outputs": [(t.y, t.a, t.c)]},
     "goes into a branch, and needs what comes out of one"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), BROKEN)
def test_each_broken_rule_has_its_error(change: Any, message: str | None):
    two = Two()
    parts = {**two.parts, **change(two)}
    if message is None:  # what a branch reads may be computed outside
        assert case_of(two.graph, **parts).graph.count("if") == 1
        return
    with pytest.raises(GraphError) as refused:
        case_of(two.graph, **parts)
    text = re.sub(r" at test_\w+\.py:\d+", "", str(refused.value))
    assert re.match(f"case_of: .*{message}", text), text
