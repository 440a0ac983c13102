"""The versions of PyTorch that the bridge works with."""

from __future__ import annotations

from wend.runtime import requirements

# The first version that was tried: `autograd.Function` and `torch.library` are as used here.
OLDEST = (2, 7)


def check_version() -> None:
    """Check that PyTorch is installed and recent enough.

    Raises:
        ImportError: it is not; the error says what to install.
    """
    requirements.check_version(
        "wend.interop.torch", ("torch",), OLDEST, "install it as pytorch.org says"
    )
