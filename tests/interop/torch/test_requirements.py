"""PyTorch that is missing, or too old: the error says what to install."""

from __future__ import annotations

from importlib import metadata

import pytest

from wend.interop.torch.requirements import check_version


def test_torch_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    with pytest.raises(ImportError, match=r"needs torch, which is not installed.\n"):
        check_version()


def test_torch_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: "1.13.1")
    with pytest.raises(ImportError, match=r"does not work with torch 1.13.1.\n.*torch >= 2.7"):
        check_version()
