"""Which code is left alone: that of wend, the standard library and installed packages."""

from __future__ import annotations

import os
import sysconfig

from wend.base.source import PROGRAMS, is_own

_LIBRARY = tuple(
    {sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)


# Installed packages that are captured all the same, for a function of theirs was given to wend.
_packages: set[str] = set()
_INSTALLED = "site-packages" + os.sep


def is_library(file: str) -> bool:
    """Whether code in this file is left alone: wend, the standard library, installed packages."""
    if is_own(file):
        return True
    installed = file.startswith(_LIBRARY) or _INSTALLED in file
    # The demo is installed with wend.
    return installed and not file.startswith((*PROGRAMS, *_packages))


def take_in(file: str) -> None:
    """Capture the package of this file, installed as it is: a function of it was given to wend."""
    folder, found, rest = file.rpartition(_INSTALLED)
    package = rest.partition(os.sep)[0]
    if found and package not in ("numpy", "scipy") and not is_own(file):
        _packages.add(folder + found + package)
