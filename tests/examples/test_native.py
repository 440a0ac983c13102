"""The programs of `examples/native/` in C, C++ and Fortran; memory checkers see nothing wrong."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.helpers.built import compiler
from wend.cli import main

FOLDER = Path(__file__).parents[2] / "examples" / "native"
MEANS = "8: 5 6 7\nrows: 4\nrows: 8\n8: 50 60 70\nrows: 4\nrows: 8\n"
ROOTS = """1 1
1.41421356237309 0.353553390593274
1.73205080756888 0.288675134594813
ValueError: the root of -1.000 a
"""


def build_in(out: Path, *options: str) -> Path:
    """The folder, with what the examples link."""
    newton = f"{FOLDER}/newton.py"
    where = ["--out", str(out), *options]
    assert main(["build", f"{newton}:root", "--signature", "f64", "--gradient", *where]) == 0
    assert main(["build", f"{newton}:learn", "--signature", "f64[n, 3]", *where]) == 0
    return out


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what the examples link."""
    return build_in(tmp_path_factory.mktemp("native"))


def program(objects: Path, language: str, source: str, *options: str) -> list[str]:
    """The command of a program that is linked with an object file."""
    library = "learn.o" if source.startswith("learn") else "root.o"
    out = objects / f"{source}{len(options)}"
    command = [*compiler(language), *options, f"-I{objects}", f"-J{objects}", str(FOLDER / source)]
    if language != "fortran":
        command.remove(f"-J{objects}")  # where Fortran writes modules
    command += [str(objects / library), "-lm", "-lpthread", "-o", str(out)]
    subprocess.run(command, check=True)
    return [str(out)]


def printed(command: list[str]) -> str:
    """What a program prints; it must end without an error."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


STRICT = ("-Wall", "-Wextra", "-Werror")


def test_c(objects: Path) -> None:
    assert printed(program(objects, "c", "newton.c", *STRICT, "-std=c99", "-pedantic")) == ROOTS


def test_cpp_with_two_states_in_two_threads(objects: Path) -> None:
    assert printed(program(objects, "c++", "learn.cpp", *STRICT)) == MEANS


def test_fortran(objects: Path) -> None:
    lines = printed(program(objects, "fortran", "newton.f90", "-Wall")).splitlines()
    assert [[float(x) for x in line.split()] for line in lines] == [
        [1.0, 1.0],
        [1.414213562, 0.353553391],
        [1.732050808, 0.288675135],
    ]


@pytest.mark.parametrize(("language", "source"), [("c", "newton.c"), ("c++", "learn.cpp")])
def test_the_address_sanitizer_sees_nothing_wrong(
    objects: Path, language: str, source: str
) -> None:
    options = ("-fsanitize=address,undefined", "-fno-sanitize-recover", "-g")
    try:
        command = program(objects, language, source, *options)
    except subprocess.CalledProcessError:
        pytest.skip("NO SANITIZERS: the compiler links no program with -fsanitize=address")
    assert printed(command) == (ROOTS if source == "newton.c" else MEANS)


@pytest.mark.parametrize(("language", "source"), [("c", "newton.c"), ("c++", "learn.cpp")])
def test_valgrind_sees_nothing_wrong(tmp_path: Path, language: str, source: str) -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("NO VALGRIND: the memory of native programs is not checked here")
    # It knows no AVX-512.
    is_x86 = platform.machine().lower() in ("x86_64", "amd64")
    objects = build_in(tmp_path, *(["--cpu", "x86-64-v2"] if is_x86 else []))
    command = program(objects, language, source, "-O0")
    checked = ["valgrind", "-q", "--leak-check=full", "--error-exitcode=9", *command]
    assert printed(checked) == (ROOTS if source == "newton.c" else MEANS)
