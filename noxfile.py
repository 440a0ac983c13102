"""The tests on every supported Python, and with the oldest NumPy and LLVM: `nox`.

One of these on some of the tests: `nox -s tests-3.12 -- -k newton`.
"""

import re

import nox

nox.needs_version = ">=2025.2"
nox.options.default_venv_backend = "uv|virtualenv"

PROJECT = nox.project.load_toml("pyproject.toml")


@nox.session(python=["3.11", "3.12", "3.13"])
def tests(session: nox.Session) -> None:
    session.install("-e", ".[demo]", *nox.project.dependency_groups(PROJECT, "test"))
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session(python="3.11")
def oldest(session: nox.Session) -> None:
    """With the oldest of each dependency that pyproject.toml allows."""
    least = [re.sub(r">=([\d.]+),.*", r"==\1", d) for d in PROJECT["project"]["dependencies"]]
    session.install("-e", ".[demo]", *nox.project.dependency_groups(PROJECT, "test"), *least)
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session(python="3.11")
def lint(session: nox.Session) -> None:
    session.install("-e", ".[demo]", *nox.project.dependency_groups(PROJECT, "test"))
    session.run("python", "-m", "ruff", "check", ".")
    session.run("python", "-m", "ruff", "format", "--check", ".")
    session.run("lint-imports", "--no-logo")
    session.run("python", "-m", "mypy")
