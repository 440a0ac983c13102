"""The JAX backend: compiles graphs by XLA, for the devices that JAX has."""

from __future__ import annotations

from collections.abc import Sequence

from wend.backends.jax.requirements import check_version

check_version('backend="jax"')  # before JAX is imported, whose error would not say what to install

from wend.backends.jax.boundary import BOUNDARY  # noqa: E402
from wend.backends.jax.executable import JaxExecutable  # noqa: E402
from wend.backends.protocol import Backend, ChoosesPasses, Executable  # noqa: E402
from wend.ir.graph import Graph  # noqa: E402
from wend.passes.mark_tape_reads import mark_tape_reads  # noqa: E402
from wend.passes.pipeline import OPTIMIZE_AROUND_MAPS, Transform  # noqa: E402
from wend.runtime.array_boundary import ArrayBoundary  # noqa: E402


class JaxBackend(ChoosesPasses):
    """Runs graphs as programs of XLA."""

    name = "jax"
    boundary: ArrayBoundary = BOUNDARY

    def compile(self, graph: Graph) -> Executable:
        return JaxExecutable(graph)

    def passes(self) -> Sequence[Transform]:
        return (*OPTIMIZE_AROUND_MAPS, mark_tape_reads)


BACKEND: Backend = JaxBackend()
