"""Wheels: installed in a folder, they run without wend."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.helpers.built import compiler
from wend.build import build
from wend.build.wheel import platform_tag

PROGRAM = """
import sys
import numpy as np
import cube
assert not any(name.partition(".")[0] == "wend" for name in sys.modules)
print(cube.cube(2.0), *cube.cube_gradient(2.0))
try:
    cube.cube(-1.0)
except RuntimeError as error:
    print(str(error)[:20])
state = cube.State()
"""


def cube(x):
    if x < 0.0:
        raise ValueError("negative")
    print("cube")
    return x * x * x


@pytest.mark.skipif(sys.platform != "linux", reason="wheels are made for Linux")
def test_a_wheel_runs_without_wend(tmp_path: Path) -> None:
    compiler()
    built = build(cube, "f64", gradient=True, wheel=True, out=tmp_path)
    assert built.wheel is not None
    assert built.wheel.name.startswith("cube-0.1-py3-none-manylinux_2_")
    with zipfile.ZipFile(built.wheel) as wheel:
        wheel.extractall(tmp_path / "installed")
        record = wheel.read("cube-0.1.dist-info/RECORD").decode().splitlines()
        assert sorted(line.partition(",")[0] for line in record) == sorted(wheel.namelist())
    program = PROGRAM.replace("state = cube.State()\n", "")
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path / "installed",
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "cube\ncube\n8.0 8.0 12.0\nValueError: negative\n"


def test_an_older_processor_is_told_at_import(tmp_path: Path) -> None:
    compiler()
    built = build(cube, "f64", wheel=True, out=tmp_path)
    assert built.wheel is not None
    with zipfile.ZipFile(built.wheel) as wheel:
        wheel.extractall(tmp_path)
    module = tmp_path / "cube" / "__init__.py"
    text = module.read_text()
    start = text.index("_needed = [") + len("_needed = [")
    module.write_text(f"{text[:start]}'avx9999', {text[start:]}")
    done = subprocess.run(
        [sys.executable, "-c", "import cube"],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )
    assert "ImportError: cube was built for a processor with avx9999" in done.stderr


def test_the_tag_is_the_newest_glibc_that_is_needed() -> None:
    image = b"\0GLIBC_2.2.5\0GLIBC_2.29\0memcpy\0GLIBC_2.14\0"
    assert platform_tag(image, "x86_64") == "manylinux_2_29_x86_64"
    assert platform_tag(b"\0GLIBC_2.2.5\0", "x86_64") == "manylinux_2_17_x86_64"
    assert platform_tag(b"", "aarch64") == "linux_aarch64"
