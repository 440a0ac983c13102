"""Where Python needs a number: which argument to make static.

Integers that are passed may be part of the trace (D37), but not those that a signature declares.
"""

from __future__ import annotations

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.base.errors import ConcreteValueError

TABLE = [1.0, 2.0, 3.0, None]  # items of which no graph could read one


def refused(fun, *args):
    types = wend.tree.map(lambda x: wend.TensorSpec(np.shape(x), np.asarray(x).dtype), args)
    with pytest.raises(TypeError) as error:
        wend.function(fun).get_concrete_function(*types)
    assert str(error.value) != ""
    return str(error.value)


STATIC = "make n static: wend.function(static_argnames='n')."


@pytest.mark.parametrize(
    "fun",
    [
        lambda x, n: x * TABLE[n],
        lambda x, n: x * TABLE[n + 1],
        lambda x, n: x * TABLE[int(n) - 1],
        lambda x, n: x * len(TABLE[:n]),
        lambda x, n: x * len({n}),
        lambda x, n: x * len("a" * n),
        lambda x, n: [x for _ in wend.unroll(range(n))],
        lambda x, n: wnp.sum(x, axis=n),
    ],
)
def test_the_argument_is_named(fun):
    text = refused(fun, np.ones((3, 3)), np.int64(1))
    assert text.split("\n")[-1].endswith(STATIC)
    assert text.split("\n")[-1].startswith("  To fix it: ")
    static = wend.function(fun, static_argnames="n")
    static(np.ones((3, 3)), 1)


def test_a_loop_over_an_argument():
    def fun(x, n):
        for k in range(1, n):
            x = x * TABLE[k]
        return x

    _, cure, other = refused(fun, 1.0, np.int64(3)).split("\n")
    assert cure.endswith("use wend.fori_loop instead of range.")
    assert other == f"  Or let Python run the loop: {STATIC}"
    assert wend.function(fun, static_argnames="n")(1.0, 3) == 6.0


def test_inside_loops_and_branches():
    def fun(x, n):
        while x < 10.0:
            x = x + (TABLE[n] if x > 1 else 1.0)
        return x

    assert refused(fun, 1.0, np.int64(1)).endswith(STATIC)


def test_several_arguments():
    text = refused(lambda x, n, m: x * TABLE[n * m], 1.0, np.int64(1), np.int64(1))
    assert text.endswith("or make m and n static: wend.function(static_argnames=['m', 'n']).")


def test_a_part_of_an_argument():
    text = refused(lambda x, options: x * TABLE[options["n"]], 1.0, {"n": np.int64(1)})
    assert text.endswith("or pass options['n'] as an argument by itself, and make it static.")


def test_what_is_computed_from_arrays_cannot_be_static():
    positions = np.arange(3)
    for fun in (
        lambda x: TABLE[int(x[0])],
        lambda x: TABLE[wnp.argmax(x)],
        lambda x: TABLE[x.astype(int)[0]],
        lambda x: TABLE[positions[wnp.argmax(x)]],
    ):
        with pytest.raises(ConcreteValueError) as error:
            wend.function(fun).get_concrete_function(np.ones(3))
        assert "static" not in str(error.value)
    assert wend.function(lambda n: TABLE[positions[n]])(np.int64(1)) == TABLE[1]
    with pytest.raises(ConcreteValueError) as error:
        wend.fori_loop(0, 2, lambda i, c: c * TABLE[i], 1.0)
    assert "static" not in str(error.value)


def test_arrays_have_no_hash():
    assert refused(lambda x: {x: 1.0}, np.ones(2)) == "unhashable type: 'numpy.ndarray'"
    with wend.GradientTape() as tape:
        x = tape.watch(np.float64(1.0))
        with pytest.raises(TypeError, match="unhashable"):
            hash(x)
        with pytest.raises(TypeError, match="object is not iterable"):
            list(x)


def test_a_static_argument_that_is_traced():
    inner = wend.function(lambda x, n: x * TABLE[n], static_argnames="n")
    text = refused(lambda x, n: inner(x, n), 1.0, np.int64(1))
    assert text == (
        "argument n is static, but was given <traced i64[], argument n>.\n"
        "  To fix it: give it a concrete value, or leave it out of static_argnames."
    )
