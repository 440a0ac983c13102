"""JAX that is missing, or too old: the error says what to install."""

from __future__ import annotations

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
