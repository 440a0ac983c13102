"""Checks of the versions of other systems."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata

from wend.base.errors import explain


def check_version(
    user: str, distributions: Sequence[str], oldest: tuple[int, int], cure: str
) -> None:
    """Check that another system is installed and recent enough.

    Args:
        user: what needs it, for messages.
        distributions: what has to be installed; the first has the version.
        oldest: the first version that works.
        cure: how to install it.

    Raises:
        ImportError: it is not; the error says what to install.
    """
    system = distributions[0]
    cure = f"{cure} ({system} >= {'.'.join(map(str, oldest))})."
    try:
        version, *_ = [metadata.version(name) for name in distributions]
    except metadata.PackageNotFoundError as error:
        problem = f"{user} needs {error.name}, which is not installed."
        raise ImportError(explain(problem, cure=cure)) from None
    if tuple(int(part) for part in version.split(".")[:2]) < oldest:
        problem = f"{user} does not work with {system} {version}."
        raise ImportError(explain(problem, cure=cure))
