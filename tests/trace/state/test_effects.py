"""`print` and `assert_`: in program order, once for each time that they run (D16)."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tests.helpers.graphs import check_graph, names, traced

import wend
import wend.numpy as wnp
from wend.base.errors import TypeMismatchError, WendError
from wend.ir import parse, to_text


def noisy(x):
    wend.print("in", x)
    y = wend.while_loop(
        lambda v: (wend.print("test", v), v < 8.0)[1],
        lambda v: (wend.print("body", v), v * v)[1],
        x,
    )
    wend.cond(
        x > 2.5,
        lambda: (wend.print("large"), 1)[1],
        lambda: (wend.print("small"), 1)[1],
    )
    wend.fori_loop(0, 2, lambda i, c: (wend.print("i", i), c)[1], ())
    wend.scan(lambda c, e: ((wend.print("row", e), c)[1], None), 0, np.array([7.0]))
    wend.print("out", y)
    return y


LINES = [
    "in 2.0",
    "test 2.0",
    "body 2.0",
    "test 4.0",
    "body 4.0",
    "test 16.0",
    "small",
    "i 0",
    "i 1",
    "row 7.0",
    "out 16.0",
]


def lines(capsys):
    return capsys.readouterr().out.splitlines()


def test_order(capsys):
    fun = wend.function(noisy)
    assert fun(2.0) == 16.0
    assert lines(capsys) == LINES
    assert fun(2.0) == 16.0
    assert lines(capsys) == LINES
    fun(3.0)
    assert "large" in lines(capsys)
    assert fun.trace_count == 1
    check_graph(fun.get_concrete_function(2.0).graph)


def test_a_gradient_prints_once(capsys):
    assert wend.grad(noisy)(2.0) == 32.0
    assert lines(capsys) == LINES
    value, pullback = wend.vjp(noisy, 2.0)
    assert lines(capsys) == LINES
    assert (value, pullback(1.0)) == (16.0, (32.0,))
    assert lines(capsys) == []
    assert wend.grad(wend.grad(noisy))(2.0) == 48.0
    assert lines(capsys) == LINES


def test_a_gradient_in_a_trace_prints_in_place(capsys):
    @wend.function
    def fun(x):
        wend.print("before")
        slope = wend.grad(noisy)(x)
        value, pullback = wend.vjp(noisy, x)
        wend.print("after", value)
        return slope + pullback(1.0)[0]

    assert fun(2.0) == 64.0
    assert lines(capsys) == ["before", *LINES, *LINES, "after 16.0"]


def test_an_unused_call_prints(capsys):
    inner = wend.function(noisy)

    @wend.function
    def fun(x):
        inner(x)
        inner(x)
        return x

    fun(2.0)
    assert lines(capsys) == LINES * 2


def test_a_loop_that_only_prints_is_kept(capsys):
    @wend.function
    def fun(n):
        wend.fori_loop(0, n, lambda i, c: (wend.print(i), c)[1], ())
        return 1.0

    fun(3)
    assert lines(capsys) == ["0", "1", "2"]
    fun(0)
    assert lines(capsys) == []


def test_formats(capsys):
    @wend.function
    def fun(x):
        wend.print("{}", x, "}{", sep="|")
        wend.print(x, x, format="{:.2f} and {}")
        wend.print("array", x, True, 3, None)
        return x

    fun(0.5)
    assert lines(capsys) == ["{}|0.5|}{", "0.50 and 0.5", "array 0.5 True 3 None"]
    wend.print("{}", 1.0, "}{")
    wend.print(1.0, format="{:.1f}")
    assert lines(capsys) == ["{} 1.0 }{", "1.0"]


def test_traced_values_in_containers(capsys):
    @wend.function
    def fun(x):
        wend.print({"a": x, "b": [x * 2.0, "{}", None]}, (x,))
        print([x], {"k": 1})
        return x

    fun(1.5)
    fun(2.5)
    assert lines(capsys) == [
        "{'a': 1.5, 'b': [3.0, '{}', None]} (1.5,)",
        "[1.5] {'k': 1}",
        "{'a': 2.5, 'b': [5.0, '{}', None]} (2.5,)",
        "[2.5] {'k': 1}",
    ]


V = wend.Variable([1.5, 2.0], name="v")


def shown(x, k):
    v = V
    print({"b": x, "a": k, "c": [v, "q", None]}, (x, k))
    print(v, [v], f"{v} {v!r} {[x]} {k!r}", v)
    wend.print([x, v], k)
    print("a " + str(x) + "|" + repr(k), str([x, k]), str(v), str(1) + "", str(b"a", "ascii"))
    wend.assert_(True, "{}", [x])


def test_containers_and_variables_are_written_as_python_writes_them(capsys):
    for x, k in ((np.arange(2.0), 2), (np.float32(1.0), np.int64(3)), (1, 2.5)):
        shown(x, k)
        plain = lines(capsys)
        wend.function(shown)(x, k)
        assert lines(capsys) == plain
        with wend.config(eager=True):
            wend.function(shown)(x, k)
        assert lines(capsys) == plain
    assert plain[0].startswith("{'b': 1, 'a': 2.5, 'c': [<Variable 'v': f64[2], [1.5 2. ]>, 'q'")


def test_an_array_among_what_is_printed_is_what_it_holds_then(capsys):
    a = np.zeros(2)
    fun = wend.function(lambda x: wend.print([a, x]))
    fun(1.0)
    a[0] = 5.0
    fun(2.0)
    assert lines(capsys) == ["[array([0., 0.]), 1.0]", "[array([5., 0.]), 2.0]"]


def test_two_tapes_around_it_print_once(capsys):
    @wend.function
    def fun(x):
        i = 0
        while i < 2:
            wend.print("trip", i)
            wend.assert_(x < 100.0)
            x = inner(x)
            i += 1
        return x

    @wend.function
    def inner(x):
        wend.cond(x > 3.0, lambda: wend.print("big"), lambda: None)
        return x * x

    with wend.GradientTape() as outer:
        x = outer.watch(2.0)
        with wend.GradientTape() as nested:
            z = nested.watch(x)
            y = fun(z)
        slope = nested.gradient(y, z)
    assert outer.gradient(slope, x) == 48.0
    assert lines(capsys) == ["trip 0", "trip 1", "big"]


def test_assertions():
    @wend.function
    def root(x):
        wend.assert_(x >= 0.0, "x is {}", x)
        return 1.0  # that nothing depends on x does not save it

    assert root(4.0) == 1.0
    with pytest.raises(AssertionError, match=r"x is -4\.0") as caught:
        root(-4.0)
    assert isinstance(caught.value, AssertionError)
    assert "test_effects.py" in caught.value.__notes__[0]
    assert root(4.0) == 1.0  # the next good call works


def test_assertion_at_once():
    wend.assert_(True)
    wend.assert_(np.bool_(True))
    with pytest.raises(AssertionError, match="no 3"):
        wend.assert_(False, "no {}", 3)
    with pytest.raises(AssertionError, match=r"assertion at test_effects\.py:\d+ failed"):
        wend.assert_(False)


def test_assertion_in_a_loop_stops_it(capsys):
    @wend.function
    def fun(n):
        def body(i, c):
            wend.print("trip", i)
            wend.assert_(i < 1, "i = {}", i)
            return c + 1

        return wend.fori_loop(0, n, body, 0)

    assert fun(1) == 1
    with pytest.raises(AssertionError, match="i = 1"):
        fun(5)
    assert lines(capsys) == ["trip 0", "trip 0", "trip 1"]


def test_pure_functions_have_no_token():
    def fun(x):
        return wend.fori_loop(0, 3, lambda i, v: wend.cond(v > 0.0, lambda: v, lambda: -v), x)

    assert "token" not in str(traced(fun, 1.0))
    assert names(traced(noisy, 2.0)).count("print") == 8


def formatted(x, n, a):
    print(f"x {x:.3f} {n!r:>12} {'lit'} {{}} {a} {len('abc'):03d}", end="|\n")
    for i in range(n):
        y = x * i
        said = f"{i}: {y:.{2}f}"
        print(said, "and", [y], {"k": y}, sep=" ~ ")
    wend.print(x, n, k=a, s="str", format="{:+.2f} {1:>5d} {k:.1f} {s!r} {{}}")
    wend.print(f"{x:.1f} {{", n)
    return x


def test_format_specs_and_f_strings(capsys):
    a = np.array([1.0, 2.5])
    wend.function(formatted)(2.0, np.int64(2), a)
    found = lines(capsys)
    assert found == [
        "x 2.000  np.int64(2) lit {} [1.  2.5] 003|",
        "0: 0.00 ~ and ~ [0.0] ~ {'k': 0.0}",
        "1: 2.00 ~ and ~ [2.0] ~ {'k': 2.0}",
        "+2.00     2 [1.0 2.5] 'str' {}",
        "2.0 { 2",
    ]
    wend.print(2.0, 2, k=a, s="str", format="{:+.2f} {1:>5d} {k:.1f} {s!r} {{}}")
    assert lines(capsys) == found[3:4]


def test_an_f_string_of_what_is_known_is_a_string():
    @wend.function
    def fun(x, name):
        found = {f"{name!s:>3}{1 + 1}": x}
        assert type(f"{name}") is str
        return found["  a2"]

    assert fun(3.0, "a") == 3.0


def test_f_strings_under_a_tape(capsys):
    @wend.function
    def outer(x):
        def host(z):
            print(f"z is {z:.1f}")
            seen.append(f"{z:.2f}")
            return z * z

        return wend.py_function(host, 0.0, x)

    seen = []
    assert wend.grad(outer)(3.0) == 6.0
    assert (seen, lines(capsys)) == (["3.00"], ["z is 3.0"])


def test_where_and_how_it_is_printed(capsys):
    import sys

    @wend.function
    def fun(x):
        print("a", x, end="", flush=True)
        print("b", x, sep="", end="!\n")
        print("c", x, file=sys.stderr)
        return x

    fun(1.0)
    found = capsys.readouterr()
    assert (found.out, found.err) == ("a 1.0b1.0!\n", "c 1.0\n")


def test_messages_carry_values():
    @wend.function
    def fun(x, n):
        assert x < 3, f"x is {x:.2f} of {n}"
        wend.assert_(x > -1, "{:.1f} {q}", x, q=n)
        wend.assert_(x > -2, f"again {x:.1f} {{")
        assert x != 0, {"x": x}
        assert x != 1
        assert x != 2, "{as it is}"
        return x

    expected = {
        3.5: "x is 3.50 of 7",
        -1.5: "-1.5 7",
        -5.0: "-5.0 7",
        0.0: "{'x': 0.0}",
        2.0: "{as it is}",
    }
    for x, message in expected.items():
        with pytest.raises(AssertionError) as caught:
            fun(x, 7)
        assert str(caught.value) == message
        assert "in assert at test_effects.py" in caught.value.__notes__[0]
    with pytest.raises(AssertionError) as caught:
        fun(1.0, 7)
    assert type(caught.value) is AssertionError
    assert caught.value.args == ()  # as in Python; the note has the line
    assert "in assert at test_effects.py" in caught.value.__notes__[0]
    assert fun(0.5, 7) == 0.5


def format_without_value():
    wend.function(lambda x: wend.print(x, n=1, format="{:.2f} of {m}"))(1.0)


def format_of_other_dtype():
    wend.function(lambda x: wend.print(x, format="{:d}"))(1.5)


def format_missing():
    wend.print(1.0, n=2)


def format_in_plain_code():
    wend.function(wend.do_not_capture(lambda x: f"{x:.2f}".upper()))(1.0)


MISTAKES = [
    format_without_value,
    format_of_other_dtype,
    format_missing,
    format_in_plain_code,
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_mistakes_in_formats(mistake, golden):
    with pytest.raises(WendError) as caught:
        mistake()
    text = re.sub(r"test_effects.py:\d+", "test_effects.py:LINE", str(caught.value))
    golden.check(f"errors/{mistake.__name__}.txt", f"{type(caught.value).__name__}: {text}")


class Refusal(Exception):
    """An error class of the user's."""


