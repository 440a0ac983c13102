"""Meshes with explicit axes: programs run with automatic ones, since wend's graphs state none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax.sharding import AxisType, Mesh, NamedSharding


def explicit_mesh(leaves: Sequence[Any]) -> Mesh | None:
    """Return the mesh with explicit axes that arrays lie on, or that is set; None if there is none.

    Arrays of the default device have no mesh.
    """
    meshes = [x.sharding.mesh for x in leaves if isinstance(x.sharding, NamedSharding)]
    current = jax.sharding.get_mesh()
    if current.axis_names:
        meshes.append(current)
    return next((mesh for mesh in meshes if AxisType.Explicit in mesh.axis_types), None)


def automatic(mesh: Mesh) -> Mesh:
    """Return the mesh of the same devices whose axes XLA decides on."""
    types = (AxisType.Auto,) * len(mesh.axis_names)
    return Mesh(mesh.devices, mesh.axis_names, axis_types=types)


def moved(values: Any, mesh: Mesh) -> Any:
    """Return arrays with their shardings on another mesh of the same devices; nothing is copied."""

    def move(x: Any) -> Any:
        if not isinstance(x, jax.Array) or not isinstance(x.sharding, NamedSharding):
            return x
        return jax.device_put(x, NamedSharding(mesh, x.sharding.spec))

    return jax.tree.map(move, values)
