"""JAX that is missing, or too old: the error says what to install."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata

import pytest

from wend.backends.jax.requirements import check_version


def test_jax_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    with pytest.raises(
        ImportError, match=r"backend=.jax. needs jax, which is not installed.\n.*wend\[jax\]"
    ):
        check_version('backend="jax"')


def test_jax_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: "0.4.30")
    with pytest.raises(ImportError, match=r"does not work with jax 0.4.30.\n.*jax >= 0.10"):
        check_version('backend="jax"')


WITHOUT_JAX = """
import importlib.metadata, sys

class Hidden:  # what an environment without JAX finds
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("jax", "jaxlib"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

version = importlib.metadata.version

def hiding(name):
    if name in ("jax", "jaxlib"):
        raise importlib.metadata.PackageNotFoundError(name)
    return version(name)

sys.meta_path.insert(0, Hidden())
importlib.metadata.version = hiding
import wend

double = wend.function(lambda x: x + x)
assert double(2.0) == 4.0
for use in (lambda: wend.config(backend="jax"), lambda: wend.function(abs, backend="jax")(1.0)):
    try:
        use()
    except ImportError as error:
        print(error)
assert double(3.0) == 6.0
"""


def test_a_process_without_jax() -> None:
    """The rest of wend works there; each use of the backend says what to install."""
    command = [sys.executable, "-c", WITHOUT_JAX]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("pip install 'wend[jax]'") == 2
    assert run.stdout.count("needs jax, which is not installed") == 2
