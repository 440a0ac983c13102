"""The compiler that links object files: `$CC`, `cc`, or that of the package `ziglang`."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from wend.base.errors import WendError, explain


class LinkError(WendError, RuntimeError):
    """There is no compiler that links, or it has failed."""


def find_compiler() -> list[str] | None:
    """Return the command of a C compiler, or None if there is none."""
    named = os.environ.get("CC")
    if named:
        return shlex.split(named)
    if shutil.which("cc"):
        return ["cc"]
    if find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc"]
    return None


def link_shared(
    objects: Sequence[Path], out: Path, *, target: str | None = None, libraries: str = ""
) -> None:
    """Link object files to a shared library.

    Args:
        objects: the object files.
        out: the library.
        target: LLVM's name of another machine, for which only some compilers link.
        libraries: further options, such as `-lopenblas`.

    Raises:
        LinkError: there is no compiler, or it fails.
    """
    command = find_compiler()
    if command is None:
        what = "there is no C compiler to link with: $CC is not set, and there is no cc."
        cure = "install one, or pip install 'wend[build]', or link the object file yourself."
        raise LinkError(explain(what, cure=cure))
    if target is not None:
        command += [f"--target={target}"]
    command += ["-shared", "-o", str(out), *map(str, objects), "-lm", *shlex.split(libraries)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        what = f"{shlex.join(command)} failed:\n{done.stderr.strip()}"
        raise LinkError(explain(what, cure="pass what is missing in libraries."))
