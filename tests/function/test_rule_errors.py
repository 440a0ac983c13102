"""What users are told about rules of theirs: each message against tests/golden/errors/*.txt."""

from __future__ import annotations

import functools
import inspect
import re

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.base.errors import (
    MissingRuleError,
    NotDifferentiableError,
    ShapeError,
    StructureError,
    TypeMismatchError,
)

LINE = re.compile(r"test_rule_errors\.py:(\d+)")


def ruled(fwd, bwd, fun=lambda x: x * 2.0):
    """The gradient of a function with this rule."""

    def f(*args):
        return fun(*args)

    made = wend.custom_vjp(f)
    made.defvjp(fwd, bwd)
    return made


def none(*_):
    return (None,)


def rule_missing():
    @wend.custom_vjp
    def f(x):
        return x

    f(1.0)


def rule_missing_jvp():
    @wend.custom_jvp
    def f(x):
        return x

    wend.grad(f)(1.0)


def rule_not_callable():
    wend.custom_vjp(lambda x: x).defvjp(lambda x: (x, None), 3)


def rule_fun_not_callable():
    wend.custom_vjp(3)


def rule_fwd_no_pair():
    f = ruled(lambda x: x * 2.0, none)
    wend.grad(lambda x: f(x))(1.0)


def rule_fwd_structure():
    f = ruled(lambda x: ({"y": x}, None), none, lambda x: {"y": x, "z": x})
    wend.grad(lambda x: f(x)["y"])(1.0)


def rule_fwd_dtype():
    f = ruled(lambda x: (wnp.asarray(x * 2.0, "float32"), None), none)
    wend.grad(lambda x: wnp.sum(f(x)))(np.ones(2))


def rule_fwd_shape():
    f = ruled(lambda x: (wnp.sum(x), None), none)
    wend.grad(lambda x: wnp.sum(f(x)))(np.ones(2))


def rule_fwd_string():
    f = ruled(lambda x: ("out", None), none)
    wend.grad(lambda x: f(x))(1.0)


def rule_bwd_no_tuple():
    f = ruled(lambda x: (x, None), lambda _, ct: ct)
    wend.grad(lambda x: f(x))(1.0)


def rule_bwd_count():
    f = ruled(lambda x, y: (x * y, None), lambda _, ct: (ct,), lambda x, y: x * y)
    wend.grad(lambda x: f(x, x))(1.0)


def rule_bwd_structure():
    f = ruled(lambda x: (x["a"] * 2.0, None), lambda _, ct: ({"b": ct},), lambda x: x["a"] * 2.0)
    wend.grad(lambda x: f({"a": x}))(1.0)


def rule_bwd_dtype():
    f = ruled(lambda x: (wnp.sum(x), None), lambda _, ct: (np.float32([1.0, 2.0]),), wnp.sum)
    wend.grad(lambda x: f(x))(np.ones(2))


def rule_bwd_shape():
    f = ruled(lambda x: (wnp.sum(x), None), lambda _, ct: (ct,), wnp.sum)
    wend.grad(lambda x: f(x))(np.ones(2))


def rule_bwd_of_integers():
    f = ruled(lambda x, n: (x, None), lambda _, ct: (ct, 0), lambda x, n: x * n)
    wend.grad(lambda x: f(x, 3))(1.0)


def rule_bwd_effect():
    def bwd(_, ct):
        wend.print("ct", ct)
        return (ct,)

    f = ruled(lambda x: (x, None), bwd)
    wend.grad(lambda x: f(x))(1.0)


def rule_by_closure():
    def outer(x, w):
        f = ruled(lambda y: (y * w, None), lambda _, ct: (ct * w,), lambda y: y * w)
        return f(x)

    wend.grad(outer, 1)(1.0, 2.0)


def rule_by_nondiff():
    def f(x, w):
        return x * w

    made = wend.custom_vjp(f, nondiff_argnums=1)
    made.defvjp(lambda x, w: (x * w, None), lambda w, _, ct: (ct,))
    wend.grad(lambda x, w: made(x, wnp.sin(w)), 1)(1.0, 2.0)


def rule_nondiff_position():
    def f(x):
        return x

    made = wend.custom_vjp(f, nondiff_argnums=3)
    made.defvjp(lambda x: (x, None), none)
    wend.function(made)(1.0)


def rule_keyword_only():
    @wend.custom_vjp
    def f(x, *, k):
        return x * k

    f.defvjp(lambda x, k: (x * k, None), none)
    wend.function(lambda x: f(x, k=2.0))(1.0)


def rule_changes_argument():
    def fun(x):
        x[0] = 3.0
        return x

    f = ruled(lambda x: (x, None), none, fun)
    wend.function(lambda x: f(x))(np.ones(2))


def rule_function_assigns():
    v = wend.Variable(1.0, name="v")
    f = ruled(lambda x: (x, None), none, lambda x: v.assign(x) * 1.0)
    wend.function(lambda x: f(x))(2.0)


def rule_changes_outer():
    def outer(x):
        def fun(y):
            x[0] = 3.0
            return y

        return ruled(lambda y: (y, None), none, fun)(x)

    wend.function(outer)(np.ones(2))


def rule_too_deep():
    def f(n, x):
        return x * n

    made = wend.custom_vjp(f, nondiff_argnums=0)
    made.defvjp(lambda n, x: (x * n, x), lambda n, x, ct: (made(n + 1, x * ct),))
    fun = wend.grad(wend.grad(wend.grad(wend.grad(lambda x: made(1, x)))))
    wend.grad(fun)(2.0)


