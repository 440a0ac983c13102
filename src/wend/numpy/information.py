"""What the array API standard asks a namespace about itself."""

from __future__ import annotations

from typing import Any

import numpy as np

__array_api_version__ = "2025.12"


def __array_namespace_info__() -> Any:  # noqa: N807
    """NumPy's answers: devices, capabilities, default dtypes and dtypes."""
    return np.__array_namespace_info__()
