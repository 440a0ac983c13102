"""Where peers are installed: this Python, or environments made for them."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from collections.abc import Iterable, Mapping
from pathlib import Path

from bench.peers import CATALOGUE

# Those that cannot live together have environments of their own: Catalyst holds JAX to a version.
ENVIRONMENTS = {
    "peers": (
        *("jax", "equinox", "diffrax", "numba", "autograd", "drjit", "casadi", "warp-lang"),
        "optree",  # with which wend runs there, too: on JAX
    ),
    "torch": (
        *("torch==2.13.0", "numpy"),
        *("optree", "llvmlite"),  # with which wend runs there, too
        *("--extra-index-url", "https://download.pytorch.org/whl/cpu"),  # without CUDA
    ),
    "tensorflow": ("tensorflow-cpu",),
    "catalyst": ("pennylane-catalyst",),
}
FIND = """
import importlib.util, json, sys
print(json.dumps([name for name in sys.argv[1:] if importlib.util.find_spec(name)]))
"""


def set_up(folder: Path) -> None:
    """Make the environments in a folder, or bring them up to date."""
    for name, packages in ENVIRONMENTS.items():
        place = folder / name
        if not python_of(place).exists():
            venv.create(place, with_pip=True)
        print(f"{place}: pip install {' '.join(packages)}", flush=True)
        subprocess.run(
            [python_of(place), "-m", "pip", "install", "--quiet", "--upgrade", *packages],
            check=True,
        )


def interpreters(names: Iterable[str], folder: Path | None) -> dict[str, str]:
    """Return the Python of each peer that is installed."""
    return first_with({name: CATALOGUE[name].needs for name in names}, folder)


def first_with(needs: Mapping[str, Iterable[str]], folder: Path | None) -> dict[str, str]:
    """Return for each name the first Python that has the modules it needs, if there is one: this
    one, and then those of the environments in their order here, for Catalyst brings an old JAX.
    """
    pythons = [sys.executable]
    if folder is not None:
        pythons += [str(python_of(folder / name)) for name in ENVIRONMENTS]
    modules = sorted({module for needed in needs.values() for module in needed})
    has = {python: found(python, modules) for python in pythons if Path(python).exists()}
    return {
        name: next(python for python in has if set(needed) <= has[python])
        for name, needed in needs.items()
        if any(set(needed) <= modules for modules in has.values())
    }


def found(python: str, modules: Iterable[str]) -> set[str]:
    """Return those of some modules that a Python can import."""
    told = subprocess.run([python, "-c", FIND, *modules], check=True, capture_output=True)
    return set(json.loads(told.stdout))


def python_of(place: Path) -> Path:
    return place / "bin" / "python"


def in_a_process(python: str, module: str, *arguments: str) -> dict[str, float] | None:
    """Return the figures that a module prints as JSON; None where it fails."""
    command = [python, "-m", module, *arguments]
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    if run.returncode:
        print(run.stderr.strip().splitlines()[-1:], file=sys.stderr)
        return None
    result: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return result
