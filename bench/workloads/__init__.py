"""The workloads there are: a file for each, or one for several."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from bench.workload import Workload

BREADTH = {
    "breadth.filters": ("kalman", "hmm", "garch", "particles"),
    "breadth.dynamic": (
        *("edit_distance", "soft_dtw", "knapsack", "sieve", "queens", "ising"),
        *("insertion", "mandelbrot"),
    ),
    "breadth.fields": (
        *("heat", "waves", "schroedinger", "bodies", "tableau", "thomas", "spline"),
        *("horner", "bisections"),
    ),
    "breadth.grids": (
        *("shallow_water", "euler", "limiter", "burgers", "correlate", "bilateral", "life"),
    ),
    "breadth.mechanics": (
        *("double_pendulum", "rigid_body", "springs", "rope", "smoothed_particles", "fehlberg"),
    ),
    "breadth.solvers": (
        *("givens", "householder", "elimination", "jacobi", "lanczos", "power_iteration"),
        *("conjugate_gradients", "gauss_newton", "bfgs"),
    ),
    "breadth.combinatorial": (
        *("two_opt", "kruskal", "shortest_paths", "bellman_ford", "pagerank", "matrix_chain"),
        *("heap_sort", "radix_sort", "value_iteration"),
    ),
    "breadth.finance": ("american_option", "crank_nicolson", "sabr", "heston"),
    "breadth.sequences": (
        *("gotoh", "viterbi", "random_field", "ctc", "smoother", "lstm_gates", "decoding"),
        *("fourier", "de_boor"),
    ),
    "breadth.living": ("epidemic", "hodgkin_huxley", "spiking"),
    "breadth.learning": ("lloyd", "mixture", "sinkhorn", "coupling_flow", "neural_ode"),
    "breadth.networks": (
        *("gru", "layers", "attention", "convolution", "process", "logistic", "modes"),
        "langevin",
    ),
}
# Files that have several are groups, of which geometric means are shown.
GROUPS = {
    "lstm": ("lstm_200", "lstm_500", "lstm_1000"),
    "adbench": ("gmm_10", "gmm_64", "bundle", "letters"),
    "arrays": ("chain_f64", "chain_f32", "softmax", "layer_norm", "kmeans", "reductions"),
    "npbench": tuple(
        f"npbench-{kernel}"
        for kernel in (
            *("gemm", "k2mm", "k3mm", "atax", "bicg", "mvt", "gemver", "gesummv", "symm", "syrk"),
            *("syr2k", "trmm", "doitgen", "trisolv", "lu", "ludcmp", "cholesky", "cholesky2"),
            *("durbin", "gramschmidt", "correlation", "covariance", "covariance2"),
            *("jacobi_1d", "jacobi_2d", "heat_3d", "fdtd_2d", "seidel_2d", "adi", "hdiff", "vadv"),
            *("deriche", "floyd_warshall", "nussinov", "softmax", "mlp", "conv2d_bias", "lenet"),
            *("resnet", "cavity_flow", "channel_flow", "nbody", "contour_integral"),
            *("scattering_self_energies", "azimint_naive", "azimint_hist", "arc_distance"),
            *("compute", "crc16", "go_fast", "mandelbrot1", "mandelbrot2", "spmv", "stockham_fft"),
        )
    ),
    "breadth": tuple(name for names in BREADTH.values() for name in names),
    "ensembles": (
        *("roots", "checked_roots", "lengths", "solves", "solves_geometric", "steps_newton"),
        *("steps_geometric", "mandelbrot_real", "mandelbrot_complex", "barrier", "examples"),
        *("examples_by_hand", "sequences", "sequences_by_hand"),
    ),
    "loops": ("tanh_layer", "outer_sum", "last_rows", "fill"),
}
NAMES = (
    "scalar_while",
    "vec100",
    "dopri",
    "nested",
    "newton",
    "call",
    "call_outside",
    "first_call",
    "first_gradient",
    "million",
    "demo",
    "newton50",
    *(name for names in GROUPS.values() for name in names),
)
FILES = {name: group for group, names in GROUPS.items() for name in names} | {
    "gmm_10": "gmm",
    "gmm_64": "gmm",
    "bundle": "bundle",
    "letters": "letters",
    "solves": "solves",
    "solves_geometric": "solves",
    **{name: file for file, names in BREADTH.items() for name in names},
}


def load(name: str) -> Workload:
    """Return the workload of this name."""
    module = import_module(f"bench.workloads.{FILES.get(name, name)}")
    found: dict[str, Workload] = {workload.name: workload for workload in module.WORKLOADS}
    return found[name]


def named(names: Sequence[str]) -> list[str]:
    """Return names with those of groups in the place of each group; all of them for none."""
    return [name for given in names or NAMES for name in GROUPS.get(given, (given,))]
