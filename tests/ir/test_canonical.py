"""Equal graphs are equal whatever their names and lines are; anything else tells them apart."""

from __future__ import annotations

import numpy as np

import wend
import wend.numpy as wnp
from wend.ir import Graph, digest, equal


def graph(fun, *args) -> Graph:
    return wend.function(fun).get_concrete_function(*args).graph


def test_names_and_lines_do_not_count() -> None:
    def first(x):
        return wend.while_loop(lambda v: v < 8.0, lambda v: v * v, x)

    def second(y):
        square = lambda w: w * w  # noqa: E731
        return wend.while_loop(lambda w: w < 8.0, square, y)

    a, b = graph(first, 2.0), graph(second, 3.0)
    assert equal(a, b)
    assert digest(a) == digest(b)


def test_attrs_types_order_and_large_constants_count() -> None:
    x = np.ones(3)
    base = graph(lambda x: wnp.sum(x) * 2.0, x)
    others = [
        graph(lambda x: wnp.sum(x) * 3.0, x),
        graph(lambda x: 2.0 * wnp.sum(x), x),
        graph(lambda x: wnp.max(x) * 2.0, x),
        graph(lambda x: wnp.sum(x) * 2.0, np.ones(4)),
        graph(lambda x: wnp.sum(x) * 2.0, x.astype(np.float32)),
    ]
    assert len({digest(g) for g in (base, *others)}) == 6
    assert not any(equal(base, other) for other in others)
