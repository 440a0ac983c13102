"""The versions of PyTorch that the bridge works with."""

from __future__ import annotations

from importlib import metadata

from wend.base.errors import explain

# The first version that was tried: `autograd.Function` and `torch.library` are as used here.
OLDEST = (2, 4)


def check_version() -> None:
    """Check that PyTorch is installed and recent enough.

    Raises:
        ImportError: it is not; the error says what to install.
    """
    cure = f"install it as pytorch.org says (torch >= {'.'.join(map(str, OLDEST))})."
    try:
        version = metadata.version("torch")
    except metadata.PackageNotFoundError:
        problem = "wend.interop.torch needs torch, which is not installed."
        raise ImportError(explain(problem, cure=cure)) from None
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        problem = f"wend.interop.torch does not work with torch {version}."
        raise ImportError(explain(problem, cure=cure))
