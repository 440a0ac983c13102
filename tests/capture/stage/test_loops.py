"""List comprehensions whose filters are traced are recorded as loops that append."""

from __future__ import annotations

import numpy as np
import pytest

import wend
from wend.base.errors import ConcreteValueError, StructureError
from wend.capture.stage.loops import StagingAttempt

XS = np.array([0.3, -1.2, 2.5, 0.7, 1.9, -0.4, 0.8, 1.1])


def large(xs, limit):
    return [x for x in xs if x > limit]


def positions(xs, limit):
    return [k for k in range(len(xs)) if xs[k] > limit], [k for k, x in enumerate(xs) if x > limit]


def reduced(xs, limit):
    return (
        sum(2.0 * x for x in xs if x > limit),
        sum(1 for x in xs if x > limit),
        min((x for x in xs if x > limit), default=-1.0),
        max((x for x in xs if x > limit), default=-1.0),
        sorted(x for x in xs if x > limit),
        list(x for x in xs if x > limit),  # noqa: C400
    )


def in_a_loop(xs, limit):
    total = 0.0
    for k in range(3):
        chosen = [x * k for x in xs if x > limit + k]
        if chosen:
            total += max(chosen)
    return total


def nested(xs, limit):
    table = np.outer(xs, xs)
    return [
        (i, j) for i in range(8) for j in range(i) if table[i, j] > limit if (i + j) % 2 == 0
    ], [x for row in table for x in row if x > limit]


def as_a_key(xs, limit):
    chosen = [k for k, x in enumerate(xs) if x > limit]
    table = np.zeros((2, 8))
    table[:, chosen] = 1.0
    table[1, chosen] += 2.0
    return xs[chosen], table


def means(xs, limit):
    centres = np.array([0.0, 2.0])
    for _ in range(5):
        labels = [np.argmin(np.abs(centres - x)) for x in xs]
        for j in range(2):
            members = [x for x, label in zip(xs, labels, strict=False) if label == j]
            if len(members) > 0:
                centres[j] = np.mean(members)
    return centres + limit


def with_effects(xs, limit):
    seen = []

    def is_large(x):
        seen.append(x)
        print("seen", len(seen))
        return x > limit

    return [x for x in xs if is_large(x)], len(seen)


def with_draws(xs, limit):
    rng = np.random.default_rng(2)
    return [x for x in xs if x + rng.normal() > limit], rng.normal()


def of_a_short_list(xs, limit):
    named = [("a", xs[0]), ("b", xs[1]), ("c", xs[2])]
    return [name for name, x in named if x > limit], [np.ones(k) for k in (1, 2) if xs[k] > limit]


def of_an_iterator(xs, limit):
    numbers = iter([1.0, 2.0, 3.0])
    return [x for x in numbers if x > limit], list(numbers)


def quicksort(xs, limit):
    def ordered(items):
        if len(items) <= 1:
            return items
        pivot, *others = items
        low, high = [x for x in others if x < pivot], [x for x in others if x >= pivot]
        return [*ordered(low), pivot, *ordered(high)]

    return ordered([xs[0], xs[1], limit])


@pytest.mark.sampled(4)
@pytest.mark.parametrize("limit", [0.5, 9.0])
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize(
    "fun",
    [
        *(large, positions, reduced, in_a_loop, nested, as_a_key, means, with_effects),
        *(with_draws, of_a_short_list, of_an_iterator, quicksort),
    ],
)
def test_it_does_what_python_does(fun, backend, limit, capsys) -> None:
    expected, printed = fun(XS.copy(), limit), capsys.readouterr()
    found = wend.function(fun, backend=backend)(XS.copy(), limit)
    assert capsys.readouterr() == printed
    expected_leaves, found_leaves = wend.tree.leaves(expected), wend.tree.leaves(found)
    assert len(expected_leaves) == len(found_leaves)
    for one, other in zip(expected_leaves, found_leaves, strict=True):
        if isinstance(one, str):
            assert one == other
        else:
            np.testing.assert_allclose(one, other, rtol=1e-12)


def test_one_trace_serves_all_outcomes() -> None:
    compiled = wend.function(lambda xs, limit: sum(x for x in xs if x > limit))
    for limit in (0.5, 9.0, -3.0, 1.5):
        expected = sum(x for x in XS if x > limit)
        assert compiled(XS, limit) == pytest.approx(expected)
    assert compiled.trace_count == 1


def test_the_gradient_is_that_of_the_items_let_through() -> None:
    slope = wend.grad(lambda xs: sum(x * x for x in xs if x > 0.75))(XS)
    np.testing.assert_allclose(slope, np.where(XS > 0.75, 2 * XS, 0.0))


def test_the_least_of_no_items_is_pythons_error() -> None:
    compiled = wend.function(lambda xs, limit: min(x for x in xs if x > limit))
    with pytest.raises(ValueError) as expected:
        min([])
    with pytest.raises(ValueError, match=str(expected.value).split("(")[0]):
        compiled(XS, 9.0)


def test_a_known_filter_leaves_a_list_of_known_length() -> None:
    def known(xs):
        rows = [xs[:k] for k in range(4) if k != 2]
        return np.concatenate(rows), len(rows)

    values, count = wend.function(known)(XS)
    assert values.tolist() == [0.3, 0.3, -1.2, 2.5]
    assert count == 3


def test_an_enumerate_that_is_named_is_not_taken_twice() -> None:
    @wend.function
    def taken(xs, limit):
        numbered = enumerate(xs)
        return [x for k, x in numbered if x > limit], len(list(numbered))

    with pytest.raises(StructureError, match="gives its items once"):
        taken(XS, 0.5)


def test_python_runs_at_most_64_trips_of_a_loop_that_is_not_recorded() -> None:
    def unlike(x, n):
        rows = [np.ones(k + 1) for k in range(n)]
        for i in wend.unroll(range(n)) if n == 66 else range(n):
            x = x + rows[i].sum()
        return x

    function = wend.function(unlike, static_argnames="n")
    assert function(1.0, 64) == 1.0 + 64 * 65 / 2
    assert function(1.0, 66) == 1.0 + 66 * 67 / 2  # the cure
    with pytest.raises(ConcreteValueError) as caught:
        function(1.0, 65)
    assert "test_loops.py:" in str(caught.value)
    assert any("the loop has 65 trips; wend.unroll(" in note for note in caught.value.__notes__)


def test_copies_of_a_body_end_where_they_recorded_too_much(monkeypatch) -> None:
    trips = []

    def counted(self):
        trips.append(1)
        check(self)

    check = StagingAttempt.check_copies
    monkeypatch.setattr(StagingAttempt, "check_copies", counted)

    def cube(x, n):
        rows = [np.ones(k + 1) for k in range(n)]
        for i in range(n):
            for j in range(n):
                for k in range(n):
                    x = x * 0.5 + rows[i].sum() * rows[j].sum() - rows[k].sum()
        return x

    function = wend.function(cube, static_argnames="n", backend="numpy")
    assert function(1.0, 6) == cube(1.0, 6)
    del trips[:]
    with pytest.raises(ConcreteValueError) as caught:
        function(1.0, 60)
    assert "test_loops.py:" in str(caught.value)
    assert any("have recorded 10,000 operations; wend.unroll(" in x for x in caught.value.__notes__)
    assert len(trips) < 30_000  # of 216,000, and those of attempts to record the loops
