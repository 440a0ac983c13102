"""The versions of JAX that the bridge works with."""

from __future__ import annotations

from importlib import metadata

from wend.base.errors import explain

# The first version whose primitives, `jax.ffi` and `jax.extend.core` are as used here.
OLDEST = (0, 10)


def check_version() -> None:
    """Check that JAX is installed and recent enough.

    Raises:
        ImportError: it is not; the error says what to install.
    """
    cure = f"install it: pip install 'wend[jax]' (jax >= {'.'.join(map(str, OLDEST))})."
    try:
        version = metadata.version("jax")
        metadata.version("jaxlib")
    except metadata.PackageNotFoundError as error:
        problem = f"wend.interop.jax needs {error.name}, which is not installed."
        raise ImportError(explain(problem, cure=cure)) from None
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        raise ImportError(explain(f"wend.interop.jax does not work with jax {version}.", cure=cure))
