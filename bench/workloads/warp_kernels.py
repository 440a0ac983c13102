"""Workloads as kernels of NVIDIA Warp."""

from __future__ import annotations

from typing import Any

from bench.peer import Peer
from bench.workload import VALUE, Program


def scalar_while(peer: Peer, measure: str) -> Program:
    """Return the loop of `scalar_while`.

    Its gradient is wrong, and Warp says nothing: the backward pass of a loop whose trips depend on
    data reads what the loop left in its variables, not what they held in each trip. So it is shown.
    """
    wp = peer.library

    @wp.kernel
    def kernel(
        start: wp.array(dtype=wp.float64),
        a: wp.array(dtype=wp.float64),
        bound: wp.array(dtype=wp.float64),
        out: wp.array(dtype=wp.float64),
    ):
        x = start[0]
        while x < bound[0]:
            x = x + a[0] * wp.sin(x) * wp.float64(1e-3) + wp.float64(1e-3)
        out[0] = x

    one = wp.array([1.0], dtype=wp.float64, device="cpu")

    def launch(*given: Any) -> Any:
        out = wp.zeros(1, dtype=wp.float64, device="cpu", requires_grad=True)
        wp.launch(kernel, dim=1, inputs=list(given), outputs=[out], device="cpu")
        return out

    def gradient(*given: Any) -> Any:
        with wp.Tape() as tape:
            out = launch(*given)
        tape.zero()
        tape.backward(grads={out: one})
        return out, given[0].grad, given[1].grad

    return launch if measure == VALUE else gradient


def product(peer: Peer, measure: str, size: int) -> Program:
    """Return x y + 1 of arrays of a size."""
    wp = peer.library

    @wp.kernel
    def kernel(
        x: wp.array(dtype=wp.float64),
        y: wp.array(dtype=wp.float64),
        out: wp.array(dtype=wp.float64),
    ):
        i = wp.tid()
        out[i] = x[i] * y[i] + wp.float64(1.0)

    def program(x: Any, y: Any) -> Any:
        out = wp.empty(size, dtype=wp.float64, device="cpu")
        wp.launch(kernel, dim=size, inputs=[x, y], outputs=[out], device="cpu")
        return out

    return program
