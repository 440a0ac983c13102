"""Backends are looked up by name, and what else they can do by type."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.boxed_backend import BOXED, Boxed

import wend
from wend.backends import protocol
from wend.backends.protocol import (
    BACKENDS,
    ChecksGuards,
    Explains,
    FastCallable,
    HoldsMemory,
    LazyCompiler,
    choose,
    register_backend,
)


@pytest.fixture(autouse=True)
def _boxed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "BACKENDS", dict(BACKENDS))
    register_backend(BOXED)


def test_arrays_stay_those_of_the_backend() -> None:
    double = wend.function(lambda x: x + x, backend="boxed")
    once = double(np.ones(3))
    assert type(once) is Boxed
    twice = double(once)
    np.testing.assert_array_equal(twice, np.full(3, 4.0))
    assert double.trace_count == 1  # NumPy's arrays and its own are one signature


def test_its_arrays_are_arguments_of_functions_on_other_backends() -> None:
    once = wend.function(lambda x: x + x, backend="boxed")(np.ones(3))
    np.testing.assert_array_equal(wend.function(lambda x: x * 3.0)(once), np.full(3, 6.0))


def test_its_arrays_are_captured_by_reference() -> None:
    weights = Boxed(np.ones(3))
    scaled = wend.function(lambda x: x * weights, backend="boxed")
    np.testing.assert_array_equal(scaled(2.0), np.full(3, 2.0))
    weights._array[:] = 5.0
    np.testing.assert_array_equal(scaled(2.0), np.full(3, 10.0))


def test_an_argument_is_changed_in_place() -> None:
    def doubled(x):
        x *= 2.0

    x = Boxed(np.ones(3))
    wend.function(doubled, backend="boxed")(x)
    np.testing.assert_array_equal(x, np.full(3, 2.0))
    read_only = np.ones(3)
    read_only.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        wend.function(doubled, backend="boxed")(Boxed(read_only))


@pytest.mark.parametrize("options", [{"nans": True}, {"compare": True}, {"strict": True}])
def test_settings_that_look_at_numbers_look_through_the_boundary(options) -> None:
    with wend.config(**options):
        slope = wend.grad(wend.function(lambda x: x.sum() ** 2, backend="boxed"))
        np.testing.assert_array_equal(slope(np.ones(3)), np.full(3, 6.0))


def test_capabilities_are_found_by_type() -> None:
    fun = wend.function(lambda x: x * 2.0)
    concrete = fun.get_concrete_function(1.0)
    native, boxed = (concrete.compiled.executable(name) for name in ("native", "boxed"))
    assert all(isinstance(native, kind) for kind in (FastCallable, Explains, HoldsMemory))
    assert not any(isinstance(boxed, kind) for kind in (FastCallable, Explains, HoldsMemory))
    for kind in (LazyCompiler, ChecksGuards):
        assert isinstance(choose("native"), kind)
        assert not isinstance(choose("boxed"), kind)
    assert "in Python" not in concrete.explain()
