"""The files that lie beside these modules: styles and scripts."""

from __future__ import annotations

from importlib import resources


def beside(name: str) -> str:
    """The text of a file of this folder."""
    return (resources.files("wend.pictures") / name).read_text(encoding="utf-8")
