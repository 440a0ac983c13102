"""Texts and large integers in results are part of the structure."""

from __future__ import annotations

from typing import Any

import pytest

import wend


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_texts_stand_beside_arrays(backend: str) -> None:
    @wend.function(backend=backend)
    def f(x: Any, unit: str) -> Any:
        return {"value": x * 2.0, "unit": unit, "raw": [b"a", x]}

    for _ in range(3):
        assert f(1.5, "m") == {"value": 3.0, "unit": "m", "raw": [b"a", 1.5]}
    assert f(1.5, "km")["unit"] == "km"


def test_within_other_functions_and_derivatives() -> None:
    @wend.function
    def named(x: Any) -> Any:
        return "square", x * x

    @wend.function
    def outer(x: Any) -> Any:
        name, value = named(x)
        return value if name == "square" else x

    assert outer(3.0) == 9.0
    assert wend.grad(outer)(3.0) == 6.0
    squared = wend.value_and_grad(lambda x: (x * x, "aux"), has_aux=True)
    assert squared(3.0) == ((9.0, "aux"), 6.0)


def test_a_text_with_a_traced_value_is_refused() -> None:
    with pytest.raises(TypeError, match="returns str at result"):
        wend.function(lambda x: f"{x}")(1.0)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_integers_beyond_64_bits(backend: str) -> None:
    @wend.function(backend=backend)
    def f(x: Any, n: int) -> Any:
        return x * 2.0, n * n

    for n in (2**32, 2**63, -(2**63)):
        assert f(1.5, 2**64 + n) == (3.0, (2**64 + n) ** 2)
    assert f(1.5, 3) == (3.0, 9)
