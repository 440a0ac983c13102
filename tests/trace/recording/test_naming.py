"""`wend.name_scope`: which operations bear which scope, and where it is shown."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.base.errors import TypeMismatchError
from wend.base.source import SCOPE, Source
from wend.ir.graph import Graph
from wend.ir.packing import Names, pack, unpack
from wend.ir.parser import parse


@wend.name_scope("attention")
def attend(q: Any, k: Any) -> Any:
    return wend.name(wnp.exp(-q * k), "weights")


def layers(x: Any) -> Any:
    for i in range(2):
        with wend.name_scope(f"layer{i}"):
            x = attend(x, x)
    with wend.name_scope("settle"):
        while x.sum() > 0.1:
            x = x * 0.5
    return x - 1.0


def scopes(graph: Graph) -> Iterator[tuple[str, str]]:
    for node in graph.walk():
        if node.source is not None and node.op.name != "constant":
            yield node.op.name, node.source.scope


@pytest.fixture
def concrete() -> Any:
    return wend.function(layers).get_concrete_function(0.3)


def test_operations_bear_the_scopes_that_are_open(concrete: Any) -> None:
    found = [*scopes(concrete.graph)]
    assert found == [
        *[(name, f"layer{i}/attention") for i in range(2) for name in ("neg", "mul", "exp")],
        *[(name, "settle") for name in ("while", "reduce_sum", "gt", "mul")],
        ("sub", ""),
    ]


def test_derivatives_and_passes_keep_them(concrete: Any) -> None:
    gradient = wend.grad(wend.grad(layers)).get_concrete_function(0.3)
    found = {scope for _, scope in scopes(gradient.graph)}
    assert found == {"", "settle", "layer0/attention", "layer1/attention"}


def test_texts_and_packed_graphs_keep_them(concrete: Any) -> None:
    found = [*scopes(concrete.graph)]
    table: list[Any] = []
    text = wend.ir.to_text(concrete.graph, table=table, sources=True)
    assert [*scopes(parse(text, table=table))] == found
    names = Names()
    assert [*scopes(unpack(pack([concrete.graph], names), names)[0])] == found


def test_texts_of_files_with_an_at_sign_parse() -> None:
    line = "%1: f64[] = sin(%0) ; a @b.py:3"
    for scope in ("", "encoder/x"):
        suffix = f" @{scope}" if scope else ""
        graph = parse(f"graph g(%0: f64[]) {{\n  {line}{suffix}\n  return %1\n}}")
        assert graph.nodes[0].source == Source("a @b.py", 3, "", scope)


def test_files_keep_them(concrete: Any) -> None:
    file = io.BytesIO()
    wend.save(file, concrete)
    file.seek(0)
    loaded = wend.load(file)
    found = {scope for _, scope in scopes(loaded.get_concrete_function(0.3).graph)}
    assert {"settle", "layer0/attention"} <= found


def test_pictures_and_profiles_show_them(concrete: Any) -> None:
    assert " @layer1/attention</title>" in concrete.graph.to_svg()
    function = wend.function(layers)
    with wend.profile() as profile:
        function(np.full(100, 0.01))
    (loop,) = (line for line in profile.lines() if line.trips)
    assert loop.source is not None
    assert loop.source.scope == "settle"
    assert " @settle " in str(profile)


def test_names_of_values_begin_with_the_scope(concrete: Any) -> None:
    part = concrete.prune("layer0/attention/weights", "layer1/attention/weights")
    np.testing.assert_allclose(part(2.0), np.exp(-4.0), rtol=1e-15)


@pytest.mark.parametrize("inner", [wend.function, wend.checkpoint])
def test_only_functions_recorded_once_start_without(inner: Any) -> None:
    called = inner(lambda x: wnp.sin(x))

    def outer(x: Any) -> Any:
        with wend.name_scope("outer"):
            return called(x)

    graph = wend.function(outer).get_concrete_function(0.3).graph
    expected = "" if inner is wend.function else "outer"
    assert ("sin", expected) in [*scopes(graph)]
    with wend.name_scope("caller"):
        graph = wend.function(lambda x: wnp.cos(x)).get_concrete_function(0.3).graph
    assert [*scopes(graph)] == [("cos", "")]


def test_scopes_end_where_their_block_does() -> None:
    with wend.name_scope("a") as outer, wend.name_scope("b/c") as inner:
        assert (outer, inner, SCOPE.get()) == ("a", "a/b/c", "a/b/c")
    assert SCOPE.get() == ""

    def leave(x: Any) -> Any:
        for _ in range(3):
            with wend.name_scope("left"):
                if x > 1.0:
                    break
                x = x + 1.0
        return x * 2.0

    found = [*scopes(wend.function(leave).get_concrete_function(0.3).graph)]
    assert ("add", "left") in found
    assert found[-1] == ("mul", "")
    assert wend.function(leave)(0.5) == leave(0.5)

    manager = wend.name_scope("again")
    with pytest.raises(KeyError), manager, manager:
        assert SCOPE.get() == "again/again"
        raise KeyError
    assert SCOPE.get() == ""


def test_misuse_is_refused() -> None:
    with pytest.raises(TypeMismatchError, match="takes a string, not 3"):
        wend.name_scope(3)  # type: ignore[arg-type]
    for name in ("", "a b", "a@b", "a\n"):
        with pytest.raises(ValueError, match="is no name of a scope"):
            wend.name_scope(name)
