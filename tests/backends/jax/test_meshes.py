"""Programs on eight virtual devices: shardings are honoured, and nothing is gathered."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import re
from wend.base.errors import UnsupportedError
import jax, numpy as np, wend
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

jax.config.update("jax_enable_x64", True)
wend.config(backend="jax")
assert len(jax.devices()) == 8

def loss(w, xs, ys):
    h, trips = xs, 0
    while np.max(np.abs(h)) > 0.05:  # all devices make the same trips
        h, trips = 0.9 * np.tanh(h @ w), trips + 1
    return np.mean((h - ys) ** 2)

rng = np.random.default_rng(0)
w, xs, ys = rng.normal(size=(4, 4)) * 0.5, rng.normal(size=(64, 4)), rng.normal(size=(64, 4))
slope = wend.value_and_grad(loss)
value, gradient = slope(w, xs, ys)

def agrees(mesh):
    rows = NamedSharding(mesh, P("batch", None))
    found, found_gradient = slope(w, jax.device_put(xs, rows), jax.device_put(ys, rows))
    np.testing.assert_allclose(found, value, rtol=1e-12)
    np.testing.assert_allclose(found_gradient, gradient, rtol=1e-12, atol=1e-12)
    doubled = wend.function(lambda x: 2.0 * np.tanh(x))(jax.device_put(xs, rows))
    assert doubled.sharding.spec[0] == "batch", doubled.sharding
    assert doubled.sharding.mesh.axis_types == mesh.axis_types
    return rows

mesh = Mesh(np.array(jax.devices()), ("batch",))
rows = agrees(mesh)
explicit = jax.make_mesh((8,), ("batch",), axis_types=(AxisType.Explicit,))
with jax.set_mesh(explicit):
    agrees(explicit)

# The elements of a map: each device makes the trips of its own, and takes part in sums only.
def root(a, w):
    x = a
    while np.abs(x * x - a * w) > 1e-9:
        x = 0.5 * (x + a * w / x)
    return x

def total(numbers, w):
    return np.sum(wend.vmap(root, (0, None))(numbers, w) ** 3)

roots, slopes = wend.vmap(root, (0, None)), wend.value_and_grad(total, (0, 1))
numbers = np.linspace(1.0, 900.0, 1000)
spread = jax.device_put(numbers, NamedSharding(mesh, P("batch")))
expected = roots(numbers, 2.0), slopes(numbers, 2.0)
found = roots(spread, 2.0), slopes(spread, 2.0)
for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-12)
assert found[0].sharding.spec[0] == found[1][1][0].sharding.spec[0] == "batch"

# Where they fail, the first error is that of the lowest element.
def pick(a, k):
    return root(a, np.arange(1.0, 3.0)[k])

positions = np.where(np.arange(1000) % 400 == 399, np.arange(1000), 1)
try:
    wend.vmap(pick)(spread, jax.device_put(positions, NamedSharding(mesh, P("batch"))))
except IndexError as error:
    assert "index 399 is out of bounds" in str(error), error
else:
    raise AssertionError

# Checks of elements are flags: each device makes the trips of its own, and one tells what failed.
def checked(a, w):
    if a < 0:
        raise ValueError(f"{a} is negative")
    x, k = a, 0
    while np.abs(x * x - a * w) > 1e-9:
        x, k = 0.5 * (x + a * w / x), k + 1
        if k > 90:
            raise RuntimeError(f"no root after {k} trips")
    return x

for fun in wend.vmap(checked, (0, None)), wend.vmap(wend.grad(checked), (0, None)):
    expected = fun(numbers, 2.0)
    found = fun(spread, 2.0)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert found.sharding.spec[0] == "batch"
    bad = np.where(np.isin(np.arange(1000), [640, 650, 999]), -np.arange(1000.0), numbers)
    try:
        fun(jax.device_put(bad, NamedSharding(mesh, P("batch"))), 2.0)
    except ValueError as error:
        assert str(error) == "-640.0 is negative", error
        assert error.__notes__[-1] == "in element 640 of vmap", error.__notes__
    else:
        raise AssertionError

# Calls of Python gather what they take, where that is asked for.
def shown(x):
    print("largest", np.max(x))
    return 2.0 * x

eigenvalues = lambda x: np.linalg.eigvals(x.reshape(100, 2, 5)[:, :, :2])
for fun, name in (shown, "print"), (eigenvalues, "eig"):
    try:
        wend.function(fun)(spread)
    except UnsupportedError as error:
        told = str(error)
        assert told.startswith(f'backend="jax": {name} at '), told
        assert "calls Python, and the arguments lie on several devices" in told, told
    else:
        raise AssertionError
with wend.config(jax_gather=True):
    np.testing.assert_array_equal(wend.function(shown)(spread), 2.0 * numbers)

# What XLA makes of the program has reductions, and gathers no rows.
from wend.backends.jax.executable import XlaProgram

texts = []
run = XlaProgram.__call__
XlaProgram.__call__ = lambda self, leaves: (
    texts.append(self._function.lower(leaves).compile().as_text()) or run(self, leaves)
)
slope(w, jax.device_put(xs, rows), jax.device_put(ys, rows))
assert "all-reduce" in texts[0] and "all-gather" not in texts[0]
roots(spread, 2.0)
assert "while(" in texts[1] and "all-" not in texts[1]
slopes(spread, 2.0)
loops = set(re.findall(r"(?:body|condition)=%([\\w.-]+)", texts[2]))
blocks = [text.strip() for text in texts[2].split("\\n\\n")]
computations = {text.split()[0].lstrip("%"): text for text in blocks if text}
assert loops and not any("all-" in computations[name] for name in loops)
# After the loops each device tells how its own run ended: one number each.
gathered = re.findall(r"= \\w+\\[([\\d,]*)\\]\\S* all-gather", texts[2])
assert all(np.prod([int(n) for n in shape.split(",")]) <= 64 for shape in gathered), gathered
"""


