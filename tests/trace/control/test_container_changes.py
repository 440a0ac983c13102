"""Frame states tell what has changed since the last one, of whatever kind the change is."""

from __future__ import annotations

import itertools
import linecache
import random
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.trace.control.test_container_states import BACKENDS, Body, outcome

import wend
from wend.backends.native.codegen import outlining
from wend.ir.graph import Graph, Node
from wend.ops.frame_states import frame_state

_files = itertools.count()


def function_of(source: str, **names: Any) -> Callable[..., Any]:
    """Return the function `program` of a text."""
    file = f"<changes {next(_files)}>"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    scope: dict[str, Any] = {"np": np, **names}
    exec(compile(source, file, "exec"), scope)
    program: Callable[..., Any] = scope["program"]
    return program


def checked_items(count: int) -> str:
    lines = [f"    assert l[{k}] > 0.0\n    l[{k}] = l[{k}] * 2.0" for k in range(count)]
    return "\n".join(["def program(l):", *lines])


def checked_fields(count: int) -> str:
    lines = [f"    b.x, d[{k}] = b.v[b.n], b.x\n    b.n = b.n + 1" for k in range(count)]
    return "\n".join(["def program(b, d):", *lines])


def appended(count: int) -> str:
    lines = [f"    l.append(a[k] + {k})" for k in range(count)]
    return "\n".join(["def program(l, a, k):", *lines])


@pytest.mark.parametrize(
    ("source", "arguments"),
    [
        (checked_items, lambda n: ([1.0] * n,)),
        (checked_fields, lambda n: (Body(1.0, np.ones(n)), {})),
        (appended, lambda n: ([], np.ones(3), 1)),
    ],
)
def test_records_grow_with_the_number_of_changes(
    source: Callable[[int], str], arguments: Callable[[int], tuple[Any, ...]]
) -> None:
    def counts(n: int) -> tuple[int, int, int]:
        program = wend.function(function_of(source(n)), backend="numpy")
        traced = program.get_concrete_function(*arguments(n)).traced
        states = [node for node in traced.graph.walk() if node.op is frame_state]
        return len(states), sum(len(x.operands) for x in states), len(traced.states)

    small, middle, large = counts(10), counts(20), counts(40)
    for a, b, c in zip(small, middle, large, strict=True):
        assert c - b == 2 * (b - a)  # linear


# Statements on a list, a dict, a deque and an instance; `a[k]` is what may fail.
STATEMENTS = (
    *("l[0] = a[k] * 2.0", "l[-1] = l[0] + 1.0", "l.append(a[k])", "l.pop()", "l.insert(0, 2.5)"),
    *("l.append(7)", "del l[0]", "l[:] = [a[k], 1.0, 2.0]", "l.reverse()", "l[1] = d"),
    *("d['n'] = a[k]", "d.pop('n', None)", "d['m'] = d.pop('p', y)", "d['p'] = [a[k]]"),
    *("l[0] = 3.0", "l[1] = y"),
    *("d['q'] = {'r': l}", "d.clear()", "d['p'] = (a[k], l[0])", "d.update(s=2.0)"),
    *("q.append(a[k])", "q.rotate(1)", "q.popleft()", "q.appendleft(1.0)", "q[0] = a"),
    *("b.x = a[k] + b.x", "b.n = 4", "b.items.append(b.x)", "b.child = [b.x]", "b.name = 'moon'"),
    *("b.v = b.v + 1.0", "b.v[0] = a[k]", "b.child = None", "b.x = y", "y = a[k - 1]"),
    *("a[0] = b.x", "a[:] = a + 1.0", "b.child = np.zeros(2)", "b.v = a", "b.items = l"),
    *("if a[k] > 1.0:\n        l[0] = a[k + 1]\n    else:\n        b.x = a[k] - 1.0",),
    *("for i in range(k):\n        b.x = b.x + a[i]\n        a[i] = b.x",),
    *("if b.x > 2.0:\n        b.n = b.n + 1\n        raise ValueError('large')",),
)