def raising(x, n):
    wend.raise_if(x < 0.0, ValueError, "math domain error")
    total = 0.0
    for i in range(n):
        if x > 5.0:
            wend.raise_if(i == 1, KeyError, "{{}} {}", wnp.stack([x, total]))
        wend.raise_if(total > 3.0, Refusal, "{:.1f} in trip {i}", total, i=i)
        total = total + x
    wend.raise_if(n > 8, np.linalg.LinAlgError, f"{n} is too much")
    return total


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("wrap", [wend.function, lambda fun, backend: wend.grad(fun)])
def test_raise_if(wrap, backend):
    fun = wrap(raising, backend=backend)
    cases = [
        ((-1.0, 3), ValueError, "math domain error"),
        ((2.0, 7), Refusal, "4.0 in trip 2"),
        ((6.0, 2), KeyError, "'{} [6. 6.]'"),
        ((0.1, 9), np.linalg.LinAlgError, "9 is too much"),
    ]
    with wend.config(backend=backend):
        for args, kind, message in cases:
            for _ in range(2):
                with pytest.raises(kind) as caught:
                    fun(*args)
                assert type(caught.value) is kind
                assert str(caught.value) == message
                assert caught.value.__notes__[0].startswith("raised at test_effects.py:")
                with pytest.raises(kind) as plain:
                    raising(*args)
                assert plain.value.args == caught.value.args
        assert fun(1.0, 0) == 0.0
        assert fun(1.0, 2) == 2.0


