"""Programs on eight virtual devices: shardings are honoured, and nothing is gathered."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
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

# What XLA makes of the program has reductions, and gathers no rows.
from wend.backends.jax.executable import XlaProgram

texts = []
run = XlaProgram.__call__
XlaProgram.__call__ = lambda self, leaves: (
    texts.append(self._function.lower(leaves).compile().as_text()) or run(self, leaves)
)
slope(w, jax.device_put(xs, rows), jax.device_put(ys, rows))
assert "all-reduce" in texts[0] and "all-gather" not in texts[0]
"""


def test_eight_devices(tmp_path: Path) -> None:
    script = tmp_path / "eight.py"
    script.write_text(PROGRAM, encoding="utf-8")
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    run = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "XLA_FLAGS": flags},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
