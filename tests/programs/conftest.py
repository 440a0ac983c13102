"""Every program runs on NumPy's arrays, and some on those of a backend that has its own (D33)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import wend
from tests.helpers.boxed_backend import BOXED
from wend.backends.protocol import BACKENDS
from wend.runtime.array_boundary import register_boundary


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    chooses_itself = "backend" in metafunc.fixturenames
    boxed = pytest.param("boxed", marks=pytest.mark.sampled)
    kinds = ["host"] if chooses_itself else ["host", boxed]
    metafunc.parametrize("arrays", kinds, indirect=True)


@pytest.fixture(autouse=True)
def arrays(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The kind of arrays that the test runs on."""
    monkeypatch.setitem(BACKENDS, BOXED.name, BOXED)
    register_boundary(BOXED.boundary)
    with wend.config(**({} if request.param == "host" else {"backend": request.param})):
        yield request.param
