"""The checks of a callee carry what its caller has written."""

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
  %4: token = raise_if(%3, %2, %1, %0) {error='ValueError', text='{}', written=(0,)}
  %5: token = if(%2, %4, %1)
    branch0(%6: token, %7: i64[]) {
      return %6
    }
    branch1(%8: token, %9: i64[]) {
      %10: bool[] = constant() {value=bool[]<True>}
      %11: token = raise_if(%8, %10, %9) {error='KeyError', text='{}'}
      return %11
    }
  return %5
}
"""


@pytest.mark.parametrize(
    ("renamed", "first", "contents"),
    [({}, "%1, %4", "(2,)"), ({0: 2}, "%1, %0", "(2,)"), ({0: 5}, "%1, %4, %0", "(2, 5)")],
)
def test_the_last_write_to_an_array_counts(
    renamed: dict[int, int], first: str, contents: str
) -> None:
    graph = verify(attach_writes(parse(CALLEE.strip()), renamed, [2], [VECTOR]))
    assert graph.param_types[-1] == VECTOR
    text = to_text(graph)
    assert (
        f"raise_if(%3, %2, {first}) {{error='ValueError', text='{{}}', written={contents}}}" in text
    )
    # In a branch, the array is a further param.
    (inner,) = (node for node in graph.nodes[-1].regions[1].nodes if node.op.name == "raise_if")
    assert inner.operands[-1] is graph.nodes[-1].regions[1].params[-1]
    assert inner.attrs["written"] == (2,)
