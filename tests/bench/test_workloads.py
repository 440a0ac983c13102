"""Every program of every workload gives the answer; the answer is that of finite differences."""

import importlib.util
from functools import partial

import numpy as np
import pytest
from bench import digest, reference, workloads
from bench.peers.c import SOURCES, compiler
from bench.peers.python import LIBRARY
from bench.worker import Worker
from bench.workload import GRADIENT, VALUE

from tests.helpers.own_process import run_alone

CHECKED = [name for name in workloads.NAMES if workloads.load(name).checked]
WARM = [
    (name, measure)
    for name in CHECKED
    for measure in (VALUE, GRADIENT)
    if measure in workloads.load(name).measures
]


def answer(name, peer, measure):
    """What a peer answers, how far from the right answer that is, and the program."""
    worker = Worker(name, peer)
    worker.load()
    made = worker.make(measure, small=True)
    if "refuses" in made:
        pytest.skip(f"refuses: {made['refuses']}")
    found = worker.call(small=True)["answer"]
    off = reference.distance(found, reference.answer(worker.workload, worker.workload.small))
    return found, off, worker.program


def allowed(name):
    """How far off an answer may be: more, where the right one is found by differences."""
    workload = workloads.load(name)
    return 1e-10 if workload.answer is None else workload.tolerance


@pytest.mark.sampled(30)
@pytest.mark.parametrize(("name", "measure"), WARM)
def test_wend(name, measure):
    found, off, program = answer(name, "wend", measure)
    assert len(found) > (measure == GRADIENT)
    assert off < (workloads.load(name).tolerance if name == "dopri" else allowed(name))
    function = program.args[0] if isinstance(program, partial) else program
    assert "runs in Python" not in str(function.explain())


def test_jax():
    if importlib.util.find_spec("jax") is None:
        pytest.skip("NOT RUN: jax is not installed")
    run_alone("tests/bench/workloads_on_jax.py")


@pytest.mark.sampled(3)
@pytest.mark.skipif(compiler() is None, reason="no C compiler")
@pytest.mark.parametrize("source", [path.stem for path in sorted(SOURCES.glob("*.c"))])
def test_c(source):
    name = source.removesuffix("_fast")
    for measure in (VALUE, GRADIENT):
        if (name, measure) in WARM:
            _, off, _ = answer(name, "c" if source == name else "c-fast", measure)
            assert off < allowed(name)
    assert np.nextafter(0.0, 1.0) * 1.0 > 0.0  # subnormals are still there


@pytest.mark.parametrize(
    "name",
    [name for name, measure in WARM if measure == GRADIENT and workloads.load(name).answer is None],
)
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
        assert list(map(kind, workload.small)) == list(map(kind, workload.arguments))


def kind(value):
    return np.ndim(value), np.asarray(value).dtype


@pytest.mark.parametrize("name", ["kmeans", "npbench-adi"])
def test_a_wrong_answer_is_seen(name):
    workload = workloads.load(name)
    right = reference.answer(workload, workload.small)
    assert reference.distance([*right[:-1], right[-1] * 1.01], right) > workload.tolerance


def test_names_are_those_of_one_workload():
    assert len(set(workloads.NAMES)) == len(workloads.NAMES)


def test_a_group_stands_for_its_workloads():
    assert workloads.named(["call", "lstm"]) == ["call", *workloads.GROUPS["lstm"]]
    assert workloads.named([]) == list(workloads.NAMES)


def test_large_arrays_are_a_number_each():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((20, 30))
    (found,) = digest.numbers(x)
    assert digest.numbers((x, 2.0)) == [found, 2.0]
    assert digest.numbers(x.T) != [found]
    assert digest.numbers([np.arange(3), 1j]) == [0.0, 1.0, 2.0, 0.0]


def test_differences_are_derivatives():
    def program(x, y):
        return np.sum(np.sin(x) * y)

    x, y = np.linspace(0.0, 1.0, 3), np.linspace(1.0, 2.0, 3, dtype=np.float32)
    found = reference.differences(program, (0,))(x, y)
    assert found == pytest.approx([program(x, y), *np.cos(x) * y])
