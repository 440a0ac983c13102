"""Every operation that is exported, on the samples of its row in the table of operations."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.cases import Case, Given, graph_of, run, value_of
from tests.ops.cases import CASES
from wend.ir import TABLE

pytest.importorskip("onnxruntime", reason="NOT RUN: the extra wend[onnx] is not installed")

from onnx import helper

from tests.helpers.onnx_models import results
from wend.base.errors import UnsupportedError
from wend.interop.onnx.builder import ELEMENT_TYPES, ModelBuilder
from wend.interop.onnx.emit import EMITTERS, emit_graph

PAGE = Path(__file__).parents[3] / "docs" / "onnx.md"
TABLE_OF_PAGE = re.compile(r"(?<=<!-- operations -->\n).*?(?=<!-- end -->)", re.DOTALL)


def host(x: Any) -> Any:
    """An operand as the model takes it: a list as an array with one more axis."""
    x = x.value if isinstance(x, Given) else x
    if hasattr(x, "items") and not isinstance(x, np.ndarray):
        items = x.items()
        return np.stack([host(item) for item in items]) if items else None
    return np.asarray(x)


def check(case: Case, operands: Any) -> bool:
    """Whether a sample can be exported; if so, the model computes what the kernel does."""
    arrays = [host(x) for x in operands]
    if any(x is None or x.dtype not in ELEMENT_TYPES for x in arrays):
        return False
    graph = graph_of(case, operands)
    with np.errstate(all="ignore"):
        expected = run(graph, [value_of(x) for x in operands])
    model = ModelBuilder()
    names = [f"x{k}" for k in range(len(arrays))]
    try:
        for param in graph.params:
            model.check_type(param.type, graph.nodes[0])
            if model.is_sequence(param.type):
                return False
        emitted = emit_graph(model, graph, names)
    except UnsupportedError:
        return False
    outputs = [k for k, name in enumerate(emitted) if name and host(expected[k]) is not None]
    for k in outputs:
        model.nodes.append(helper.make_node("Identity", [emitted[k]], [f"y{k}"]))
    inputs = [model.value_info(name, p.type) for name, p in zip(names, graph.params, strict=True)]
    infos = [model.value_info(f"y{k}", graph.results[k].type) for k in outputs]
    whole = helper.make_model(
        helper.make_graph(model.nodes, "g", inputs, infos, initializer=model.initializers),
        opset_imports=[helper.make_opsetid("", 21)],
        ir_version=10,
    )
    if not outputs:
        return False
    for actual, k in zip(results(whole, arrays), outputs, strict=True):
        wanted = host(expected[k])
        if wanted.dtype == object:  # a Zero, which is zeros in a model
            wanted = np.zeros_like(actual)
        assert (actual.dtype, actual.shape) == (wanted.dtype, wanted.shape)
        tol = 1e-10 if wanted.dtype == np.float64 else 1e-5
        if wanted.dtype.kind == "i" and case.op in WRAPPING:
            continue  # where they overflow, onnxruntime saturates
        np.testing.assert_allclose(actual, wanted, rtol=tol, atol=tol)
    return True


WRAPPING = {"pow", "reduce_sum", "reduce_prod", "dot_general"}
NO_SAMPLES = {
    *("while", "if", "call", "list_new", "list_zeros", "store", "raise_if", "frame_state"),
    *("after", "token"),
}
EXPORTED = sorted(EMITTERS)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("op", [op for op in EXPORTED if op not in NO_SAMPLES])
def test_an_operation(op: str) -> None:
    samples = [(case, x) for case in CASES if case.op == op for x in (*case.samples, *case.smooth)]
    stride = max(1, len(samples) // 12)
    checked = [check(case, operands) for case, operands in samples[::stride]]
    assert any(checked) or any(check(case, operands) for case, operands in samples)


def test_the_page_lists_the_operations(request: pytest.FixtureRequest) -> None:
    """Written anew by --update-golden."""
    others = sorted(op.name for op in TABLE.values() if op.name not in EMITTERS)
    text = (
        f"| exported ({len(EXPORTED)}) | not exported ({len(others)}) |\n|---|---|\n"
        f"| {', '.join(f'`{op}`' for op in EXPORTED)} | {', '.join(f'`{op}`' for op in others)} |\n"
    )
    page = PAGE.read_text(encoding="utf-8")
    new = TABLE_OF_PAGE.sub(lambda _: text, page)
    if request.config.getoption("--update-golden"):
        PAGE.write_text(new, encoding="utf-8")
    assert page == new
