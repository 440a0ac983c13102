"""`wend launch`: several processes compute what one does, and end together when one is killed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from wend.cli import main

needs_jax = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="NOT RUN: jax is not installed"
)

DATA_PARALLEL = """
import sys
import jax, numpy as np, wend
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

jax.config.update("jax_enable_x64", True)
wend.config(backend="jax")
assert sys.argv[1:] == ["--rows", "64"] and len(jax.devices()) == 4, (sys.argv, jax.devices())
mesh = Mesh(np.array(jax.devices()), ("batch",))

def placed(rows):
    # Each process has read its half
    own = np.split(rows, 2)[jax.process_index()]
    return jax.make_array_from_process_local_data(NamedSharding(mesh, P("batch")), own)

def loss(w, xs, ys):
    h = xs
    while np.max(np.abs(h)) > 0.05:
        h = 0.9 * np.tanh(h @ w)
    return np.mean((h - ys) ** 2)

def root(a):
    x = a
    while np.abs(x * x - a) > 1e-9:
        x = 0.5 * (x + a / x)
    return x

def total(w, numbers):
    return w * np.sum(wend.vmap(root)(numbers) ** 3)

rng = np.random.default_rng(0)
w, xs, ys = 0.5 * rng.normal(size=(4, 4)), rng.normal(size=(64, 4)), rng.normal(size=(64, 4))
for fun, first, arrays in [(loss, w, (xs, ys)), (total, 2.0, (np.linspace(1.0, 99.0, 64),))]:
    with wend.config(backend="numpy"):
        expected = wend.value_and_grad(fun)(first, *arrays)
    found = wend.value_and_grad(fun)(first, *map(placed, arrays))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-12, atol=1e-15)
print(f"process {jax.process_index()} agrees\\n", end="", flush=True)  # in one write
"""

FIT = """
import os, pathlib, signal, sys, time
import jax, numpy as np, wend
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

jax.config.update("jax_enable_x64", True)
wend.config(backend="jax")
file, dies = pathlib.Path(sys.argv[1]), sys.argv[2] == "dies"
mesh = Mesh(np.array(jax.devices()), ("batch",))
xs = jax.make_array_from_process_local_data(
    NamedSharding(mesh, P("batch")), np.linspace(0.1, 1.0, 4) + jax.process_index()
)
state = {"w": wend.Variable(np.float64(1.0)), "step": wend.Variable(np.int64(0))}
if file.exists():
    wend.load_variables(file, state)

def step(xs):
    slope = wend.grad(lambda w: np.mean((w * xs - 2.0 * xs) ** 2))(state["w"].value)
    state["w"].assign(state["w"].value - 0.1 * slope)
    state["step"].assign(state["step"].value + 1)
    return state["w"].value

step = wend.function(step)
while int(state["step"].value) < 6:
    w = step(xs)
    if jax.process_index() == 0:
        wend.save_variables(file, state)
    if dies and int(state["step"].value) == 3 and jax.process_index() == 1:
        print("dies", time.time(), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
print("w", float(np.asarray(state["w"].value)).hex(), flush=True)
"""


def launch(folder: Path, script: str, *arguments: str, options: str = "") -> subprocess.Popen[str]:
    file = folder / "script.py"
    file.write_text(script, encoding="utf-8")
    command = [sys.executable, "-m", "wend", "launch", "--processes", "2", *options.split()]
    return subprocess.Popen(
        [*command, str(file), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@needs_jax
def test_two_processes_compute_what_one_does(tmp_path: Path) -> None:
    run = launch(tmp_path, DATA_PARALLEL, "--rows", "64", options="--devices 2")
    out, err = run.communicate(timeout=300)
    assert run.returncode == 0, out + err
    assert {line for line in out.splitlines() if "agrees" in line} == {
        "process 0 agrees",
        "process 1 agrees",
    }


@needs_jax
@pytest.mark.parametrize(
    ("options", "limit"),
    [("--heartbeat 3", 20.0), pytest.param("", 60.0, marks=pytest.mark.slow)],  # 30 s by default
)
def test_a_killed_process_ends_all_and_the_next_run_goes_on(
    tmp_path: Path, options: str, limit: float
) -> None:
    file = str(tmp_path / "state.safetensors")
    run = launch(tmp_path, FIT, file, "dies", options=options)
    out, err = run.communicate(timeout=300)
    assert run.returncode == 137, out + err
    assert "wend launch: process 1 was ended by SIGKILL" in err
    assert "process 0 is stopped" not in err  # JAX has ended it, and says why
    assert "JAX distributed service detected fatal errors" in err, err
    assert "stopped sending heartbeats" in err, err
    died = next(float(line.split()[1]) for line in out.splitlines() if line.startswith("dies "))
    assert time.time() - died <= limit
    resumed = launch(tmp_path, FIT, file, "lives")
    out, err = resumed.communicate(timeout=300)
    assert resumed.returncode == 0, out + err
    xs, w = np.concatenate([np.linspace(0.1, 1.0, 4) + k for k in range(2)]), 1.0
    for _ in range(6):
        w -= 0.1 * np.mean(2.0 * xs * xs * (w - 2.0))
    found = next(line for line in out.splitlines() if line.startswith("w "))
    np.testing.assert_allclose(float.fromhex(found.split()[1]), w, rtol=1e-12)


@needs_jax
def test_an_error_of_one_process_is_the_status(tmp_path: Path) -> None:
    script = "import jax, sys\nif jax.process_index() == 1: sys.exit(3)"
    run = launch(tmp_path, script, options="--heartbeat 3")
    _, err = run.communicate(timeout=300)
    assert run.returncode == 3, err
    assert "wend launch: process 1 ended with status 3" in err


@pytest.mark.parametrize("option", ["--processes=0", "--devices=x", "--heartbeat=-1"])
def test_counts_are_positive(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["launch", option, "script.py"])
    assert "is not a positive number" in capsys.readouterr().err
