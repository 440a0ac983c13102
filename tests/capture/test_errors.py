"""What is refused says what, where and what to write instead, over the user's own lines."""

from __future__ import annotations

import functools
import statistics
import traceback

import numpy as np
import pytest

import wend

pytestmark = pytest.mark.usefixtures("integers_stay_traced")


def line_of(fun, offset: int) -> str:
    return f"test_errors.py:{fun.__code__.co_firstlineno + offset}"


def message_of(fun, *args) -> str:
    with pytest.raises(Exception) as caught:
        wend.function(fun)(*args)
    return str(caught.value)


def refusal_of(fun, *args) -> str:
    """Return the message of what traces for all paths refuse; a call may have one for its own."""
    with pytest.raises(Exception) as caught:
        wend.function(fun).get_concrete_function(*args)
    return str(caught.value)


def test_rank_changes_in_a_loop() -> None:
    def f(x):
        while x.sum() < 3:
            x = np.stack([x, x])
        return x

    assert message_of(f, np.ones(2)) == (
        f"while at {line_of(f, 1)}: `x` enters the loop as f64[2], "
        "an iteration leaves it as f64[2,2].\n"
        "  To fix it: let it have the same shape before the loop and after each iteration; "
        "collect what grows in a list."
    )


def test_dtype_changes_in_a_loop() -> None:
    def f(x):
        n = np.int8(0)
        while x < 3:
            x, n = x + 1, np.int16(n) if n.dtype == np.int8 else np.int8(n)
        return n

    assert message_of(f, 1.0) == (
        f"while at {line_of(f, 2)}: `n` enters the loop as i8[], "
        "an iteration leaves it as i16[].\n"
        "  To fix it: start it as int16, or cast it back in the loop with .astype('int8')."
    )


def test_kind_changes_in_a_loop() -> None:
    def f(x):
        s = "a"
        while x < 3:
            x = x + 1
            s = s + "b"
        return x

    assert message_of(f, 1.0) == (
        f"a text at {line_of(f, 2)} is one of more than 32, as one that is longer in each trip of "
        "a loop.\n  To fix it: append its parts to a list, and join them after the call."
    )


def test_structure_changes_in_a_loop() -> None:
    def f(x):
        d = {"a": x}
        while x < 3:
            x = x + 1
            d = {"b": x}
        return d

    message = message_of(f, 1.0)
    assert message.startswith(f"while at {line_of(f, 2)}: `d` changes its structure in the loop.")


def test_shapes_of_branches_differ() -> None:
    def f(x):
        if x > 1:
            y = np.zeros(3)
        else:
            y = np.zeros(2)
        return y

    assert refusal_of(f, 1.0) == (
        f"if at {line_of(f, 1)}: the branches return different types: "
        "`y` is f64[2] from the else path and f64[3] from the if path.\n"
        "  To fix it: return the same dtype and shape from every branch."
    )


def test_values_of_branches_are_no_arrays() -> None:
    def f(x):
        return len("a" if x > 1 else "b") + x

    assert refusal_of(f, 1.0) == (
        f"if at {line_of(f, 1)}: the value is 'a' if the test holds, else 'b'.\n"
        "  To fix it: number the texts, and print them by a tuple: LOW, HIGH = 0, 1."
    )


def test_bound_in_one_branch() -> None:
    def f(x):
        if x > 1:
            y = "large"
        return x * len(y)

    assert wend.function(f)(2.0) == f(2.0)
    with pytest.raises(UnboundLocalError) as of_python:
        f(1.0)
    with pytest.raises(UnboundLocalError) as caught:
        wend.function(f)(1.0)
    assert str(caught.value) == str(of_python.value)


def test_bound_by_a_walrus_that_may_be_skipped() -> None:
    def f(x):
        z = x > 1 and (y := x * 2) > 3
        return z, y

    assert message_of(f, 1.0) == (
        f"`y` is read, but it is bound only on one path of the and at {line_of(f, 1)}.\n"
        "  To fix it: give `y` a value before it."
    )


def test_walrus_in_a_comprehension() -> None:
    def f(x):
        return [(x > k and (y := k)) for k in range(3)], y

    assert message_of(f, 1.0) == (
        f"`:=` at {line_of(f, 1)} stands in a comprehension or lambda, where a traced value "
        "decides whether it runs.\n"
        "  To fix it: write the comprehension as a `for` loop, the lambda as a `def`; or bind "
        "the name before it."
    )


