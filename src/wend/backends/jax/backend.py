"""The JAX backend: compiles graphs by XLA, for the devices that JAX has."""

from __future__ import annotations

from wend.backends.jax.requirements import check_version

check_version('backend="jax"')  # before JAX is imported, whose error would not say what to install

from wend.backends.jax.boundary import BOUNDARY  # noqa: E402
from wend.backends.jax.executable import JaxExecutable  # noqa: E402
from wend.backends.protocol import Backend, Executable  # noqa: E402
from wend.ir.graph import Graph  # noqa: E402
from wend.runtime.array_boundary import ArrayBoundary  # noqa: E402


class JaxBackend:
    """Runs graphs as programs of XLA."""

    name = "jax"
    boundary: ArrayBoundary = BOUNDARY

    def compile(self, graph: Graph) -> Executable:
        return JaxExecutable(graph)


BACKEND: Backend = JaxBackend()
