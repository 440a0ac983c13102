"""Which of OpenBLAS's kernels SciPy's copy is asked for."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import wend
from wend.backends.native.rt.linalg import blas_kernels
from wend.backends.native.rt.linalg.blas_kernels import VARIABLE, choice

ALL = dict.fromkeys(("avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"), True)


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.mark.parametrize("chosen", ["Haswell", "Zen"])
def test_where_avx512_was_overlooked_it_is_asked_for(chosen: str) -> None:
    assert choice({"numpy": chosen}, ALL) == "SkylakeX"


@pytest.mark.parametrize(
    ("loaded", "features"),
    [
        ({"numpy": "Haswell"}, ALL | {"avx512vl": False}),  # the processor has not got it
        ({"numpy": "SapphireRapids"}, ALL),  # a better choice
        ({"numpy": "Haswell", "scipy": "Haswell"}, ALL),  # too late
        ({}, ALL),  # another BLAS
    ],
)
def test_else_the_choice_is_openblas_s(loaded: dict[str, str], features: dict[str, bool]) -> None:
    assert choice(loaded, features) == ""


def test_the_user_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    with wend.config(blas_kernels="own"):
        assert choice({"numpy": "Haswell"}, ALL) == ""
    monkeypatch.setenv(VARIABLE, "Zen")
    assert choice({"numpy": "Haswell"}, ALL) == ""


def test_the_variable_is_set_for_the_loading_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas_kernels, "choice", lambda loaded, features: "SkylakeX")
    with pytest.raises(KeyError), blas_kernels.choosing():
        assert os.environ[VARIABLE] == "SkylakeX"
        raise KeyError
    assert VARIABLE not in os.environ


def test_a_setting_is_one_of_two() -> None:
    with pytest.raises(ValueError, match="auto, own"):
        wend.config(blas_kernels="fast")


@pytest.mark.skipif(not blas_kernels.loaded_kernels(), reason="NumPy has another BLAS")
def test_what_is_loaded_can_be_told_and_chosen() -> None:
    program = (
        "from wend.backends.native.rt.linalg import blas_functions, blas_kernels\n"
        "blas_kernels.choice = lambda loaded, features: 'Haswell'\n"
        "blas_functions._load('scipy.linalg.cython_blas')\n"
        "print(blas_kernels.loaded_kernels()['scipy'])"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "Haswell"
