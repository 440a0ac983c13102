"""A graph to be run two ways, with its arguments: made at random, or kept as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wend.ir import Graph, parse, to_text, verify

REGRESSIONS = Path(__file__).parents[1] / "regressions"


@dataclass(frozen=True, eq=False, repr=False)
class Example:
    """A graph and what is known of its results.

    Attributes:
        graph: its last result is the scalar that is differentiated.
        args: an array for each param.
        bounds: of each result how large it may be, where it is rounded; None where it is exact.
        is_single: whether anything is of f32.
    """

    graph: Graph
    args: Sequence[np.ndarray]
    bounds: Sequence[float | None]
    is_single: bool

    @property
    def differentiable(self) -> list[int]:
        """The params that are differentiated."""
        return [k for k, x in enumerate(self.args) if x.dtype in (np.float64, np.float32)]

    def __repr__(self) -> str:
        return self.to_text()

    def to_text(self) -> str:
        """The text that `read` takes."""
        bounds = ("=" if bound is None else repr(float(bound)) for bound in self.bounds)
        lines = [f"single: {int(self.is_single)}", f"bounds: {' '.join(bounds)}"]
        for x in self.args:
            shape = ",".join(map(str, x.shape)) or "-"
            numbers = " ".join(repr(number) for number in x.ravel().tolist())
            lines.append(f"arg: {x.dtype.str} {shape} {numbers}".rstrip())
        return "\n".join([*lines, "", to_text(self.graph)]) + "\n"


def read(text: str) -> Example:
    """The example of a text. What comes before its first field is for readers."""
    head, _, body = text.partition("\n\n")
    args, fields = [], {}
    for line in head.splitlines():
        if line.startswith("#"):
            continue
        key, _, rest = line.partition(": ")
        if key == "arg":
            dtype, shape, *numbers = rest.split()
            dims = () if shape == "-" else tuple(map(int, shape.split(",")))
            found = [_number(number, np.dtype(dtype)) for number in numbers]
            args.append(np.array(found, dtype).reshape(dims))
        else:
            fields[key] = rest.split()
    bounds = [None if bound == "=" else float(bound) for bound in fields["bounds"]]
    return Example(verify(parse(body)), args, bounds, fields["single"] == ["1"])


def _number(text: str, dtype: np.dtype) -> complex:
    if dtype.kind == "b":
        return text == "True"
    if dtype.kind in "iu":
        return int(text)
    return float(text) if dtype.kind == "f" else complex(text)
