"""The C header: a golden text, and a compiler that reads it as C and as C++."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import wend
from tests.helpers.built import compiler
from tests.helpers.golden import Golden
from wend.build import build


def everything(new, x, k, z):
    """A function with each kind of parameter."""
    x[0] = 1.0
    return new[new > 0.0], x.sum() + k, z


def test_the_header_of_each_kind_of_parameter(golden: Golden, tmp_path: Path) -> None:
    built = build(everything, "f64[n, m], f32[n], i8, c128", out=tmp_path)
    golden.check("build_header.h", built.header.read_text())


@pytest.mark.parametrize("language", ["c", "c++"])
def test_compilers_read_it(language: str, tmp_path: Path) -> None:
    rate = wend.Variable(np.ones(2), name="double")

    def step(x):
        rate.assign(rate * x)
        return rate.sum()

    build(step, "f64", out=tmp_path)
    extension, standard = (".c", "c99") if language == "c" else (".cpp", "c++11")
    (tmp_path / f"main{extension}").write_text(
        '#include "step.h"\n#include "step.h"\n'
        "double first(const step_state *state) { return state->double_2[0]; }\n"
    )
    flags = ["-Wall", "-Wextra", "-Werror", "-pedantic", f"-std={standard}", "-c"]
    subprocess.run([*compiler(language), *flags, f"main{extension}"], cwd=tmp_path, check=True)
