"""The compiler: what it makes once, what it lets go, and who waits for whom."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.backends.native.jit import llvm
from wend.backends.native.jit.llvm import (
    MAX_CACHED_LIBRARIES,
    MAX_LIBRARIES_PER_LINKER,
    Engine,
    Library,
    engine,
)
from wend.backends.native.math.library import cold_names
from wend.backends.native.module import write
from wend.backends.native.program import ENTRY
from wend.backends.native.rt.shared import shared_module_of, shared_modules
from wend.cli.demo import Parameters, negative_log_likelihood, read_pelts
from wend.cli.dopri import advance
from wend.passes.pipeline import OPTIMIZE, run_passes

ADD = """
define double @add(double %x, double %y) {{
  %sum = fadd double %x, {term}
  ret double %sum
}}
"""


def native(fun: Callable[..., Any]) -> Any:
    return wend.function(fun, backend="native")


@pytest.fixture
def linked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts of the modules that LLVM was given, but for what modules share."""
    texts: list[str] = []
    link = Engine._link

    def spy(self: Engine, linker: Any, text: str, *rest: Any, **options: Any) -> Library:
        if linker is self._linker:
            texts.append(text)
        return link(self, linker, text, *rest, **options)

    monkeypatch.setattr(Engine, "_link", spy)
    return texts


def test_an_equal_module_is_compiled_once(linked: list[str]) -> None:
    text = ADD.format(term="0.125")
    first = engine().compile(text, ["add"])
    assert engine().compile(text, ["add"]) is first
    assert engine().compile(ADD.format(term="0.25"), ["add"]) is not first
    assert len(linked) == 2


def test_a_gradient_asked_for_again_is_not_compiled_again(linked: list[str]) -> None:
    with wend.config(backend="native"):
        found = []
        for _ in range(5):
            scale = np.float64(0.731)
            found.append(wend.grad(lambda x, s=scale: wend.numpy.sin(x) * s)(1.0))
    assert len({float(x) for x in found}) == 1
    assert len(linked) <= 1 + len(shared_modules())


def test_equal_code_on_other_arrays_is_other_code() -> None:
    """Arrays from outside are known by where they are."""
    results = []
    for k in range(4):
        table = np.full(40, float(k))
        results.append(float(native(lambda x, t=table: wnp.sum(x * wnp.asarray(t)))(np.ones(40))))
    assert results == [0.0, 40.0, 80.0, 120.0]


def test_host_calls_of_equal_code_are_not_mixed_up() -> None:
    def make(k: int) -> Any:
        def on_host(x: Any) -> Any:
            return np.asarray(x) + k

        return native(lambda x: wend.py_function(on_host, wend.TensorSpec((), float), x))

    functions = [make(k) for k in range(4)]
    assert [float(f(1.0)) for f in functions] == [1.0, 2.0, 3.0, 4.0]


def test_variables_of_equal_code_are_not_mixed_up() -> None:
    variables = [wend.Variable(0.0) for _ in range(3)]

    def make(variable: wend.Variable) -> Any:
        return native(lambda x: variable.assign_add(x))

    for k, variable in enumerate(variables):
        make(variable)(float(k))
    assert [float(v.value) for v in variables] == [0.0, 1.0, 2.0]


def test_errors_of_equal_code_name_their_own_lines() -> None:
    first = native(lambda x: wend.assert_(x > 0.0, "one") or x)
    second = native(lambda x: wend.assert_(x > 0.0, "two") or x)
    for function, message in ((first, "one"), (second, "two")):
        with pytest.raises(AssertionError, match=message):
            function(-1.0)


def test_code_that_nobody_needs_goes() -> None:
    libraries = [
        weakref.ref(engine().compile(ADD.format(term=f"{k}.5"), ["add"])) for k in range(100)
    ]
    gc.collect()
    assert sum(ref() is not None for ref in libraries) <= MAX_CACHED_LIBRARIES


def test_memory_of_dropped_code_goes() -> None:
    """LLVM keeps some for each library until its linker goes."""

    def pages() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1])

    def compile(count: int, start: int) -> None:
        for k in range(start, start + count):
            engine().compile(ADD.format(term=f"{k}.0"), ["add"])

    if not Path("/proc/self/statm").exists():
        pytest.skip("the system does not tell how much memory is used")
    compile(4 * MAX_LIBRARIES_PER_LINKER, 1000)
    before = pages()
    compile(8 * MAX_LIBRARIES_PER_LINKER, 10_000)
    assert (pages() - before) * 4096 < 8 * MAX_LIBRARIES_PER_LINKER * 4096


def test_running_and_dropping_do_not_wait_for_a_compiler() -> None:
    function, other = native(lambda x: x * 3.25 + 1.0), native(lambda x: x * 7.75 - 1.0)
    for _ in range(2):  # with the second call, which compiles how Python calls them
        function(1.0), other(1.0)
    found: list[Any] = []

    def work() -> None:
        nonlocal other
        del other
        gc.collect()
        found.append(function(2.0))

    thread = threading.Thread(target=work)
    with llvm._LOCK:  # somebody compiles
        thread.start()
        thread.join(20.0)
        assert found == [7.5]


def test_threads_that_compile_at_once_agree() -> None:
    found: list[float] = []

    def work(k: int) -> None:
        function = native(lambda x: wnp.sin(x) * 2.0 + float(k % 2))
        found.append(float(function(1.0)) - k % 2)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_allclose(found, [2.0 * np.sin(1.0)] * 6)


def test_only_what_is_called_is_compiled() -> None:
    code = """
import wend
from wend.backends.native.jit.llvm import engine
assert wend.function(lambda x, y: x * y + 1, backend="native")(2.0, 3.0) == 7.0
assert not engine()._shared, engine()._shared
wend.function(wend.numpy.exp, backend="native")(1.0)
assert [s.exports for s in engine()._shared] == [["wend.exp.edge"]], engine()._shared
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_cold_function_is_shared() -> None:
    for name in cold_names():
        assert shared_module_of(f"wend.{name}").exports == [f"wend.{name}"]


def test_a_function_of_nobody_is_an_error() -> None:
    text = "declare void @wend.none()\ndefine void @f() {\n call void @wend.none()\n ret void }"
    with pytest.raises(KeyError, match=r"wend\.none"):
        engine().compile(text, ["f"])


def seconds_per_line(function: Any, *args: Any) -> float:
    """What LLVM takes for a line of a gradient's text."""
    graph = wend.grad(function, has_aux=True)
    traced = wend.function(graph).get_concrete_function(*args).graph
    program = write(run_passes(traced, OPTIMIZE))
    start = time.process_time()
    Engine().compile(program.text, [ENTRY], program.constants)
    return (time.process_time() - start) / program.text.count("\n")


@pytest.mark.slow  # seconds, which a busy machine changes
def test_nested_loops_take_llvm_no_longer_than_others_of_their_size() -> None:
    def one(p: Any) -> Any:
        state, _, tried = advance(lambda y: (-p * y,), (1.0,), 2.0, 0.1, 1e-8)
        return state[0], tried

    def slope(parameters: Any) -> Any:
        slopes, _ = wend.grad(negative_log_likelihood, has_aux=True)(parameters, pelts, 1e-6)
        return sum(slopes), ()

    pelts = read_pelts()
    start = Parameters(*[float(x) for x in np.log((0.5, 0.02, 0.5, 0.02, 30.0, 4.0, 0.3, 0.3))])
    seconds_per_line(one, 0.5)  # shared functions too
    single = min(seconds_per_line(one, 0.5) for _ in range(2))
    nested = seconds_per_line(slope, start)
    assert nested < 3.0 * single