def test_bound_in_a_loop() -> None:
    def f(x):
        while x < 3:
            x = x + 1
            y = "small"
        return x * len(y)

    assert message_of(f, 1.0) == (
        f"`y` is read, but it is bound only inside the while at {line_of(f, 1)}.\n"
        "  To fix it: give `y` a value before the loop."
    )
    with pytest.raises(NameError):
        wend.function(f)(1.0)


def test_deleted_carry() -> None:
    def f(x):
        t = x
        while x < 3:
            x = x + t
            del t
        return x

    assert message_of(f, 1.0) == (
        f"while at {line_of(f, 2)}: `t` is deleted in the loop, "
        "but the next iteration may read it.\n"
        "  To fix it: leave out `del t`, or give it a value again."
    )


def test_recursion_on_traced_values() -> None:
    def factorial(n):
        if n <= 1:
            return 1
        return n * factorial(n - 1)

    assert refusal_of(factorial, np.int64(3)) == (
        "`factorial` calls itself endlessly while it is recorded.\n"
        "  both sides of a branch on a traced value are recorded, including the recursive one.\n"
        "  To fix it: write it as a loop, with a list of the calls that remain where it calls "
        "itself twice; or let the test that ends it depend on Python ints (static_argnums)."
    )
    assert wend.function(factorial, static_argnums=0)(5) == 120


def test_raise_in_a_branch_with_a_handler_of_a_computed_class() -> None:
    def f(x, errors=(ValueError, KeyError)):
        try:
            if x > 0:
                raise ValueError("no")
        except errors[0]:
            x = x + 1
        return x

    assert message_of(f, 1.0) == (
        f"`raise` at {line_of(f, 3)} of ValueError would be caught by `except` at "
        f"{line_of(f, 4)}, but its class is computed.\n"
        "  To fix it: test for the case with `if` in place of the handler; or put the handler "
        "around the call of the traced function."
    )


def test_except_around_a_branch() -> None:
    def f(x):
        try:
            if x > 0:
                x = {}["a"]
        except KeyError:
            x = x + 1
        return x

    assert refusal_of(f, 1.0) == (
        "KeyError: 'a'\n"
        f"  raised at {line_of(f, 3)} while the if at {line_of(f, 2)} is recorded; a run may not "
        "get there.\n"
        "  To fix it: mend it; put a `try` for it inside; or test for the case by what Python "
        "knows: `if key in d:`, `if len(a) > 5:`."
    )


def test_async_and_generators() -> None:
    async def later(x):
        return x

    def each(x):
        yield x

    assert message_of(later, 1.0) == (
        "`later` is an async function.\n"
        "  To fix it: wend.function takes plain functions; await around the call, not in it."
    )
    assert message_of(wend.grad(each), 1.0) == (
        "`each` is a generator function: it has `yield`.\n"
        "  To fix it: collect the values in a list (out.append(x)) and return them."
    )


def test_a_traceback_shows_the_users_lines() -> None:
    def inner(y):
        return {}["missing"] + y

    def outer(x):
        for _ in range(3):
            if x > 0:
                x = inner(x)
        return x

    with pytest.raises(KeyError) as caught:
        wend.function(outer)(1.0)
    frames = traceback.extract_tb(caught.value.__traceback__)
    own = [frame for frame in frames if "/src/wend/" in frame.filename]
    assert own == []
    assert [frame.name for frame in frames[-2:]] == ["outer", "inner"]
    assert frames[-2].lineno == outer.__code__.co_firstlineno + 3
    assert frames[-1].lineno == inner.__code__.co_firstlineno + 1
    assert len(frames) == 3


def test_source_and_do_not_capture() -> None:
    @wend.do_not_capture
    def left_alone(x):
        return 1 if x > 1 else 2

    def f(x):
        while x < 3:
            x = x + 1
        return x

    assert "while_" in wend.source(f)
    assert "while_" in wend.source(wend.function(f))
    with pytest.raises(TypeError, match="the truth value of"):
        wend.function(left_alone)(1.0)


def test_unroll() -> None:
    def f(x):
        for i in wend.unroll(range(3)):
            x = x * (i + 1)
        return x

    captured = wend.function(f)
    assert captured(2.0) == 12.0
    assert "while" not in str(captured.get_concrete_function(2.0).graph)


