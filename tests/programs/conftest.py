"""Every program runs on NumPy's arrays, a fourth also on those of a backend of its own (D33)."""

from __future__ import annotations

from collections.abc import Iterator
from zlib import crc32

import pytest

import wend
from tests.helpers.boxed_backend import BOXED
from wend.backends.protocol import BACKENDS
from wend.runtime.array_boundary import register_boundary


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    chooses_itself = "backend" in metafunc.fixturenames
    kinds = ["host"] if chooses_itself else ["host", "boxed"]
    metafunc.parametrize("arrays", kinds, indirect=True)


@pytest.hookimpl(tryfirst=True)  # before those marked slow are deselected
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        is_boxed = getattr(item, "callspec", None) and item.callspec.params.get("arrays") == "boxed"
        if is_boxed and crc32(item.nodeid.encode()) % 4:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def arrays(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The kind of arrays that the test runs on."""
    monkeypatch.setitem(BACKENDS, BOXED.name, BOXED)
    register_boundary(BOXED.boundary)
    with wend.config(**({} if request.param == "host" else {"backend": request.param})):
        yield request.param