SHARDINGS = r"""
import jax, numpy as np, wend
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P
from wend.backends.jax.executable import XlaProgram
from wend.base.errors import ShapeError, StructureError, TypeMismatchError, UnsupportedError

jax.config.update("jax_enable_x64", True)
mesh = Mesh(np.array(jax.devices()), ("batch",))
rows, columns = NamedSharding(mesh, P("batch")), NamedSharding(mesh, P(None, "batch"))
whole = NamedSharding(mesh, P())
programs, run = [], XlaProgram.__call__
XlaProgram.__call__ = lambda self, leaves: (
    (run(self, leaves), programs.append(
        (self._function.lower(leaves).compile().as_text(), leaves)))[0]
)

def settle(w, xs):
    h, trips = xs, 0
    while np.max(np.abs(h)) > 0.05:
        h, trips = 0.9 * np.tanh(h @ w), trips + 1
    return h

def on_mesh(fun, ins, outs=None, **options):
    return wend.function(fun, backend="jax", in_shardings=ins, out_shardings=outs, **options)

rng = np.random.default_rng(0)
w, xs = 0.2 * rng.normal(size=(8, 8)), rng.normal(size=(64, 8))
settled = on_mesh(settle, (None, rows), rows)
for x in xs, jax.device_put(xs, rows):
    h = settled(w, x)
    assert h.sharding.spec == P("batch"), h.sharding
    np.testing.assert_allclose(h, settle(w, xs), rtol=1e-12)
text, leaves = programs[0]
assert leaves[1].sharding.is_equivalent_to(rows, 2), leaves[1].sharding
assert "all-reduce" in text and "all-gather" not in text and "all-to-all" not in text
assert "argument xs of settle is on P('batch',) of the mesh (batch: 8)" in settled.explain()
across = on_mesh(settle, (None, rows), columns)(w, xs)
assert across.sharding.spec == P(None, "batch"), across.sharding

# Gradients lie where their arguments do, through a function around as well.
def loss(w, xs):
    return np.sum(settle(w, xs) ** 2)

expected = wend.grad(loss, (0, 1))(w, xs)
around = wend.grad(lambda w, xs: np.sum(settled(w, xs) ** 2), (0, 1))
for slope in wend.grad(on_mesh(loss, (whole, rows)), (0, 1)), wend.function(around, backend="jax"):
    programs.clear()
    found = slope(w, xs)
    assert found[1].sharding.spec == P("batch"), found[1].sharding
    assert "all-gather" not in programs[0][0] and "all-reduce" in programs[0][0]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)

# Arrays of NumPy go to the devices that have them, and no other.
put, device_put = [], jax.device_put
jax.device_put = lambda x, to: (put.append((type(x), to)), device_put(x, to))[1]
settled(w, xs)
jax.device_put = device_put
assert (np.ndarray, rows) in put and {type for type, _ in put} == {np.ndarray}

# Trees, one entry for all, static arguments, explicit axes, and a program of JAX around.
ins, outs = ({"a": rows, "b": None},), {"y": columns, "z": whole}
parts = on_mesh(lambda d: {"y": 2.0 * d["a"], "z": d["b"]}, ins, outs)
found = parts({"a": xs, "b": np.ones(8)})
assert (found["y"].sharding.spec, found["z"].sharding.spec) == (P(None, "batch"), P())
scaled = on_mesh(lambda x, n: x * n, (rows,), static_argnames="n")
assert scaled(xs, 3).sharding.spec == P("batch")
stated = jax.make_mesh((8,), ("batch",), axis_types=(AxisType.Explicit,))
explicit = NamedSharding(stated, P("batch"))
found = on_mesh(np.tanh, explicit, explicit)(xs)
assert found.sharding.is_equivalent_to(rows, 2) and found.sharding.mesh == stated
assert jax.jit(settled)(w, jax.device_put(xs, rows)).sharding.spec[0] == "batch"

# What does not fit is refused, with its path.
def refused(error, text, make):
    try:
        make()
    except error as raised:
        assert text in str(raised), raised
    else:
        raise AssertionError(text)

moved = jax.device_put(xs, whole)
first, second = (jax.device_put(np.ones(8), device) for device in jax.devices()[1:3])
apart = "takes f64[8] on cpu:1 and f64[8] on cpu:2.\n  To fix it: put them on the same devices"
refused(TypeMismatchError, apart, lambda: wend.function(np.add, backend="jax")(first, second))
refused(TypeMismatchError, apart, lambda: wend.function(
    lambda x: np.add(x, second), backend="jax")(first))
refused(TypeMismatchError, "argument xs of settle is on P()", lambda: settled(w, moved))
refused(ShapeError, "argument xs of settle has the shape (63, 8)", lambda: settled(w, xs[:63]))
refused(ShapeError, "has the shape ()", lambda: on_mesh(np.tanh, rows)(1.0))
refused(StructureError, "in_shardings has 1 entries", lambda: on_mesh(settle, (rows,))(w, xs))
refused(StructureError, "in_shardings[0] does not fit argument d", lambda: parts({"c": xs}))
refused(StructureError, "out_shardings does not fit", lambda: on_mesh(settle, rows, (rows,))(w, xs))
refused(TypeMismatchError, "in_shardings[0]['a'] is a str", lambda: on_mesh(loss, ({"a": "x"},)))
refused(UnsupportedError, "the native backend", lambda: wend.function(
    loss, backend="native", out_shardings=rows))
for backend in "native", "numpy", "dataflow":
    with wend.config(backend=backend):
        inside = wend.function(lambda w, xs: settled(w, xs))
        refused(UnsupportedError, f"the {backend} backend", lambda: inside(w, xs))

def first(x):
    x[0] = 1.0

refused(TypeMismatchError, "is changed in place", lambda: on_mesh(first, rows)(xs.copy()))
"""


@pytest.mark.parametrize("program", [PROGRAM, SHARDINGS], ids=["arrays", "shardings"])
def test_eight_devices(program: str, tmp_path: Path) -> None:
    script = tmp_path / "eight.py"
    script.write_text(program, encoding="utf-8")
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    run = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "XLA_FLAGS": flags},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