def test_a_ragged_runge_kutta_unrolls() -> None:
    A = [[], [0.5], [0.0, 0.5], [0.0, 0.0, 1.0]]
    b = [1 / 6, 1 / 3, 1 / 3, 1 / 6]
    s = len(b)

    def step(f, y, h):
        k = []
        for i in range(s):
            k.append(f(y + h * sum(A[i][j] * k[j] for j in range(i))))
        return y + h * sum(b[i] * k[i] for i in range(s))

    def solve(y):
        t = 0.0
        while t < 1.0:
            y = step(lambda v: -v, y, 0.1)
            t = t + 0.1
        return y

    captured = wend.function(solve)
    assert captured(1.0) == pytest.approx(solve(1.0), rel=1e-14)
    assert str(captured.get_concrete_function(1.0).graph).count("while(") == 1
    assert wend.grad(solve)(1.0) == pytest.approx(solve(1.0), rel=1e-12)


def test_loops_of_issue_two() -> None:
    def t40(x):
        s = 0
        for i in range(20):
            if i % 2 == 0:
                continue
            if i > 7:
                break
            s = s + i
        return s + 0 * x

    def collatz(n):
        steps = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps

    captured = wend.function(t40)
    assert (captured(1), captured.trace_count) == (16, 1)
    assert wend.function(collatz)(27) == 111


def test_a_list_that_grows_on_one_path() -> None:
    def f(n):
        out = []
        if n > 1:
            for i in range(n):
                out.append(i * 1.0)
            return out
        return [1.0]

    assert refusal_of(f, np.int64(3)) == (
        f"if at {line_of(f, 2)}: `what it returns` is a list that grows in a loop on one path.\n"
        "  what it returns: a TensorList against a list\n"
        "  To fix it: make it an array on both paths: wnp.stack(out)."
    )


def test_a_list_that_grows_in_a_functional_loop() -> None:
    def f(n):
        out = []
        for i in range(n):
            out.append(i * 1.0)
        return wend.while_loop(lambda v: False, lambda v: v, out)

    assert message_of(f, np.int64(3)) == (
        f"while_loop at {line_of(f, 4)}: carry is a list that grows in a loop or branch.\n"
        "  To fix it: pass an array of its items: wnp.stack(out)."
    )


@pytest.mark.parametrize(
    ("use", "says"),
    [
        (lambda out: out.__setitem__(slice(1, 2), [0.0]), "cannot be assigned to by slices"),
        (lambda out: out * 2, "cannot be added to"),
        (lambda out: list(out), "iteration of"),
    ],
)
def test_what_a_list_that_grows_cannot_do(use, says) -> None:
    def f(n, x):
        x[0] = 1.0  # a change is not made again for the value of n
        out = []
        for i in range(n):
            out.append(i * 1.0)
        return use(out)

    message = message_of(f, np.int64(3), np.zeros(2))
    assert says in message
    assert "To fix it: " in message


def test_a_list_that_grows_has_no_items_that_grow() -> None:
    def f(n, x):
        x[0] = 1.0  # a change is not made again for the value of n
        rows = []
        for i in range(n):
            row = []
            for j in range(n):
                row.append(i * j * 1.0)
            rows.append(row)
        return rows[0][0]

    message = message_of(f, np.int64(3), np.zeros(2))
    assert "the items of a list that grows" in message
    assert "To fix it: append arrays" in message


def test_other_names_of_a_list_that_grows() -> None:
    def same(n, x):
        x[0] = 1.0
        out = []
        kept = out
        for i in range(n):
            out.append(i * 1.0)
        return np.stack(kept)

    def inside(n, x):
        x[0] = 1.0
        out = []
        kept = {"out": out}
        for i in range(n):
            out.append(i * 1.0)
        return np.stack(kept["out"])

    def fill(into, n):
        for i in range(n):
            into.append(i * 1.0)

    def callers(n, x):
        x[0] = 1.0
        out = []
        fill(out, n)
        return np.stack(out)

    start = "append in the function that makes the list, and keep one name for it"
    assert message_of(same, np.int64(3), np.zeros(2)) == (
        f"for at {line_of(same, 4)}: `kept` of same is the same list as `out`, "
        "which grows there.\n"
        f"  To fix it: {start}; or make kept a copy, list(out)."
    )
    assert message_of(inside, np.int64(3), np.zeros(2)) == (
        f"for at {line_of(inside, 4)}: `kept` of inside holds the list `out`, which grows there.\n"
        f"  To fix it: {start}."
    )
    assert message_of(callers, np.int64(3), np.zeros(2)) == (
        f"for at {line_of(fill, 1)}: `out` of callers is the same list as `into`, "
        "which grows there.\n"
        f"  To fix it: {start}; or make out a copy, list(into)."
    )


