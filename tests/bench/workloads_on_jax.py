"""The breadth workloads that are written for JAX; `test_workloads.py` runs this file in a process
of its own.
"""

import pytest
from bench import workloads
from bench.workload import GRADIENT

from tests.bench.test_workloads import WARM, allowed, answer


@pytest.fixture(autouse=True, scope="module")
def _doubles():
    import jax

    jax.config.update("jax_enable_x64", True)  # as in a worker's environment


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("name", "measure"),
    [
        (name, measure)
        for name, measure in WARM
        if name in workloads.GROUPS["breadth"] and workloads.load(name).functional
    ],
)
def test_jax(name, measure):
    found, off, _ = answer(name, "jax", measure)
    assert len(found) > (measure == GRADIENT)
    assert off < allowed(name)
