"""The bridge to PyTorch is tested where torch is installed, which no extra does."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="NOT RUN: torch is not installed")
