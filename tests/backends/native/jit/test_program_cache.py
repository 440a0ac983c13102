"""Machine code that one process leaves for the next."""

from __future__ import annotations

import marshal
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wend
from wend.backends.native import backend
from wend.backends.native.jit import llvm
from wend.backends.native.jit.llvm import Engine, ObjectCode
from wend.backends.native.jit.program_cache import find_program
from wend.runtime.disk_cache import DiskCache

ADD = """
define double @add(double %x, double %y) {
  %sum = fadd double %x, %y
  ret double %sum
}
"""

# A tape in a loop, functions that modules share, arrays that the code refers to, a call of
# Python, LAPACK; and a second call, by the function that Python calls for every graph.
PROGRAM = """
import numpy as np
import wend
import wend.backends.native.jit.llvm as llvm

texts = []
optimize = llvm.optimize
llvm.optimize = lambda text, *rest: (texts.append(text), optimize(text, *rest))[1]
table = np.arange(64.0) * 0.01


def loss(x, a):
    total = 0.0
    while total < 3.0:
        total = total + wend.numpy.sum(wend.numpy.sin(x * table)) ** 2 + 0.1
    y = wend.numpy.linalg.solve(a, x[:3])
    return total + wend.numpy.sum(wend.numpy.sort(y) * wend.numpy.exp(x[:3]))


gradient = wend.value_and_grad(loss, argnums=(0, 1))
for _ in range(3):
    value, (dx, da) = gradient(np.linspace(0.1, 1.0, 64), np.eye(3) + 0.1)
print(len(texts), float(value).hex(), dx.tobytes().hex(), da.tobytes().hex())
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with wend.config(cache_dir=str(tmp_path)):
        yield tmp_path


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("program") / "program.py"
    file.write_text(PROGRAM)
    return file


def run(program: Path, folder: Path) -> subprocess.Popen:
    environment = {**os.environ, "WEND_CACHE_DIR": str(folder), "WEND_BACKEND": "native"}
    return subprocess.Popen(
        [sys.executable, program], env=environment, stdout=subprocess.PIPE, text=True
    )


def result(process: subprocess.Popen) -> tuple[int, str]:
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    count, _, rest = out.partition(" ")
    return int(count), rest


def test_a_second_process_compiles_nothing(program: Path, tmp_path: Path) -> None:
    (count, first), (again, second) = result(run(program, tmp_path)), result(run(program, tmp_path))
    assert count > 3
    assert again == 0
    assert second == first


def test_processes_that_start_at_once_agree(program: Path, tmp_path: Path) -> None:
    results = [result(process) for process in [run(program, tmp_path) for _ in range(3)]]
    assert len({rest for _, rest in results}) == 1
    assert result(run(program, tmp_path)) == (0, results[0][1])


def test_what_is_damaged_is_made_anew(program: Path, tmp_path: Path) -> None:
    _, first = result(run(program, tmp_path))
    for file in tmp_path.iterdir():
        file.write_bytes(file.read_bytes()[:-7])
    count, again = result(run(program, tmp_path))
    assert count > 3
    assert again == first
    assert result(run(program, tmp_path)) == (0, first)


def test_code_is_that_of_its_text_level_and_machine(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Engine()._compile_object(ADD, None)
    assert len([*folder.iterdir()]) == 1
    Engine()._compile_object(ADD, 0)
    Engine()._compile_object(ADD.replace("fadd", "fsub"), None)
    assert len([*folder.iterdir()]) == 3
    monkeypatch.setattr(llvm, "_features", lambda: "")
    Engine()._compile_object(ADD, None)
    assert len([*folder.iterdir()]) == 4
    monkeypatch.setattr(Engine, "effort", 0)
    Engine()._compile_object(ADD, None)
    monkeypatch.setattr(Engine, "level", 0)
    Engine()._compile_object(ADD, None)
    assert len([*folder.iterdir()]) == 6


def test_code_that_is_found_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Engine().compile(ADD, ["add"])
    monkeypatch.setattr(llvm, "optimize", None)
    assert Engine().compile(ADD, ["add"]).addresses["add"] != 0


@pytest.mark.parametrize("called", [[], ["malloc"], ["wend.take", "memcpy"]])
def test_code_is_written_and_read(called: list[str]) -> None:
    code = ObjectCode(called, b"\0\x01\n\0")
    assert ObjectCode.from_bytes(code.to_bytes()) == code


def test_without_a_folder_nothing_is_kept() -> None:
    with wend.config(cache_dir=""):
        assert wend.function(lambda x: x * 3.5, backend="native")(np.ones(2)).sum() == 7.0


class Evil:
    def __reduce__(self):
        return print, ("unpickled",)


JUNK = [b"junk", pickle.dumps(Evil()), pickle.dumps(os.system), pickle.dumps(3)]
JUNK += [marshal.dumps(None), marshal.dumps((1, 2, 3)), marshal.dumps(((), [], b"junk"))]


@pytest.mark.parametrize("junk", JUNK, ids=range(len(JUNK)))
def test_what_is_signed_but_of_another_kind_is_nothing(
    folder: Path,
    junk: bytes,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    keep = DiskCache.keep
    monkeypatch.setattr(DiskCache, "keep", lambda self, key, data: keep(self, key, junk))
    scale = float(len(junk))  # other code for each kind
    for _ in range(2):
        with wend.config(verify=False):
            slope = wend.function(wend.grad(lambda x: (x * x * scale).sum()), backend="native")
            np.testing.assert_allclose(slope(np.zeros(3)), 0.0)
    assert len([*folder.iterdir()]) >= 2
    assert capsys.readouterr().out == ""


def scaled(x, n):
    rows, k = [], 0
    while k < n:
        rows.append(x * k)
        k = k + 1
    return wend.numpy.stack(rows).sum()


def branch(x, n):
    return wend.cond(x[0] > 0, wend.numpy.unique, lambda x: x, x)


def effects(x, n):
    print(x[0])
    return wend.numpy.linalg.det(wend.numpy.outer(x, x) + np.eye(3))


PROGRAMS = [scaled, branch, effects, wend.grad(scaled), wend.grad(effects), wend.hessian(scaled)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fun", PROGRAMS)
def test_every_record_of_a_program_is_read_again(
    folder: Path, fun: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []

    def find(key: Any) -> Any:
        found.append(find_program(key))
        return found[-1]

    monkeypatch.setattr(backend, "find_program", find)
    with wend.config(verify=False):
        for _ in range(2):
            wend.function(fun, backend="native")(np.array([0.5, 0.25, 1.0]), 4)
    assert [cached is not None for cached in found] == [False, True]