def random_program(seed: int) -> str:
    rng = random.Random(seed)
    lines = [rng.choice(STATEMENTS) for _ in range(rng.randrange(6, 14))]
    checked = [x for line in lines for x in (line, f"assert a[k] < {rng.randrange(2, 12)}.0")]
    return "\n".join(
        ["def program(l, d, q, b, a, k):", "    y = 1.0", *(f"    {x}" for x in checked)]
    )


def given(k: int) -> tuple[Any, ...]:
    body = Body(1.5, np.arange(3.0))
    return [1.0, 2.0, 3.0, 4.0], {"p": 0.5, "n": 1}, deque([1.0, 2.0]), body, np.arange(3.0), k


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed: int, backend: str) -> None:
    program = function_of(random_program(seed))
    compiled = wend.function(program, backend=backend)
    for k in (1, 2, 3, 0, 1):
        actual = outcome(compiled, given(k))
        is_refused = actual[0] is not None and issubclass(actual[0], wend.WendError)
        assert is_refused or actual == outcome(program, given(k))


@pytest.mark.parametrize("seed", range(100, 104))
def test_parts_of_long_functions(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exits of parts save what the part has computed for frame states that continue others."""
    monkeypatch.setattr(outlining, "MAX_WHOLE_LINES", 20)
    monkeypatch.setattr(outlining, "_MIN_CUT_LINES", 5)
    with wend.config(cache_dir=""):
        test_random_programs(seed, "native")


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_error_ends_a_trace_for_the_value_of_an_integer(backend: str) -> None:
    def program(l, a, k):
        l[0] = a[0] + 1.0
        l[1] = len([0.0] * k)  # Python needs the value of k
        a[1] = l[0]
        l[2] = a[k]

    compiled = wend.function(program, backend=backend)
    for k in (1, 5, 2, 6, 5):
        arguments = [0.0, 0, 0.0], np.zeros(3), k
        assert outcome(compiled, ([0.0, 0, 0.0], np.zeros(3), k)) == outcome(program, arguments)


def test_a_callee_is_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its facts are found at the first call, and not at every other one."""

    @wend.function
    def callee(l, a, k):
        l[0] = a[k]
        l[1] = a[k + 1]

    walked: list[str] = []
    walk = Graph.walk

    def counting(graph: Graph) -> Iterator[Node]:
        walked.append(graph.name)
        return walk(graph)

    def count(calls: int) -> int:
        lines = [f"    callee(l, a, k + {n})" for n in range(calls)]
        program = function_of("\n".join(["def program(l, a, k):", *lines]), callee=callee)
        compiled = wend.function(program, backend="numpy")
        walked.clear()
        monkeypatch.setattr(Graph, "walk", counting)
        compiled.get_concrete_function([0.0, 0.0], np.zeros(9), 1)
        monkeypatch.undo()
        return walked.count("callee")

    count(2)  # the callee is traced, for numbers of Python and for those of NumPy
    assert count(6) == 0


@pytest.mark.parametrize("is_loaded", [False, True])
def test_changes_that_do_not_last(is_loaded: bool, tmp_path: Path) -> None:
    """Concrete and loaded functions have no caller: its containers stay as before the call."""

    @wend.function
    def program(l, a, k):
        first = l[0]
        l[0] = first + 1.0
        y = a[k]
        l[0] = first
        return y

    call: Callable[..., Any] = program.get_concrete_function([0.0], np.zeros(2), 1)
    if is_loaded:
        wend.save(tmp_path / "program.wend", program)
        call = wend.load(tmp_path / "program.wend")
    l = [0.5]
    assert call(l, np.ones(2), 1) == 1.0
    with pytest.raises(IndexError):
        call(l, np.ones(2), 5)
    assert l == [0.5]