def test_raise_if_stands_between_the_effects_around_it(capsys):
    @wend.function
    def fun(x):
        wend.print("before")
        wend.raise_if(x > 1.0, Refusal, "in between")
        wend.print("after")
        return 1.0  # on which no check depends

    assert fun(0.0) == 1.0
    with pytest.raises(Refusal):
        fun(2.0)
    assert lines(capsys) == ["before", "after", "before"]


def test_raise_if_at_once_and_refused():
    wend.raise_if(False, ValueError, "never")
    stop = lambda x: wend.raise_if(x > 1, StopIteration)  # noqa: E731
    for fun in (stop, wend.function(stop), wend.function(stop, backend="numpy")):
        with pytest.raises(StopIteration) as caught:
            fun(2.0)
        assert caught.value.args == ()
    with pytest.raises(KeyError, match="3 of n"):
        wend.raise_if(np.True_, KeyError, "{} of {name}", 3, name="n")
    with pytest.raises(AssertionError, match="no error"):
        wend.assert_(False, "no {error}", error="error")
    with pytest.raises(TypeMismatchError, match="the error must be a class"):
        wend.raise_if(True, ValueError("x"), "x")
    with pytest.raises(TypeMismatchError, match="bool scalar"):
        wend.raise_if(1.0, ValueError, "x")
    with pytest.raises(TypeMismatchError, match="no value is given"):
        wend.function(lambda x: wend.raise_if(x > 1, ValueError, "{y}"))(1.0)


