"""The peers there are: what each is called, and what it needs."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.peer import Peer


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the catalogue.

    Attributes:
        label: what tables call it.
        module: the file that has it, and `made_by` the class and what it is made with.
        needs: the modules that must be installed, in whichever environment.
    """

    label: str
    module: str
    made_by: str
    needs: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


CATALOGUE = {
    "wend": Entry("wend", "wend", "Wend", ("llvmlite", "optree")),
    "wend-jax": Entry("wend, XLA", "wend", "WendOnJax", ("jax", "llvmlite", "optree")),
    "wend-loop": Entry("wend, one loop", "wend", "OneLoop", ("llvmlite", "optree")),
    "c": Entry("C, libm", "c", "C"),
    "c-fast": Entry("C, polynomials", "c", "C", options=("_fast",)),
    "python": Entry("Python, NumPy", "python", "Python"),
    "jax": Entry("JAX", "jax", "Jax", ("jax",)),
    "jax-tape": Entry("JAX, hand tape", "jax", "JaxTape", ("jax",)),
    "jax-scan": Entry("JAX, scan", "jax", "JaxScan", ("jax",)),
    "equinox": Entry("Equinox, bounded", "equinox", "Equinox", ("equinox",), ("bounded",)),
    "equinox-checkpointed": Entry(
        "Equinox, checkpointed", "equinox", "Equinox", ("equinox",), ("checkpointed",)
    ),
    "diffrax": Entry("diffrax", "jax", "Diffrax", ("diffrax",)),
    "torch": Entry("torch, eager", "torch", "Torch", ("torch",)),
    "torch-nn": Entry("torch.nn", "torch", "TorchNN", ("torch",)),
    "torch-compiled": Entry("torch, compiled", "torch", "TorchCompiled", ("torch",)),
    "tensorflow": Entry("TensorFlow", "tensorflow", "TensorFlow", ("tensorflow",)),
    "tensorflow-xla": Entry(
        "TensorFlow, XLA", "tensorflow", "TensorFlow", ("tensorflow",), ("xla",)
    ),
    "numba": Entry("Numba", "numba", "Numba", ("numba",)),
    "autograd": Entry("autograd", "autograd", "Autograd", ("autograd",)),
    "drjit": Entry("Dr.Jit", "drjit", "DrJit", ("drjit",)),
    "catalyst": Entry("Catalyst", "catalyst", "Catalyst", ("catalyst",)),
    "casadi": Entry("CasADi", "casadi", "CasADi", ("casadi",)),
    "warp": Entry("Warp", "warp", "Warp", ("warp",)),
}


def load(name: str) -> Peer:
    """Return the peer of this name; its library is not imported yet."""
    entry = CATALOGUE[name]
    peer: Peer = getattr(import_module(f"bench.peers.{entry.module}"), entry.made_by)(
        *entry.options
    )
    return peer
