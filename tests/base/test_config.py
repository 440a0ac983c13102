"""Settings: changed for good, or inside a block; and from the environment."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

import wend
from wend.base.config import Settings, settings


def test_a_block_changes_settings_and_puts_them_back() -> None:
    before = settings()
    with wend.config(backend="native") as inside:
        assert inside.backend == settings().backend == "native"
    assert settings() == before


def test_a_block_is_left_by_an_error_too() -> None:
    before = settings()
    with pytest.raises(ZeroDivisionError), wend.config(backend="native"):
        raise ZeroDivisionError
    assert settings() == before


def test_a_block_does_not_reach_other_threads() -> None:
    found = []
    with wend.config(backend="numpy"):
        thread = threading.Thread(target=lambda: found.append(settings().backend))
        thread.start()
        thread.join()
    assert found == [settings().backend] != ["numpy"]


def test_an_unknown_setting_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="'bakend' is not a setting of wend; there are backend"):
        wend.config(bakend="native")


def test_an_unknown_backend_is_refused_by_name_at_once() -> None:
    before = settings()
    for choose in (wend.config, lambda backend: wend.function(lambda x: x, backend=backend)):
        with pytest.raises(ValueError, match="there are numpy, native, dataflow and jax"):
            choose(backend="fortran")
    assert settings() == before


def test_the_environment_sets_defaults() -> None:
    code = (
        "from wend.base.config import settings; s = settings(); "
        "print(s.backend, s.verify, s.tape_keep + 1)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "WEND_BACKEND": "native", "WEND_VERIFY": "1", "WEND_TAPE_KEEP": "99"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert found.stdout == "native True 100\n"


def test_scopes():
    before = settings()
    with wend.config(backend="native") as inner:
        assert inner.backend == settings().backend == "native"
        with wend.config(verify=not before.verify):
            assert settings().backend == "native"
        assert settings().verify == before.verify
    assert settings() == before


def test_for_the_rest_of_the_program():
    """In every thread; and the environment before it."""
    code = (
        "import threading, wend; from wend.base.config import settings;"
        "print(settings().backend, settings().verify);"
        "wend.config(backend='numpy');"
        "t = threading.Thread(target=lambda: print(settings().backend, settings().verify));"
        "t.start(); t.join()"
    )
    environment = {**os.environ, "WEND_BACKEND": "native", "WEND_VERIFY": "1"}
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert found.stdout.splitlines() == ["native True", "numpy True"]


@pytest.mark.parametrize("name", [*Settings.__annotations__])
def test_values_of_another_type_are_refused_by_name(name: str) -> None:
    wrong = {
        "bool": [1, "yes", None],
        "int": [-1, "2", True, 1.0, None],
        "str": [5, None],
        "Memory": ["nope", 5],
        "int | str | None": [-1, "some"],
    }
    before = settings()
    for value in wrong[Settings.__annotations__[name]]:
        with pytest.raises((TypeError, ValueError), match=rf"\b{name}\b"):
            wend.config(**{name: value})
    assert settings() == before
