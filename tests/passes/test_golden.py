"""Each pass as text: tests/golden/<pass>/*.wir hold a graph, `====`, and what becomes of it.

Write the first half by hand, `pytest --update-golden` writes the second; review it as a diff.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.helpers.golden import FOLDER, Golden
from wend.autodiff.rotate import rotated
from wend.ir import Graph, Node, Value, parse, to_text
from wend.ir.rewrite import inline, rewrite_nodes, with_operands
from wend.ops.control import while_
from wend.passes.algebra import algebra
from wend.passes.canonicalize_loops import canonicalize_loops
from wend.passes.cse import cse
from wend.passes.dce import dce
from wend.passes.distribute_loops import distribute_loops
from wend.passes.fold import fold
from wend.passes.hoist import hoist
from wend.passes.hoist_states import hoist_states
from wend.passes.inline import inline_calls
from wend.passes.lower_linear_blocks import guard_linear_blocks
from wend.passes.merge_ifs import merge_ifs
from wend.passes.pipeline import OPTIMIZE, run_passes
from wend.passes.push_out import push_out
from wend.passes.simplify_loops import simplify_loops
from wend.passes.specialize_zeros import specialize_zeros
from wend.passes.trim_loops import trim_loops


def rotate_loops(graph: Graph) -> Graph:
    """Rotate the loops of a graph, but not those in them, as policies of memory do."""

    def rotate(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        if node.op is while_:
            return inline(rotated(node), operands, nodes)
        copy = with_operands(node, operands)
        nodes.append(copy)
        return copy.results

    return rewrite_nodes(graph, rotate)


PASSES: dict[str, Callable[[Graph], Graph]] = {
    "algebra": algebra,
    "lower_linear_blocks": guard_linear_blocks,
    "merge_ifs": merge_ifs,
    "cse": cse,
    "dce": dce,
    "fold": fold,
    "hoist": hoist,
    "inline": inline_calls,
    "canonicalize_loops": canonicalize_loops,
    "distribute_loops": distribute_loops,
    "hoist_states": hoist_states,
    "optimize": lambda graph: run_passes(graph, OPTIMIZE),
    "push_out": push_out,
    "simplify_loops": simplify_loops,
    "specialize_zeros": specialize_zeros,
    "trim_loops": trim_loops,
}
CASES = [(name, file) for name in PASSES for file in sorted((FOLDER / name).glob("*.wir"))]


@pytest.mark.parametrize(("name", "file"), CASES, ids=lambda x: getattr(x, "stem", x))
def test_pass(name: str, file: Path, golden: Golden) -> None:
    golden.check_pass(file, PASSES[name])


@pytest.mark.parametrize("name", PASSES)
def test_every_pass_has_cases_and_a_second_run_changes_nothing(name: str) -> None:
    files = [file for other, file in CASES if other == name]
    assert files
    for file in files:
        before = file.read_text(encoding="utf-8").partition("====\n")[0]
        once = PASSES[name](parse(before.strip()))
        assert to_text(PASSES[name](once)) == to_text(once)


@pytest.mark.parametrize(
    "file", sorted((FOLDER / "rotate").glob("*.wir")), ids=lambda file: file.stem
)
def test_rotated_loops(file: Path, golden: Golden) -> None:
    golden.check_pass(file, rotate_loops)
