"""The frame states of a callee tell what its caller has written."""

from __future__ import annotations

import numpy as np
import pytest

from wend.ir import parse, to_text
from wend.ir.types import TensorType
from wend.ir.verify import verify
from wend.passes.attach_writes import attach_writes

VECTOR = TensorType(np.dtype(float), (3,))

CALLEE = """
graph callee(%0: f64[3], %1: i64[], %2: bool[], %3: token) {
  %4: token = frame_state(%3, %0) {written=(0,)}
  %5: token = if(%2, %4, %1)
    branch0(%6: token, %7: i64[]) {
      return %6
    }
    branch1(%8: token, %9: i64[]) {
      %10: token = frame_state(%8) {written=()}
      return %10
    }
  return %5
}
"""


@pytest.mark.parametrize(
    ("renamed", "first", "contents"),
    [({}, "%4", "(2,)"), ({0: 2}, "%0", "(2,)"), ({0: 5}, "%4, %0", "(2, 5)")],
)
def test_the_last_write_to_an_array_counts(
    renamed: dict[int, int], first: str, contents: str
) -> None:
    graph = verify(attach_writes(parse(CALLEE.strip()), renamed, [2], [VECTOR]))
    assert graph.param_types[-1] == VECTOR
    text = to_text(graph)
    assert f"frame_state(%3, {first}) {{written={contents}}}" in text
    # In a branch, the array is a further param.
    (inner,) = (node for node in graph.nodes[-1].regions[1].nodes if node.op.name == "frame_state")
    assert inner.operands[-1] is graph.nodes[-1].regions[1].params[-1]
    assert inner.attrs["written"] == (2,)
