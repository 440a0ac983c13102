"""The versions of JAX that the bridge works with."""

from __future__ import annotations

from wend.interop import requirements

# The first version whose primitives, `jax.ffi` and `jax.extend.core` are as used here.
OLDEST = (0, 10)


def check_version() -> None:
    """Check that JAX is installed and recent enough.

    Raises:
        ImportError: it is not; the error says what to install.
    """
    requirements.check_version(("jax", "jaxlib"), OLDEST, "install it: pip install 'wend[jax]'")
