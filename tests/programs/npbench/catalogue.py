"""All kernels of the suite, by family."""

from __future__ import annotations

from tests.programs.npbench import (
    flows,
    medley,
    networks,
    numerics,
    physics,
    products,
    solvers,
    statistics,
    stencils,
)
from tests.programs.npbench.kernel import Kernel

FAMILIES = {
    "Products of matrices": products,
    "Solvers and decompositions": solvers,
    "Data mining": statistics,
    "Stencils": stencils,
    "Medley": medley,
    "Deep learning": networks,
    "Fluids": flows,
    "Physics": physics,
    "Numerics": numerics,
}
KERNELS: list[Kernel] = [kernel for family in FAMILIES.values() for kernel in family.KERNELS]