class Scaled:
    """A class of a user, with operators that decide."""

    def __init__(self, v):
        self.v = v

    def __hash__(self):
        return 1 if self.v > 0 else 2

    def __enter__(self):
        self.kept = self.v if self.v > 1 else 0.0
        return self.kept

    def __exit__(self, *raised):
        if self.v > 1:
            self.kept = 9.0

    @property
    def double(self):
        return self.v * 2 if self.v > 1 else self.v

    @property
    def quadruple(self):
        return self.double * 2


def test_properties_and_context_managers_are_captured() -> None:
    def f(x):
        scaled = Scaled(x)
        with scaled as k:
            y = k + scaled.quadruple
        return y, scaled.kept

    for x in (0.5, 3.0):
        assert wend.function(f)(x) == f(x)


def first_positive(values):
    for v in values:
        if v > 0:
            yield v


def sign(v):
    return 1 if v > 0 else -1


def sign_of_first(v, other):
    return 1 if v > 0 else -1


@wend.do_not_capture
def left_alone(v):
    return 1 if v > 0 else -1


@pytest.mark.parametrize(
    ("fun", "code", "says", "cure"),
    [
        (
            lambda x: len({Scaled(x)}) * x,
            Scaled.__hash__,
            "is called by an operator or by library code, not by a call in captured code",
            "call it there by name, as a function or method.",
        ),
        (
            lambda x: (
                functools.cmp_to_key(sign_of_first)(x) < functools.cmp_to_key(sign_of_first)(x)
            ),
            sign_of_first,
            "is called by an operator or by library code, not by a call in captured code",
            "call it there by name, as a function or method.",
        ),
        (
            lambda x: sum(first_positive([x, x + 1])),
            first_positive,
            "is a generator, which is run piece by piece",
            "collect the values in a list (out.append(x)) and return them.",
        ),
        (
            lambda x: left_alone(x),
            left_alone,
            "is marked with @wend.do_not_capture",
            "remove the decorator, or use wend.cond, wend.while_loop or wnp.where in it.",
        ),
    ],
)
def test_what_runs_as_plain_python(fun, code, says, cure) -> None:
    where = f"`{code.__qualname__}` at test_errors.py:{code.__code__.co_firstlineno}"
    first, second, third = message_of(fun, 1.0).split("\n")
    assert first.startswith("the truth value of <traced bool[], gt at test_errors.py:")
    assert second == f"  {where} runs as plain Python: it {says}."
    assert third == f"  To fix it: {cure}"


def test_library_code_runs_as_plain_python() -> None:
    def f(x):
        return statistics.NormalDist(0.0, x)

    message = message_of(f, 1.0)
    assert "runs as plain Python: it is library code." in message
    assert message.endswith(
        "To fix it: use functions of wend.numpy in its place, or write it out in your own code."
    )


def test_a_function_without_source() -> None:
    variables = {}
    exec("def f(x): return 1 if x > 0 else 2", variables)
    message = message_of(variables["f"], 1.0)
    assert (
        "`f` at <string>:1 runs as plain Python: it has no source text: it comes from <" in message
    )


def test_a_traced_filter_of_a_comprehension() -> None:
    def f(x):
        return len({k: k for k in range(3) if k < x})

    lines = refusal_of(f, 1.0).split("\n")
    assert lines[0].startswith(f"the filter of a comprehension at {line_of(f, 1)} is <traced bool")
    assert lines[1] == "  To fix it: write it as a `for` loop that appends to a list."


def test_static_arguments_of_any_number() -> None:
    def f(a, *rest, **options):
        return [a, len(rest) and rest[0] == "s", options.get("k")]

    captured = wend.function(f, static_argnums=1, static_argnames="options")
    assert captured(1.0, "s", 2, k=3) == [1.0, True, 3]
    assert captured(1.0) == [1.0, 0, None]
    assert captured.trace_count == 2
