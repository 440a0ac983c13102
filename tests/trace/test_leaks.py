"""A traced value that leaves its trace by any door is refused where it is used, by its origin."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.base.errors import LeakedValueError

ref = SimpleNamespace()


@wend.do_not_capture
def keep(value):
    ref.value = value


@wend.function
def leaking(x):
    keep(x * 2.0)
    return x


@pytest.fixture
def leaked():
    """A value of a finished trace, kept in an attribute."""
    wend.function(leaking.python_function)(np.ones(3))
    return ref.value


def tape_computes(value):
    with wend.GradientTape() as tape:
        return tape.watch(np.ones(3)) * value


def tape_watches(value):
    with wend.GradientTape() as tape:
        tape.watch(value)


def tape_gives_gradient(value):
    with wend.GradientTape() as tape:
        x = tape.watch(np.ones(3))
    return tape.gradient(value, x)


def loop_of_another_function(value):
    @wend.function
    def another(x):
        for _ in range(3):
            x = x + value
        return x

    return another(np.ones(3))


def branch_of_another_function(value):
    @wend.function
    def another(x):
        return x + value if x[0] > 0 else x

    return another(np.ones(3))


def argument_in_another_function(value):
    inner = wend.function(lambda y: y)
    return wend.function(lambda z: inner(value) + z)(np.ones(3))


def assigned_in_another_function(value):
    v = wend.Variable(np.zeros(3))
    return wend.function(lambda: v.assign(value).value)()


USES = {
    "operator": lambda x: x + 1,
    "reflected": lambda x: np.ones(3) + x,
    "comparison": lambda x: x == 1,
    "ufunc": np.sin,
    "array function": np.linalg.norm,
    "wend function": wnp.sum,
    "item": lambda x: x[0],
    "write": lambda x: x.__setitem__(0, 1.0),
    "in place": lambda x: x.__iadd__(1.0),
    "iteration": list,
    "truth": bool,
    "float": float,
    "int": int,
    "index": lambda x: [1, 2][x],
    "array": np.asarray,
    "item method": lambda x: x.item(0),
    "list method": lambda x: x.tolist(),
    "argument": lambda x: wend.function(lambda y: y)(x),
    "argument of concrete": lambda x: leaking.get_concrete_function(np.ones(3))(x),
    "result": lambda x: wend.function(lambda: x)(),
    "closure": lambda x: wend.function(lambda y: y + x)(np.ones(3)),
    "loop": loop_of_another_function,
    "branch": branch_of_another_function,
    "argument in a trace": argument_in_another_function,
    "loop start": lambda x: wend.while_loop(lambda c: False, lambda c: c, x),
    "loop closure": lambda x: wend.fori_loop(0, 3, lambda i, c: c + x, np.ones(3)),
    "predicate": lambda x: wend.cond(x[0] > 0, lambda: 1.0, lambda: 2.0),
    "variable": lambda x: wend.Variable(np.zeros(3)).assign(x),
    "new variable": wend.Variable,
    "variable in a trace": assigned_in_another_function,
    "grad": wend.grad(lambda x: wnp.sum(x)),
    "vjp": lambda x: wend.vjp(lambda y: y, x),
    "cotangent": lambda x: wend.vjp(lambda y: y, np.ones(3))[1](x),
    "jvp": lambda x: wend.jvp(lambda y: y, (np.ones(3),), (x,)),
    "under a tape": tape_computes,
    "watched": tape_watches,
    "target": tape_gives_gradient,
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_every_use_is_refused(use, leaked):
    with pytest.raises(LeakedValueError) as caught:
        use(leaked)
    lines = str(caught.value).split("\n")
    assert re.match(r"<traced .*, mul at test_leaks\.py:\d+> was used outside the trace", lines[0])
    assert lines[1].startswith("  it was made in leaking")
    assert lines[2].startswith("  To fix it: ")


def test_what_is_known_of_it_may_be_asked(leaked):
    assert (leaked.shape, leaked.ndim, len(leaked)) == ((3,), 1, 3)
    assert repr(leaked).startswith("<traced f64[3], mul at")


def from_one_function_into_another():
    first, second = wend.function(leaking.python_function), wend.function(lambda y: y + ref.value)
    first(1.0)
    second(1.0)


def from_an_inner_function_to_the_outer():
    def outer(x):
        leaking(x)
        return ref.value

    wend.function(outer)(1.0)


def from_a_loop_body():
    @wend.function
    def looping(x):
        wend.fori_loop(0, 3, lambda i, c: (setattr(ref, "value", c * 2), c)[1], x)
        return x + ref.value

    looping(1.0)


def from_a_captured_body():
    @wend.function
    def looping(x):
        total = 0.0
        while total < x:
            total += wend.fori_loop(0, 3, lambda i, c: (setattr(ref, "value", c * 2), c)[1], x)
        return ref.value

    looping(1.0)


def from_a_branch_into_the_other():
    def true_fun():
        return ref.value

    def false_fun(x):
        ref.value = x * 3
        return x

    wend.function(lambda x: wend.cond(x > 0, lambda: true_fun() + x, lambda: false_fun(x)))(1.0)


def from_one_iteration_into_another_loop():
    @wend.function
    def looping(x):
        wend.fori_loop(0, 3, lambda i, c: (setattr(ref, "value", c * 2), c)[1], x)
        return wend.while_loop(lambda c: c < ref.value, lambda c: c + 1, x)

    looping(1.0)


def from_a_gradient():
    def square(x):
        keep(x * x)
        return ref.value

    wend.grad(square)(1.0)
    ref.value + 1


def of_a_list_that_grew():
    @wend.function
    def growing(x):
        items = []
        while x < 10:
            items.append(x)
            x = x + 1
        keep(items)
        return x

    growing(1.0)
    wnp.stack(ref.value)


ROADS = [
    from_one_function_into_another,
    from_an_inner_function_to_the_outer,
    from_a_loop_body,
    from_a_captured_body,
    from_a_branch_into_the_other,
    from_one_iteration_into_another_loop,
    from_a_gradient,
    of_a_list_that_grew,
]


def test_messages_name_both_places(golden):
    """All roads in one file."""
    before_write = []
    for road in ROADS:
        with pytest.raises(LeakedValueError) as caught:
            road()
        text = re.sub(r"(test_leaks\.py):\d+", r"\1:LINE", str(caught.value))
        before_write.append(f"# {road.__name__.replace('_', ' ')}\n{text}\n")
    golden.check("errors/leaks.txt", "\n".join(before_write))


def test_what_belongs_to_an_enclosing_trace_is_captured():
    @wend.function
    def outer(x):
        y = x * 2.0
        inner = wend.function(lambda z: wend.fori_loop(0, 3, lambda i, c: c + y, z))
        return inner(x)

    assert outer(1.0) == 7.0
