"""The operator Scan: a function of states and elements, along axes of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import wend.numpy as wnp
from wend.trace.control.scan import scan


def scan_over(
    body: Callable[..., Any],
    *operands: Any,
    num_scan_inputs: int,
    scan_input_axes: Sequence[int] | None = None,
    scan_input_directions: Sequence[int] | None = None,
    scan_output_axes: Sequence[int] | None = None,
    scan_output_directions: Sequence[int] | None = None,
) -> tuple[Any, ...]:
    """Return the last states, and the results of all trips along new axes."""
    states = operands[: len(operands) - num_scan_inputs]
    arrays = []
    for k, x in enumerate(operands[len(states) :]):
        moved = wnp.moveaxis(x, scan_input_axes[k] if scan_input_axes else 0, 0)
        arrays.append(wnp.flip(moved, 0) if _is_set(scan_input_directions, k) else moved)

    def step(carry: tuple[Any, ...], elements: tuple[Any, ...]) -> Any:
        results = body(*carry, *elements)
        results = results if isinstance(results, tuple) else (results,)
        return tuple(results[: len(carry)]), tuple(results[len(carry) :])

    last, collected = scan(step, tuple(states), tuple(arrays))
    outputs = []
    for k, y in enumerate(collected):
        y = wnp.flip(y, 0) if _is_set(scan_output_directions, k) else y
        outputs.append(wnp.moveaxis(y, 0, scan_output_axes[k] if scan_output_axes else 0))
    return (*last, *outputs)


def _is_set(directions: Sequence[int] | None, k: int) -> bool:
    return bool(directions and directions[k])
