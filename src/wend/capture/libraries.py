"""Library code, which is never captured: wend, the standard library, installed packages."""

from __future__ import annotations

import os
import sysconfig

from wend.base.source import PROGRAMS, is_wend_file

_LIBRARY = tuple(
    {sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)


# Installed packages that are captured nevertheless: one of their functions was passed to wend.
_packages: set[str] = set()
_INSTALLED = "site-packages" + os.sep


def is_library(file: str) -> bool:
    """Return whether a file holds library code: wend, the standard library, installed packages."""
    if is_wend_file(file):
        return True
    installed = file.startswith((*_LIBRARY, "<frozen ")) or _INSTALLED in file
    # The demo is installed with wend.
    return installed and not file.startswith((*PROGRAMS, *_packages))


def include_package(file: str) -> None:
    """Capture the installed package that holds `file`: one of its functions was passed to wend."""
    root, separator, tail = file.rpartition(_INSTALLED)
    package = tail.partition(os.sep)[0]
    if separator and package not in ("numpy", "scipy") and not is_wend_file(file):
        _packages.add(root + separator + package)
