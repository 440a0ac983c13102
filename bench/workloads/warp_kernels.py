"""Workloads as kernels of NVIDIA Warp.

Gradients of loops are wrong, and Warp says nothing: the backward pass of a loop whose trips depend
on data reads what the loop left in its variables, not what they held in each trip. So it is shown.
"""

# Warp reads annotations, so here they are values, not text.

from typing import Any

from bench.peer import Peer
from bench.workload import VALUE, Program


def scalar_while(peer: Peer, measure: str) -> Program:
    wp = peer.library
    number, numbers = wp.float64, wp.array(dtype=wp.float64)

    @wp.kernel
    def kernel(start: numbers, a: numbers, bound: numbers, out: numbers):
        x = start[0]
        while x < bound[0]:
            x = x + a[0] * wp.sin(x) * number(1e-3) + number(1e-3)
        out[0] = x

    return _program(wp, kernel, measure)


def vec100(peer: Peer, measure: str) -> Program:
    wp = peer.library
    number, numbers = wp.float64, wp.array(dtype=wp.float64)
    vector = wp.types.vector(length=100, dtype=wp.float64)

    @wp.kernel
    def kernel(start: numbers, b: numbers, bound: numbers, out: numbers):
        v = vector()
        for i in range(100):
            v[i] = start[i]
        while v[0] > bound[0]:
            for i in range(100):
                v[i] = wp.tanh(v[i] * b[i])
        total = number(0.0)
        for i in range(100):
            total += v[i]
        out[0] = total

    return _program(wp, kernel, measure)


def nested(peer: Peer, measure: str) -> Program:
    wp = peer.library
    number, numbers = wp.float64, wp.array(dtype=wp.float64)

    @wp.kernel
    def kernel(x: numbers, a: numbers, bound: numbers, out: numbers):
        total = number(0.0)
        while total < bound[0]:
            y = x[0] + total
            while y > number(0.5):
                if y > number(2.0):
                    y = y * a[0]
                else:
                    y = y - number(0.1) * wp.sin(y)
            total = total + number(0.1) * y
        out[0] = total

    return _program(wp, kernel, measure)


def newton(peer: Peer, measure: str) -> Program:
    wp = peer.library
    number, numbers = wp.float64, wp.array(dtype=wp.float64)

    @wp.kernel
    def kernel(p: numbers, q: numbers, out: numbers):
        two = number(2.0)
        u = number(1.0)
        v = number(2.0)
        e = wp.exp(u)
        f = u * u + v * v - p[0]
        g = v * e - q[0]
        while wp.abs(f) + wp.abs(g) > number(1e-10):
            det = two * e * (u - v * v)
            du = (e * f - two * v * g) / det
            dv = (two * u * g - f * v * e) / det
            u = u - du
            v = v - dv
            e = wp.exp(u)
            f = u * u + v * v - p[0]
            g = v * e - q[0]
        out[0] = u + v

    return _program(wp, kernel, measure)


def product(peer: Peer, measure: str, size: int) -> Program:
    """Return x y + 1 of arrays of a size."""
    wp = peer.library
    number, numbers = wp.float64, wp.array(dtype=wp.float64)

    @wp.kernel
    def kernel(x: numbers, y: numbers, out: numbers):
        i = wp.tid()
        out[i] = x[i] * y[i] + number(1.0)

    return _program(wp, kernel, measure, size)


def _program(wp: Any, kernel: Any, measure: str, size: int = 1) -> Program:
    one = wp.full(size, 1.0, dtype=wp.float64, device="cpu")

    def value(*given: Any) -> Any:
        out = wp.empty(size, dtype=wp.float64, device="cpu", requires_grad=True)
        wp.launch(kernel, dim=size, inputs=list(given), outputs=[out], device="cpu")
        return out

    def gradient(*given: Any) -> Any:
        with wp.Tape() as tape:
            out = value(*given)
        tape.zero()
        tape.backward(grads={out: one})
        return out, *(array.grad for array in given[:2])  # what comes third is a bound

    return value if measure == VALUE else gradient
