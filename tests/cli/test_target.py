"""What `wend show` is told to show."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.golden import Golden
from wend.cli.target import TargetError, concrete_of

PROGRAM = """
import beside
import wend

def scaled(x, k, shift=1.0):
    return x * k + shift + beside.NUMBER

root = wend.function(lambda a: a * a)
typed = wend.function(scaled, input_signature=[wend.TensorSpec([None]), wend.TensorSpec([])])
called = wend.function(scaled)
called(2.0, 3)
slope = wend.grad(lambda x: x * x)

def nothing():
    return 1.0

class Model:
    @wend.function
    def __call__(self, x):
        return x + 1.0

model = Model()
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "beside.py").write_text("NUMBER = 1.0")
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    monkeypatch.syspath_prepend(str(tmp_path))  # restores what the target adds
    monkeypatch.chdir(tmp_path)
    return file


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("scaled(2.0, 3)", "<concrete scaled(f64[] (weak), i64[] (weak))>"),
        ("scaled(*[np.ones(3), 2], shift=1)", "<concrete scaled(f64[3], i64[] (weak), i64[] (w"),
        ("scaled(k=2, **{'x': wend.TensorSpec([4])})", "<concrete scaled(f64[4], i64[] (weak))>"),
        ("root(np.float32(2))", "<concrete <lambda>(f32[])>"),
        ("typed", "<concrete scaled(f64[d"),
        ("called", "<concrete scaled(f64[] (weak), i64[] (weak))>"),
        ("slope(1.0)", "<concrete grad_<lambda>(f64[] (weak))>"),
        ("wend.grad(scaled)(2.0, 3)", "<concrete grad_scaled(f64[] (weak), i64[] (weak))>"),
        ("wend.grad(wend.grad(root))(2.0)", "<concrete grad_<lambda>(f64[] (weak))>"),
        ("nothing", "<concrete nothing()>"),
        ("wend.function(nothing)", "<concrete nothing()>"),
        ("model.__call__(1.0)", "<concrete __call__(f64[] (weak))>"),
    ],
)
def test_a_call_names_a_trace(file: Path, call: str, expected: str) -> None:
    assert repr(concrete_of(f"{file}:{call}")).startswith(expected)


REFUSED = [
    "program.py",
    "absent.py:f(1.0)",
    "program.py:absent(1.0)",
    "program.py:scaled(2.0",
    "program.py:scaled",
    "program.py:root",
    "program.py:beside.NUMBER",
    "program.py:scaled(missing)",
]


def test_what_is_refused_says_what_to_write(file: Path, golden: Golden) -> None:
    told = []
    for target in REFUSED:
        with pytest.raises(TargetError) as refusal:
            concrete_of(target)
        told.append(f"$ wend show '{target}'\n{refusal.value}\n")
    golden.check("cli/targets.txt", "\n".join(told))