def with_jvp(jvp):
    @wend.custom_jvp
    def f(x):
        return x * 2.0

    f.defjvp(jvp)
    return f


def rule_jvp_no_pair():
    f = with_jvp(lambda p, t: t[0])
    wend.grad(lambda x: f(x))(1.0)


def rule_jvp_structure():
    f = with_jvp(lambda p, t: ((p[0], p[0]), t[0]))
    wend.grad(lambda x: f(x))(1.0)


def rule_jvp_tangent_structure():
    f = with_jvp(lambda p, t: (p[0], t))
    wend.grad(lambda x: f(x))(1.0)


def rule_jvp_tangent_dtype():
    f = with_jvp(lambda p, t: (p[0], wnp.asarray(t[0], "float32")))
    wend.grad(lambda x: wnp.sum(f(x)))(np.ones(2))


def rule_jvp_tangent_shape():
    f = with_jvp(lambda p, t: (p[0], wnp.sum(t[0])))
    wend.grad(lambda x: wnp.sum(f(x)))(np.ones(2))


def rule_jvp_not_linear():
    f = with_jvp(lambda p, t: (p[0], wnp.tanh(t[0])))
    wend.grad(lambda x: f(x))(1.0)


def rule_jvps_count():
    @wend.custom_jvp
    def f(x, y):
        return x * y

    f.defjvps(lambda t, out, x, y: t)
    wend.grad(f)(1.0, 2.0)


def rule_jvps_nondiff():
    f = functools.partial(wend.custom_jvp, nondiff_argnums=(0,))(lambda k, x: x)
    f.defjvps(None)


def checkpoint_effect():
    @wend.checkpoint
    def f(x):
        wend.print(x)
        return x

    wend.grad(lambda x: f(x))(1.0)


def rule_assigns():
    v = wend.Variable(1.0, name="v")
    f = ruled(lambda x: (v.assign_add(x).value, x), lambda x, ct: (ct,))
    wend.grad(lambda x: f(x))(1.0)


def checkpoint_assigns():
    v = wend.Variable(1.0, name="v")
    f = wend.checkpoint(lambda x: v.assign_add(x).value)
    wend.grad(lambda x: f(x))(1.0)


def checkpoint_changes_argument():
    @wend.checkpoint
    def f(x):
        x[0] = 1.0
        return x

    wend.function(lambda x: f(x))(np.ones(2))


def checkpoint_policy():
    wend.checkpoint(lambda x: x, policy="dots")


CASES = {
    MissingRuleError: [rule_missing, rule_missing_jvp, rule_too_deep],
    TypeError: [
        rule_not_callable,
        rule_fun_not_callable,
        rule_nondiff_position,
        rule_keyword_only,
        rule_jvps_count,
        rule_jvps_nondiff,
    ],
    StructureError: [
        rule_fwd_no_pair,
        rule_fwd_structure,
        rule_bwd_no_tuple,
        rule_bwd_count,
        rule_bwd_structure,
        rule_jvp_no_pair,
        rule_jvp_structure,
        rule_jvp_tangent_structure,
    ],
    TypeMismatchError: [
        rule_fwd_dtype,
        rule_fwd_string,
        rule_bwd_dtype,
        rule_bwd_of_integers,
        rule_changes_argument,
        rule_assigns,
        rule_function_assigns,
        rule_changes_outer,
        rule_jvp_tangent_dtype,
        checkpoint_changes_argument,
    ],
    ShapeError: [rule_fwd_shape, rule_bwd_shape, rule_jvp_tangent_shape],
    NotDifferentiableError: [
        rule_bwd_effect,
        rule_by_closure,
        rule_by_nondiff,
        rule_jvp_not_linear,
        checkpoint_effect,
        checkpoint_assigns,
    ],
    NotImplementedError: [checkpoint_policy],
}


@pytest.mark.parametrize(
    ("kind", "mistake"),
    [(kind, mistake) for kind, mistakes in CASES.items() for mistake in mistakes],
    ids=lambda x: getattr(x, "__name__", None),
)
def test_message(kind, mistake, golden):
    with pytest.raises(kind) as caught:
        mistake()
    text = str(caught.value)
    assert LINE.search(text) or "where" not in text
    text = re.sub(r" at 0x[0-9a-f]+", " at ADDRESS", LINE.sub("test_rule_errors.py:LINE", text))
    golden.check(f"errors/{mistake.__name__}.txt", f"{type(caught.value).__name__}: {text}")


def test_where_the_call_stands():
    """Messages name the user's line of the call, or of what in the rule is at fault."""
    for mistake in (rule_fwd_dtype, rule_bwd_shape, rule_by_closure, checkpoint_effect):
        with pytest.raises(wend.WendError) as caught:
            mistake()
        lines, first = inspect.getsourcelines(mistake)
        numbers = [int(number) for number in LINE.findall(str(caught.value))]
        assert numbers
        assert all(first <= number < first + len(lines) for number in numbers)


def test_a_mistake_leaves_no_trace_open():
    for mistake in (rule_fwd_dtype, rule_bwd_shape, rule_jvp_structure):
        with pytest.raises(wend.WendError):
            mistake()
    assert wend.while_loop(lambda v: v < 8.0, lambda v: v * v, 2.0) == 16.0
    square = wend.custom_vjp(lambda x: x * x)
    square.defvjp(lambda x: (square(x), x), lambda x, ct: (ct * x,))
    assert wend.grad(square)(3.0) == 3.0