def test_a_check_is_text_and_a_class_of_the_users_an_entry_of_the_side_table():
    graph = traced(raising, 1.0, 2)
    table = []
    text = to_text(graph, table=table)
    assert "{error='ValueError', text='math domain error'}" in text
    assert "error='LinAlgError'" in text
    assert table == [Refusal]
    assert to_text(parse(text, table=table), table=table) == text


@pytest.mark.parametrize(
    "transform",
    [
        wend.grad,
        lambda fun: wend.grad(wend.grad(fun)),
        lambda fun: wend.jacfwd(wend.jacrev(fun)),
        lambda fun: wend.jacrev(wend.jacfwd(fun)),
    ],
)
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_derivatives_make_the_checks_of_the_function_once(transform, backend):
    called = wend.function(lambda x: (wend.assert_(x > 0.0, "called"), wnp.sin(x))[1])

    def fun(x):
        y = x
        while y < 4.0:
            assert y > 0.5, "small"
            y = y * x
        if x > 3.0:
            wend.raise_if(x > 6.0, ValueError, "large")
            y = y + called(x - 4.0)
        return y * y

    derivative = wend.function(transform(fun), backend=backend)
    for x, kind, message in (
        *((0.1, AssertionError, "small"), (7.0, ValueError, "large")),
        *((3.5, AssertionError, "called"), (0.1, AssertionError, "small")),
    ):
        with pytest.raises(kind) as caught:
            derivative(x)
        assert str(caught.value) == message
    assert np.isfinite(derivative(1.5))
    graph = derivative.get_concrete_function(1.5).graph
    assert names(graph).count("raise_if") == 3
