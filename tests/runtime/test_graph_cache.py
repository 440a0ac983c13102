"""What one process leaves for the next: it does the same, and makes nothing twice.

Each case is a program that runs three times: with nothing on disk and nothing kept, with an empty
folder, and with what that has left.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import wend
from wend.ir.graph import Graph
from wend.ir.packing import Names
from wend.runtime import graph_cache

PRELUDE = """
import sys
import numpy as np
import wend, wend.numpy as wnp
import wend.backends.compiled_graph
import wend.function.derivatives.gradient, wend.function.derivatives.jacobian

made = []

def counted(module, name):
    module, original = sys.modules[module], getattr(sys.modules[module], name)
    def count(*args, **kwargs):
        made.append(name)
        return original(*args, **kwargs)
    setattr(module, name, count)

for name in ("vjp", "jvp", "linearize"):
    counted("wend.backends.compiled_graph", name)
counted("wend.function.derivatives.gradient", "joint")
counted("wend.passes.pipeline", "run_passes")

def show(*values):
    for value in values:
        print(np.asarray(value).tobytes().hex() if not isinstance(value, str) else value)

def failure(fun, *args):
    try:
        fun(*args)
    except Exception as error:
        show(type(error).__name__, str(error), *getattr(error, "__notes__", []))
    else:
        show("no error")
"""
# What was made; and whether what writes code was needed at all
END = """
sys.stderr.write(f"{int('wend.backends.native.module' in sys.modules)} {','.join(made)}")
"""

GRADIENTS = """
def fun(x, n):
    total = 0.0
    for k in range(n):
        while total < 3.0:
            total = total + wnp.sum(wnp.sin(x)) ** 2 + 0.1
        x = x * 0.5
    return total * wnp.sum(x)

x = np.linspace(0.1, 1.0, 5)
loss = lambda x: fun(x, 3)
show(*wend.value_and_grad(loss)(x))
show(wend.grad(lambda y: wnp.sum(wend.grad(loss)(y) ** 2))(x))
show(wend.hessian(loss)(x), wend.jacfwd(loss)(x))
value, pullback = wend.vjp(loss, x)
show(value, *pullback(1.0))
show(*wend.jvp(loss, (x,), (x,)))
value, linear = wend.linearize(loss, x)
show(value, linear(x), linear(2.0 * x))
"""

ARRAYS = """
table = np.arange(100.0)

@wend.function(capture_by_value=True)
def looked_up(x, k):
    return table[k] * wnp.sum(wnp.exp(-x) * table) + wnp.sum(x @ x)

@wend.function(input_signature=[wend.TensorSpec([None], float), wend.TensorSpec([None], float)])
def unknown(x, y):
    return wnp.sum(wnp.sin(x) + wnp.cos(y)), x * y

x = np.linspace(0.0, 1.0, 100)
show(looked_up(x, 7), *wend.value_and_grad(looked_up)(x, 7))
show(*unknown(x, x))
failure(unknown, x, x[:-1])
failure(looked_up, x, 700)
"""

FAILURES = """
@wend.function
def reads(x, k):
    total = 0.0
    while total < 2.0:
        total = total + x[k]
        k += 1
    return total

@wend.function
def asserts(x):
    for k in range(10):
        x = x * 2.0
        wend.assert_(x < 100.0, "too large")
    return x

@wend.function
def lists(x, n):
    found = []
    for k in range(n):
        found.append(x * k)
    return found[3] if n > 3 else x

x = np.linspace(0.1, 0.2, 40)
show(reads(x, 0), asserts(0.01), wend.grad(lambda x: reads(x, 3))(x))
failure(reads, x, 38)
failure(wend.grad(lambda x: reads(x, 38)), x)
failure(asserts, 1.0)
failure(wend.grad(asserts), 1.0)
"""

PYTHON = """
factor = [2.0]
v = wend.Variable(1.0)

def python(x):
    return np.asarray(x) * factor[0]

@wend.function
def calls(x):
    wend.print("x is", x)
    return wend.py_function(python, wend.TensorSpec([], float), x) + v.assign_add(x)

show(calls(2.0), v.value, calls(3.0), v.value)
show(wnp.linalg.det(np.eye(3) * 2.0), wend.function(wnp.linalg.det)(np.eye(3) * 2.0))
"""

SETTINGS = """
def fun(x):
    y = x
    for k in range(20):
        y = wnp.sin(y) + wnp.log(y)
    return y

gradient = wend.value_and_grad(fun)
show(*gradient(3.0))
show(gradient.explain(), gradient.get_concrete_function(3.0).explain())
with wend.config(nans=True):
    failure(gradient, -1.0)
with wend.config(compare=True):
    show(*gradient(3.0))
with wend.config(verify_memory=True):
    show(*gradient(3.0))
with wend.profile() as profile:
    gradient(3.0)
