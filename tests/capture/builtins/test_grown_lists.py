"""`sorted`, `min` and `max` of lists that have grown."""

from __future__ import annotations

import heapq

import numpy as np
import pytest

import wend
from wend.testing import check_grads


def weighted(xs):
    pairs = []
    for k, x in enumerate(xs):
        if x > 0:
            pairs.append((x, k))
    total, weight = 0.0, 1.0
    for x, k in sorted(pairs, key=lambda pair: (-pair[0], pair[1])):
        total += weight * x * k
        weight *= 0.5
    pairs.sort(key=lambda pair: pair[1] % 3)
    return total + max(pairs)[0] ** 2 + pairs[0][0]


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_there_is_one_trace_for_all_lengths(backend: str) -> None:
    xs = np.sin(np.arange(100.0) * 7)
    f = wend.function(weighted)
    with wend.config(backend=backend):
        for size in (100, 40, 41, 100):
            assert f(xs[:size]) == pytest.approx(weighted(xs[:size]))
    assert f.trace_count <= 2


def test_gradients_go_to_the_items() -> None:
    check_grads(weighted, (np.sin(np.arange(70.0) * 7 + 0.3),), order=1)


def test_what_has_no_order_is_refused() -> None:
    def f(xs):
        pairs = []
        for k, x in enumerate(xs):
            pairs.append((x, k))
        return sorted(pairs, key=lambda pair: None)

    with pytest.raises(wend.WendError, match="ordered by"):
        wend.function(f)(np.ones(80))


USES = {
    "sort": lambda items, key: items.sort(key=key),
    "sorted": lambda items, key: sorted(items, key=key),
    "max": lambda items, key: max(items, key=key),
    "nsmallest": lambda items, key: heapq.nsmallest(2, items, key=key),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("change", ["variable", "list", "call"])
def test_keys_may_change_what_is_around_them(use: str, change: str) -> None:
    def fun(xs):
        items, count, seen = [], 0, []
        for k, x in enumerate(xs):
            if x > 0.0:
                items.append((x, 1.0 * k))

        def key(item):
            nonlocal count
            if change == "variable":
                count += 1
            elif change == "list":
                seen.append(item[1])
            else:
                print(item[1])
            return item[0] if count < 2 else -item[0]

        USES[use](items, key)
        return count, seen

    xs = np.array([3.0, -1.0, 2.0, 5.0])
    assert repr(_plain(wend.function(fun)(xs))) == repr(_plain(fun(xs)))


def _plain(result):
    count, seen = result
    return int(count), [float(x) for x in seen]
