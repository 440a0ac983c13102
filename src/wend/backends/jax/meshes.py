"""Arrays on several devices: the meshes that they lie on, and along which axes their rows lie.

Programs run with automatic axes where a mesh has explicit ones, since wend's graphs state none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding

from wend.base.errors import ShapeError, TypeMismatchError, explain, listed
from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Graph, Node
from wend.ir.types import TensorType
from wend.ops.sharding import shard

# The axes of a mesh along which the rows of an array lie
RowAxes: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the arguments of a program lie.

    Attributes:
        is_multi_device: on more than one device.
        mesh: the mesh that rows of arguments are spread over, if any are.
        rows: the axes that the rows of each argument are spread over; none for others.
    """

    is_multi_device: bool = False
    mesh: Mesh | None = None
    rows: tuple[RowAxes, ...] = ()


ONE_DEVICE = Placement()


def placement_of(leaves: Sequence[Any]) -> Placement:
    """Return where arrays lie."""
    if all(x.sharding.num_devices == 1 for x in leaves):
        return ONE_DEVICE
    rows = tuple(_row_axes(x.sharding) for x in leaves)
    meshes = [x.sharding.mesh for x, axes in zip(leaves, rows, strict=True) if axes]
    return Placement(is_multi_device=True, mesh=meshes[0] if meshes else None, rows=rows)


def refusal_of_arrays(name: str, arrays: Sequence[Any]) -> Exception | None:
    """Return why no program can take some arrays, if that is so."""
    for x in arrays:
        if x.is_deleted():
            problem = f"{name} takes {_type(x)}, which JAX has deleted."
            cure = "do not donate to jax.jit what is used again, or pass a copy that is kept."
            return RuntimeError(explain(problem, cure=cure))
    committed = [x for x in arrays if x.committed]
    for x in committed:
        if x.sharding.device_set != committed[0].sharding.device_set:
            places = " and ".join(f"{_type(y)} on {_devices(y)}" for y in (committed[0], x))
            problem = f"{name} takes {places}."
            cure = "put them on the same devices: jax.device_put(x, device_or_sharding)."
            return TypeMismatchError(explain(problem, cure=cure))
    return None


def _type(x: Any) -> TensorType:
    return TensorType(np.dtype(x.dtype), x.shape)


def _devices(x: Any) -> str:
    return listed([str(device) for device in sorted(x.sharding.device_set, key=lambda d: d.id)])


def _row_axes(sharding: Any) -> RowAxes:
    """Return the axes that nothing but rows is spread over."""
    if not isinstance(sharding, NamedSharding) or not sharding.spec:
        return ()
    first, *others = sharding.spec
    if first is None or any(axes is not None for axes in others):
        return ()
    return (first,) if isinstance(first, str) else tuple(first)


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
        kind = x.sharding.memory_kind
        return jax.device_put(x, NamedSharding(mesh, x.sharding.spec, memory_kind=kind))

    return jax.tree.map(move, values)


# Shardings that a function asks for
def requested_placements(graph: Graph) -> Mapping[int, Node]:
    """Return the nodes that say where arguments of a graph lie, by position."""
    positions = {param: k for k, param in enumerate(graph.params)}
    nodes: dict[int, Node] = {}
    for node in graph.nodes:
        if _asks(node) and node.operands[0] in positions:
            nodes.setdefault(positions[node.operands[0]], node)
    return nodes


def placed(x: Any, node: Node) -> Any:
    """Return an argument where a node says that it lies.

    Raises:
        TypeMismatchError: the caller has put it elsewhere.
        ShapeError: its shape does not fit.
    """
    sharding, what = node.attrs["sharding"], node.attrs["what"]
    check_divisible(node, x.shape)
    if not isinstance(x, jax.Array):  # NumPy's: each device gets its own part
        return jax.device_put(x, sharding)
    if x.sharding.is_equivalent_to(sharding, x.ndim):
        return x
    if x.committed:
        problem = f"{what} is on {shown(x.sharding)}, but in_shardings says {shown(sharding)}."
        cure = "put it there: jax.device_put(x, sharding); or pass an array of NumPy."
        raise TypeMismatchError(explain(problem, cure=cure))
    return jax.device_put(x, sharding)


def check_divisible(node: Node, shape: Sequence[int]) -> None:
    """Check that devices can divide an array as a node says.

    Raises:
        ShapeError: they cannot.
    """
    sharding, what = node.attrs["sharding"], node.attrs["what"]
    try:
        sharding.shard_shape(tuple(shape))
    except (ValueError, IndexError):
        problem = f"{what} has the shape {tuple(shape)}, which {shown(sharding)} cannot divide."
        cure = "name axes of the mesh for sizes that their devices divide; None for the others."
        raise ShapeError(explain(problem, cure=cure)) from None


def described_placements(graph: Graph) -> list[str]:
    """Return lines on where arguments and results lie."""
    nodes = [node for node in graph.walk() if _asks(node)]
    lines = [f"{node.attrs['what']} is on {shown(node.attrs['sharding'])}" for node in nodes]
    return list(dict.fromkeys(lines))


def _asks(node: Node) -> bool:
    return node.op is shard and node.attrs["sharding"] is not None


def shown(sharding: Any) -> str:
    """Return a sharding as messages say it."""
    if not isinstance(sharding, NamedSharding):
        return str(sharding)
    axes = ", ".join(f"{name}: {size}" for name, size in sharding.mesh.shape.items())
    return f"{sharding.spec} of the mesh ({axes})"
