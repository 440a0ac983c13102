"""The versions of JAX that wend works with."""

from __future__ import annotations

from wend.runtime import requirements

# The first version whose primitives, `jax.ffi` and `jax.extend.core` are as used here.
OLDEST = (0, 10)


def check_version(user: str) -> None:
    """Check that JAX is installed and recent enough.

    Args:
        user: what needs it, for messages.

    Raises:
        ImportError: it is not; the error says what to install.
    """
    cure = "install it: pip install 'wend[jax]'"
    requirements.check_version(user, ("jax", "jaxlib"), OLDEST, cure)