show(str("sin" in str(profile)))
"""


class Run(NamedTuple):
    out: str
    made: frozenset[str]
    wrote: bool


def run(file: Path, folder: str | Path, *args: str) -> Run:
    environment = {**os.environ, "WEND_CACHE_DIR": str(folder), "WEND_BACKEND": "native"}
    command = [sys.executable, str(file), *args]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stderr
    wrote, _, made = found.stderr.partition(" ")
    return Run(found.stdout, frozenset(made.split(",")) - {""}, wrote == "1")


def program(tmp_path: Path, text: str, name: str = "program.py") -> Path:
    file = tmp_path / name
    file.write_text(PRELUDE + textwrap.dedent(text) + END)
    return file


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("text", "again"),
    # Forms are optimised before it is known what of them is to be compiled.
    [(GRADIENTS, {"run_passes"}), (ARRAYS, {}), (FAILURES, {}), (PYTHON, None), (SETTINGS, None)],
    ids=["gradients", "arrays", "failures", "python", "settings"],
)
def test_the_second_process_does_the_same(
    tmp_path: Path, text: str, again: Set[str] | None
) -> None:
    file, folder = program(tmp_path, text), tmp_path / "cache"
    fresh, first = run(file, ""), run(file, folder)
    second = run(file, folder)
    assert first.out == fresh.out
    assert second.out == fresh.out
    if again is not None:
        assert first.made == fresh.made != second.made
        assert second.made == {*again}
        assert (first.wrote, second.wrote) == (True, False)


LINE = """
factor = float(sys.argv[1])
held = np.full(50, float(sys.argv[2]))

def fun(x, k):
    total = 0.0
    while total < 100.0:
        total = total + wnp.sum(x * held) * factor + x[k]
    return total

show(*wend.value_and_grad(fun)(np.ones(50), 7))
failure(wend.grad(fun), np.ones(50), 70)
"""


def test_constants_captured_arrays_and_lines_are_those_of_the_process(tmp_path: Path) -> None:
    file, folder = program(tmp_path, LINE), tmp_path / "cache"
    first = run(file, folder, "1.0", "1.0")
    assert first.made
    # An array that is captured by reference is an argument; a number is part of the graph.
    for args, is_made in [(("1.0", "2.0"), False), (("3.0", "1.0"), True)]:
        found = run(file, folder, *args)
        assert bool(found.made) == is_made
        assert found.out == run(file, "", *args).out
    moved = program(tmp_path, "\n\n" + LINE)
    again = run(moved, folder, "1.0", "1.0")
    assert again.made
    assert again == run(moved, "", "1.0", "1.0")
    assert again.out != first.out  # the lines in errors


def test_what_is_damaged_or_of_another_is_made_anew(tmp_path: Path) -> None:
    file, folder = program(tmp_path, LINE), tmp_path / "cache"
    first = run(file, folder, "1.0", "1.0")
    entries = sorted(folder.iterdir())
    whole = [entry.read_bytes() for entry in entries]
    for contents in ([x[:-5] for x in whole], [b"" for _ in whole], whole[1:] + whole[:1]):
        for entry, content in zip(entries, contents, strict=True):
            entry.write_bytes(content)
        again = run(file, folder, "1.0", "1.0")
        assert again == first
        assert [entry.read_bytes() for entry in entries] == whole


def test_code_that_is_gone_is_compiled_again(tmp_path: Path) -> None:
    """Files are dropped one by one: each that is left is of use, or of none."""
    file, folder = program(tmp_path, LINE), tmp_path / "cache"
    first = run(file, folder, "1.0", "1.0")
    for entry in sorted(folder.iterdir()):
        entry.unlink()
        assert run(file, folder, "1.0", "1.0").out == first.out


def test_another_wend_finds_nothing(tmp_path: Path) -> None:
    text = PRELUDE + "import wend.runtime.graph_cache as cache\n"
    text += "cache.build_fingerprint = lambda: sys.argv[3].encode()\n" + LINE + END
    file, folder = tmp_path / "program.py", tmp_path / "cache"
    file.write_text(text)
    assert run(file, folder, "1.0", "1.0", "one").made
    assert not run(file, folder, "1.0", "1.0", "one").made
    assert run(file, folder, "1.0", "1.0", "two").made


def test_a_graph_is_packed_and_hashed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is derived from a graph, and whatever compiles it, shares the hash of its nodes."""
    packed: list[Graph] = []
    original = graph_cache.pack

    def pack(graphs: Sequence[Graph], names: Names) -> Any:
        packed.extend(graphs)
        return original(graphs, names)

    monkeypatch.setattr(graph_cache, "pack", pack)
    with wend.config(cache_dir=str(tmp_path), verify=False):
        concrete = wend.function(lambda x: np.sin(x) * x).get_concrete_function(2.0)
        key = graph_cache.cache_key(concrete.graph, "one")
        assert key != graph_cache.cache_key(concrete.graph, "two")
        concrete(2.0), concrete.compiled.vjp([0], [0]), concrete.compiled.jvp([0])
    assert packed.count(concrete.graph) == 1


def test_nothing_is_asked_for_where_the_cache_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    def build_fingerprint() -> bytes:
        raise AssertionError("the files of wend were looked at")

    monkeypatch.setattr(graph_cache, "build_fingerprint", build_fingerprint)
    with wend.config(cache_dir="", verify=False):
        graph = wend.function(lambda x: x * x).get_concrete_function(2.0).graph
        assert graph_cache.cache_key(graph, "one") is None
