"""The gradient of the demo: twenty adaptive solutions in a loop, and the likelihood of counts.

No peer has this program. The goal is Stan's time for the gradient of the same model, 0.40 ms after
35 s of building, as it was measured once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.peer import Peer
from bench.workload import FIRST_GRADIENT, GRADIENT, Program, Workload

TOL = 1e-8


def in_wend(peer: Peer, measure: str) -> Program:
    import wend
    from wend.cli.demo import Parameters, negative_log_likelihood, read_pelts

    pelts = read_pelts()
    gradient = wend.value_and_grad(negative_log_likelihood, has_aux=True)

    def program(*logarithms: Any) -> Any:
        with wend.config(backend="native"):
            (loss, _), slope = gradient(Parameters(*logarithms), pelts, TOL)
        return loss, tuple(slope)

    return program


START = (0.5, 0.02, 0.5, 0.02, 30.0, 4.0, 0.3, 0.3)
WORKLOADS = [
    Workload(
        name="demo",
        title="the demo's gradient at tolerance 1e-8",
        arguments=tuple(float(number) for number in np.log(START)),
        small=tuple(float(number) for number in np.log(START)),
        measures=(GRADIENT, FIRST_GRADIENT),
        own={"wend": in_wend},
        checked=False,
    )
]
