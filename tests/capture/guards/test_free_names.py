"""Which values from outside the code of a function mentions."""

from __future__ import annotations

from wend.capture.guards.free_names import Path, free_paths

A = B = C = D = None


def of_globals(x):
    y = A
    y = B.rate + C.inner.rate[0] + x.rate
    for A_local in (1, 2):
        y = y + A_local
    return len(str(y))


def paths(fun, kind):
    return {".".join((p.root, *p.attributes)) for p in free_paths(fun.__code__) if p.kind == kind}


def test_globals_and_their_attributes():
    assert paths(of_globals, "global") == {"A", "B.rate", "C.inner.rate", "len", "str"}
    assert paths(of_globals, "parameter") == {"x.rate"}


def test_closures():
    rate = 1.0
    options = None

    def fun(x):
        return x * rate + options.shift

    assert paths(fun, "closure") == {"rate", "options.shift"}


def test_functions_inside():
    outer = 1.0

    def fun(x, options):
        inside = 3.0

        def inner(y):
            return [y * k * outer * inside * D * options.k for k in range(3)]

        return inner(x)

    assert paths(fun, "closure") == {"outer"}
    assert paths(fun, "global") == {"D", "range"}
    assert paths(fun, "parameter") == {"x", "options.k"}


def test_a_parameter_that_is_bound_anew_is_not_followed():
    def fun(x, options):
        options = options or A
        return options.rate * x

    assert "options.rate" not in paths(fun, "parameter")

    def changed_inside(options):
        def inner():
            nonlocal options
            options = None

        inner()
        return options.rate

    assert paths(changed_inside, "parameter") == set()


def test_two_at_once():
    def fun(a, b):
        return a.one + b.two * (a, b.three)[0]

    assert paths(fun, "parameter") == {"a.one", "b.two", "a", "b.three"}


def test_it_is_known_once():
    assert free_paths(of_globals.__code__) is free_paths(of_globals.__code__)
    assert Path("global", "A", ()) in free_paths(of_globals.__code__)
