"""Parts of arrays that loops read and change, by keys of staged numbers: native code beside NumPy.

What is read and what is written may overlap, so this also tests what nests do in place.
"""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wend
from wend.testing import check_grads

SIZES = {"a": (5, 6), "b": (5, 6), "c": (4, 5, 6), "v": (6,)}
NUMBERS = {"i": 1, "j": 3, "n": 3}


class Writer:
    """Writes a function of arrays that reads and writes parts of them in a loop."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def number(self, size: int, trip: int) -> tuple[str, int]:
        """A position on an axis, as text, and what it is in a trip."""
        known = {"t": trip, "i": 1, "j": 3, "t + 1": trip + 1, "i - 1": 0, "t - j": trip - 3}
        known |= {"1": 1, "-1": -1, "j - i": 2}
        return self.random.choice([(k, v) for k, v in known.items() if -size <= v < size])

    def entry(self, size: int, length: int) -> str | None:
        """A slice of so many elements in every trip, if there is one."""
        found = [
            f"{start}:{stop}"
            for start, a in (("", 0), ("i", 1), ("t", None), ("j", 3), ("i - 1", 0), ("1", 1))
            for stop, b in (("", size), ("j", 3), ("t + j", None), ("-1", size - 1), ("t", None))
            if (a is None) == (b is None)
            and (b - a if a is not None else {"t + j": 3, "t": 0}[stop]) == length
            and (a is not None or 2 + length <= size)
        ]
        if length == size:
            found += [":", "::-1"]
        if length == (size + 1) // 2:
            found.append("::2")
        return self.random.choice(found) if found else None

    def part(self, lengths: tuple[int, ...], names: str = "abcv") -> str:
        """A part of some array, with axes of these lengths.

        Raises:
            LookupError: none was found.
        """
        for _ in range(50):
            name = self.random.choice(names)
            sizes = SIZES[name]
            if len(sizes) < len(lengths):
                continue
            kept = sorted(self.random.sample(range(len(sizes)), len(lengths)))
            entries = [
                self.entry(size, lengths[kept.index(k)])
                if k in kept
                else self.number(size - 3, 0)[0]
                for k, size in enumerate(sizes)
            ]
            if None not in entries:
                return f"{name}[{', '.join(map(str, entries))}]"
        raise LookupError

    def statement(self) -> str:
        rank = self.random.choice([1, 1, 2])
        lengths = tuple(self.random.choice([0, 2, 3, 3, 5, 6]) for _ in range(rank))
        try:
            target, x, y = (self.part(lengths) for _ in range(3))
        except LookupError:
            return self.statement()
        kinds = [
            f"{target} = {x} * 0.5 + {y}",
            f"{target} = {target} * 0.5 - {x}",
            f"{target} += {x} * 0.25",
            f"{target} = {x}",
            f"{target} *= 0.5",
            f"{target} = 0.5",
            f"old = {target}.copy(); {target} = {x}; {y} += old * 0.5",
            f"s = s + ({x} * {y}).sum()",
        ]
        if len(lengths) == 1:
            kinds += [f"s = s + {x} @ {y}", f"s = s + np.dot({y}, {x})"] * 2
        return self.random.choice(kinds)

    def function(self) -> str:
        body = "\n".join(f"        {self.statement()}" for _ in range(self.random.randint(2, 5)))
        return f"""import numpy as np

def program(a, b, c, v, i, j, n):
    a, b, c, v = a * 1.0, b * 1.0, c * 1.0, v * 1.0
    s = 0.0
    for t in range(n):
{body}
        s = s * 0.5
    return a, b, c, v, s
"""


def program(seed: int, folder: Path) -> Any:
    file = folder / f"parts_{seed}.py"
    file.write_text(Writer(seed).function())
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.program


def arrays(dtype: str = "f8") -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    return [rng.standard_normal(SIZES[name]).astype(dtype) for name in "abcv"]


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(24))
def test_parts_in_loops(seed: int, tmp_path: Path) -> None:
    plain = program(seed, tmp_path)
    expected = plain(*arrays(), *NUMBERS.values())
    for options in ({}, {"input_signature": _signature()}):
        for backend in ("numpy", "native"):
            found = wend.function(plain, backend=backend, **options)(*arrays(), *NUMBERS.values())
            for mine, theirs in zip(found, expected, strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)


def _signature() -> list[Any]:
    arrays = [wend.TensorSpec([None] * len(SIZES[name]), "f8") for name in "abcv"]
    return [*arrays, *[wend.TensorSpec([], "i8")] * 3]


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(100, 106))
def test_gradients_of_parts_in_loops(seed: int, tmp_path: Path) -> None:
    plain = program(seed, tmp_path)

    def loss(a: Any, b: Any, c: Any, v: Any, i: Any, j: Any, n: Any) -> Any:
        *found, s = plain(a, b, c, v, i, j, n)
        return s + sum((x * x).sum() for x in found)

    slopes = {}
    for backend in ("numpy", "native"):
        with wend.config(backend=backend):
            of = wend.grad(loss, argnums=(0, 1, 2, 3))
            slopes[backend] = of(*arrays(), *map(np.int64, NUMBERS.values()))
    for mine, theirs in zip(slopes["native"], slopes["numpy"], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-10)
    with wend.config(backend="numpy"):
        check_grads(lambda a, v: loss(a, *arrays()[1:3], v, 1, 3, 3), (arrays()[0], arrays()[3]))
