"""What captured code prints and writes, at every call and in program order."""

from __future__ import annotations

import contextlib
import io
import pprint
import sys
import warnings

import numpy as np
import pytest
from tests.helpers.shown import STREAM, check_refused, check_same

import wend


def constants(x):
    print("start", 1, [1, 2])
    print(x)
    print("end")
    return x


def constants_alone(x):
    print("start")
    return x


def one_arm(x):
    if x > 1:
        print("large")
    else:
        print("small", x)
    return x


def trips(x):
    i = 0
    while i < x:
        print("trip", end=";")
        i += 1
    print()
    return i


def no_trips(x):
    while x > 100:
        print("never")
        x = x - 1
    for i in range(2):
        print("i", i)
    return x


def nested(x):
    for i in range(3):
        if x > i:
            print("more", i)
            if x > 2:
                print("deep")
        else:
            print("less", i, x)
    return x


def in_try(x):
    try:
        print("a")
        if x > 2:
            print("b")
    finally:
        print("finally")
    return x


def indirect(x, show=print):
    def helper(y, *, tag="t"):
        print(tag, y)
        return y

    alias = print
    alias("alias")
    show("default", x)
    list(map(print, [x, 1]))
    (lambda v: print("lambda", v))(x)
    return helper(x) + helper(2.0, tag="u")


def options(x):
    print(1, x, sep=None, end=None)
    print(x, "k", sep="-", end="!", file=STREAM, flush=True)
    print(1, 2, sep=f"{x}", end=f"{x}\n")
    print()
    print("")
    print(end="-")
    print(x, flush=True)
    print("{}", x, "{0} {x}", {"{": x}, f"{{}} {x}")
    return x if print("none") is None else 0.0


def streams(x):
    STREAM.write(f"{x}|")
    STREAM.write("k")
    STREAM.writelines([f"{x}\n", "b\n"])
    STREAM.flush()
    sys.stdout.write(f"{x}\n")
    count = sys.stdout.write("abc\n")
    sys.stdout.flush()
    print("to stdout", x, file=sys.stdout)
    return x + count


def own_buffer(x):
    buffer = io.StringIO()
    buffer.write("abc")
    print("d", file=buffer)
    return x + len(buffer.getvalue())


def pretty(x):
    pprint.pprint({"a": [1, 2]})
    return x


def silenced(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = np.log(x)
        print("inside", y)
    return y


@pytest.mark.parametrize(
    "program",
    [
        *(constants, constants_alone, one_arm, trips, no_trips, nested, in_try, indirect, options),
        *(streams, own_buffer, pretty, silenced),
    ],
    ids=lambda program: program.__name__,
)
def test_every_call_prints_as_python(program):
    check_same(program)


def test_a_gradient_prints_once(capsys):
    def fun(x):
        print("f", x)
        print("constant")
        return x * x

    assert wend.grad(fun)(3.0) == 6.0
    assert capsys.readouterr().out == "f 3.0\nconstant\n"


def test_standard_streams_are_those_of_the_run(capsys):
    @wend.function
    def fun(x):
        print("err", x, file=sys.stderr)
        sys.stderr.write("e\n")
        print("out", file=sys.stdout)

    fun(1.0)
    assert capsys.readouterr() == ("out\n", "err 1.0\ne\n")
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        fun(2.0)
    assert (out.getvalue(), err.getvalue()) == ("out\n", "err 2.0\ne\n")


def redirected(x):
    with contextlib.redirect_stdout(io.StringIO()):
        print("a")


def with_options(x):
    with np.printoptions(precision=2):
        print(x)


def text_in_own_buffer(x):
    buffer = io.StringIO()
    buffer.write(f"{x}")
    return len(buffer.getvalue())


def printed_in_own_buffer(x):
    print(x, file=io.StringIO())


REFUSED = {
    redirected: "print at .* stands in `with redirect_stdout",
    with_options: "print at .* stands in `with printoptions",
    text_in_own_buffer: "the text '<traced",
    printed_in_own_buffer: "the text '<traced",
}


@pytest.mark.parametrize("program", REFUSED, ids=lambda program: program.__name__)
def test_refusals(program):
    check_refused(program, REFUSED[program])


def test_the_length_of_a_text_is_refused():
    check_refused(lambda x: x + STREAM.write(f"{x}"), r"what write\(\) returned is used")
    check_refused(lambda x: pprint.pprint([x]), "the text ")
