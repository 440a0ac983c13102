"""Machines and processors that object files are made for."""

from __future__ import annotations

import pytest

from wend.backends.native.objects.targets import machine_of, target_platform
from wend.backends.native.target.platform import host_features
from wend.base.errors import UnsupportedError


def test_levels_of_x86_64_include_those_before_them() -> None:
    v1, v2, v3, v4 = (
        target_platform("x86_64-linux-gnu", f"x86-64{suffix}", has_blas=True)
        for suffix in ("", "-v2", "-v3", "-v4")
    )
    assert v1.features < v2.features < v3.features < v4.features
    assert v3.has("avx2", "fma")
    assert not v3.has("avx512f")
    assert machine_of(v3).triple.startswith("x86_64")


def test_this_machine_has_its_own_features_and_others_none() -> None:
    here = target_platform(None, None, has_blas=True)
    assert here.features == host_features()
    assert not here.is_process
    arm = target_platform("aarch64-linux-gnu", None, has_blas=True)
    assert (arm.cpu, arm.features) == ("generic", frozenset())


def test_machines_without_code_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="there is no code for armv7-linux"):
        target_platform("armv7-linux", None, has_blas=True)
    with pytest.raises(UnsupportedError, match="is not this one"):
        target_platform("aarch64-none-elf", "native", has_blas=True)
