"""Every program of every workload gives the answer; the answer is that of finite differences."""

import numpy as np
import pytest
from bench import reference, workloads
from bench.peers.c import SOURCES, compiler
from bench.peers.python import LIBRARY
from bench.remote import as_json
from bench.worker import Worker
from bench.workload import GRADIENT, VALUE

CHECKED = [name for name in workloads.NAMES if workloads.load(name).checked]
WARM = [
    (name, measure)
    for name in CHECKED
    for measure in (VALUE, GRADIENT)
    if measure in workloads.load(name).measures
]


def answer(name, peer, measure):
    """What a peer answers, and how far from the right answer that is."""
    worker = Worker(name, peer)
    worker.load()
    given = as_json(worker.workload.small)
    made = worker.make(measure, given)
    if "refuses" in made:
        pytest.skip(f"refuses: {made['refuses']}")
    found = worker.call(given)["answer"]
    return found, reference.distance(
        found, reference.answer(worker.workload, worker.workload.small)
    )


@pytest.mark.parametrize(("name", "measure"), WARM)
def test_wend(name, measure):
    found, off = answer(name, "wend", measure)
    assert len(found) > (measure == GRADIENT)
    assert off < 1e-10


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
@pytest.mark.parametrize("source", [path.stem for path in sorted(SOURCES.glob("*.c"))])
def test_c(source):
    name = source.removesuffix("_fast")
    for measure in (VALUE, GRADIENT):
        if (name, measure) in WARM:
            _, off = answer(name, "c" if source == name else "c-fast", measure)
            assert off < 1e-10
    assert np.nextafter(0.0, 1.0) * 1.0 > 0.0  # subnormals are still there


@pytest.mark.parametrize("name", [name for name, measure in WARM if measure == GRADIENT])
def test_answers_are_those_of_finite_differences(name):
    workload = workloads.load(name)
    program = workload.plain(LIBRARY)
    slopes = reference.answer(workload, workload.small)[1:]
    index = workload.differentiable[-1]
    at = np.asarray(workload.small[index])
    ends = []
    for sign in (1, -1):
        given = list(workload.small)
        given[index] = at + sign * 1e-6 * np.ones_like(at)
        ends.append(program(*given))
    # of the last argument, along (1, …, 1)
    assert (ends[0] - ends[1]) / 2e-6 == pytest.approx(sum(slopes[-at.size :]), rel=1e-4)


def test_small_arguments_are_of_the_same_types():
    for name in workloads.NAMES:
        workload = workloads.load(name)
        assert workload.name == name
        assert list(map(np.shape, workload.small)) == list(map(np.shape, workload.arguments))
