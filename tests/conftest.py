"""Settings of the whole suite: how long Hypothesis searches, and what holds for every graph."""

import os
from typing import Any

import pytest
from hypothesis import settings

import wend
from tests.helpers.golden import Golden
from tests.helpers.graphs import check_graph
from wend.backends.numpy.backend import NumpyBackend
from wend.ir.graph import Graph

settings.register_profile("ci", max_examples=15, deadline=None, derandomize=True)
settings.register_profile("long", max_examples=300, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# Every graph that the suite builds is verified after each pass, and what is compiled survives
# print -> parse -> print. Tests run on native code, as programs do, unless they say else;
# `WEND_BACKEND=numpy` runs them all on the reference.
wend.config(verify=True)
_compile = NumpyBackend.compile


def _checked_compile(self: NumpyBackend, graph: Graph) -> Any:
    check_graph(graph)
    return _compile(self, graph)


NumpyBackend.compile = _checked_compile  # type: ignore[method-assign]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write tests/golden anew")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compares text with a file under tests/golden."""
    return Golden(update=request.config.getoption("--update-golden"))
