"""Graphs as bytes: the same for the same, and read back with names of the reader's own.

That every graph which the suite compiles is read back as it was is tested by `check_graph`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import wend
from wend.base.source import Source
from wend.ir import Graph, Symbol, to_text
from wend.ir.graph import Node, Remark
from wend.ir.op import Op
from wend.ir.packing import Names, pack, unpack
from wend.ir.types import tensor
from wend.ops import elementwise
from wend.ops.build import Build

N = Symbol("n")


def growing() -> Graph:
    """A graph with an unknown size, and one that it makes."""
    b = Build("growing")
    x = b.param(tensor("f8", N), "x")
    return b.finish([b.add(x, x), b.iota(b.reduce_sum(b.cast(x, np.int64), axes=(0,)), np.int64)])


def packed(graph: Graph) -> bytes:
    return pack([graph], Names())


def test_names_and_lines_are_kept() -> None:
    fun = wend.function(lambda x: wend.name(x * 2.0, "twice") + 1.0)
    graph = fun.get_concrete_function(1.0).graph
    names = Names()
    (copy,) = unpack(pack([graph], names), names)
    assert copy is not graph
    assert copy.params[0].name == graph.params[0].name
    assert copy.nodes[1].results[0].name == graph.nodes[1].results[0].name
    assert [node.source for node in copy.nodes] == [node.source for node in graph.nodes]
    assert copy.nodes[0].source is not None


def test_what_is_another_is_other_bytes() -> None:
    def graph(factor: Any, name: str = "fun", dtype: str = "f8") -> Graph:
        b = Build(name)
        x = b.param(tensor(dtype, 2))
        return b.finish([b.mul(x, b.broadcast_to(b.constant(np.array(factor, dtype)), (2,)))])

    found = [
        *(graph(2.0), graph(3.0), graph(0.0), graph(-0.0), graph(np.nan)),
        *(graph(2.0, "other"), graph(2.0, dtype="f4")),
    ]
    assert len({*map(packed, found)}) == len(found)
    assert packed(graph(2.0)) == packed(graph(2.0))


def test_lines_are_part_of_it() -> None:
    one = wend.function(lambda x: x * 2.0).get_concrete_function(1.0).graph
    two = wend.function(lambda x: x * 2.0).get_concrete_function(1.0).graph
    assert to_text(one) == to_text(two)
    assert packed(one) != packed(two)


def test_sizes_that_are_known_to_the_reader_keep_their_names() -> None:
    graph = growing()
    names = Names([N])
    data = pack([graph], names)
    (copy,) = unpack(data, Names([N]))
    assert copy.params[0].type == graph.params[0].type
    made = copy.results[1].tensor.dims[0]
    assert isinstance(made, Symbol)
    assert made not in (N, graph.results[1].tensor.dims[0])


def test_graphs_that_are_one_stay_one() -> None:
    square = wend.function(lambda x: x * x)
    graph = wend.function(lambda x: square(x) + square(x + 1.0)).get_concrete_function(1.0).graph
    names = Names()
    one, two, three = unpack(pack([graph, graph, growing()], names), names)
    assert one is two is not three
    calls = [node for node in one.nodes if node.op.name == "call"]
    assert calls[0].regions[0] is calls[1].regions[0]


def test_large_arrays_and_objects_are_those_of_the_reader() -> None:
    table = np.arange(100.0)
    graph = wend.function(lambda x: x * wend.numpy.sin(table), capture_by_value=True)
    names = Names()
    found = graph.get_concrete_function(1.0).graph
    data = pack([found], names)
    arrays = names.arrays()
    assert arrays is not None
    assert len(arrays) == 1
    (copy,) = unpack(data, names)
    (constant,) = (node for node in copy.nodes if node.op.name == "constant")
    assert constant.attrs["value"] is arrays[0]
    names.object(print)
    assert names.arrays() is None


PROGRAM = """
import hashlib, sys
import numpy as np
import wend
from wend.ir.packing import Names, pack

def fun(x, n):
    total, k = {}, 0
    while k < n:
        x = np.where(x > 1.0, np.sin(x), x * 2.0)
        k += 1
    return np.sum(x)

graph = wend.value_and_grad(fun).get_concrete_function(np.ones(3), 3).graph
print(hashlib.sha256(pack([graph], Names())).hexdigest())
"""


@pytest.mark.parametrize("text", [PROGRAM])
def test_processes_agree(text: str, tmp_path: Any) -> None:
    file = tmp_path / "program.py"
    file.write_text(text)
    found = {
        subprocess.run(
            [sys.executable, file],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1


def test_what_was_remarked_is_kept() -> None:
    graph = growing()
    line = Source("f.py", 3, "f")
    graph.nodes[0].remark = Remark(loop=line)
    graph.nodes[1].remark = Remark(is_rematerialized=True)
    names = Names()
    (copy,) = unpack(pack([graph], names), names)
    assert [node.remark for node in copy.nodes] == [node.remark for node in graph.nodes]


def test_an_operation_of_the_name_of_another_is_an_object() -> None:
    """Strict mode's operations have the names of those that they stand for."""

    def names_of(op: Op) -> Names:
        b = Build("fun")
        x = b.param(tensor("f8", 2))
        node = Node(op, [x], {}, (), [x.type], None)
        names = Names()
        pack([Graph("fun", (x,), (node,), node.results)], names)
        return names

    assert names_of(elementwise.exp).arrays() == []
    assert names_of(replace(elementwise.exp)).arrays() is None
