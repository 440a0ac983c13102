"""Random programs under vmap and gradient, in chunks on several threads: a loop over the elements.

The elements share the vector or not; their scalars differ, so loops end at different trips. Points
at which a program is not smooth are the same for both, as the same graphs compute them.
"""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given

import wend
import wend.numpy as wnp
from tests.autodiff.test_fuzz import examples
from tests.fuzz.mapped import check_mapped, mapped_programs
from tests.fuzz.program import Program as Mapped
from tests.fuzz.quick import quickly
from tests.helpers.random_programs import Program, programs, staged
from tests.helpers.shares import sized
from wend.passes import batch_lanes, chunk_maps, lane_maps

COUNT = 9
RNG = np.random.default_rng(5)
XS, YS = RNG.uniform(-2, 2, (2, COUNT))
VS = RNG.uniform(-1.5, 1.5, (COUNT, 3))


@pytest.mark.parametrize("shares", [False, True])
@examples(sized(4, 8))
@given(program=programs())
def test_values_and_gradients(program: Program, *, shares: bool) -> None:
    fun = staged(program)
    axes, v = ((0, 0, None), VS[0]) if shares else ((0, 0, 0), VS)
    few = mock.patch.multiple(chunk_maps, MIN_IN_LANES=2, _MIN_IN_LOOPS=2)
    lanes = mock.patch.multiple(batch_lanes, MIN_ELEMENTS=0)
    both = wend.value_and_grad(lambda x, y, v: wnp.sum(fun(x, y, v)), argnums=(0, 1, 2))
    registers = mock.patch.multiple(lane_maps, MIN_ELEMENTS=0, NARROW=4, WIDE=8)
    with few, lanes, registers, wend.config(threads=2):
        value, slopes = wend.vmap(both, in_axes=axes)(XS, YS, v)
    single = [
        both(x, y, v if shares else v[k]) for k, (x, y) in enumerate(zip(XS, YS, strict=True))
    ]
    close(value, [x for x, _ in single])
    for column, expected in zip(slopes, zip(*(x for _, x in single), strict=True), strict=True):
        close(column, expected)


@pytest.mark.filterwarnings("ignore")
@examples(sized(3, 6))
@given(program=mapped_programs())
def test_programs_of_numbers(program: Mapped) -> None:
    """Nested loops, branches, exits and positions past what a loop has searched."""
    with quickly(), wend.config(verify=False):
        check_mapped(program)


def close(found: object, expected: object) -> None:
    np.testing.assert_allclose(found, np.stack(expected), rtol=1e-7, atol=1e-7)  # type: ignore[call-overload]
