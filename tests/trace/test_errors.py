"""What users are told: each message against tests/golden/errors/*.txt."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.traces import at_trace
from wend.base.errors import (
    CarryError,
    ConcreteValueError,
    LeakedValueError,
    NotDifferentiableError,
    ShapeError,
    StructureError,
    TypeMismatchError,
)

pytestmark = pytest.mark.usefixtures("integers_stay_traced")

ONE = np.float64(1.0)


def carry_dtype():
    wend.while_loop(
        lambda c: c["n"] < 3,
        lambda c: {"n": c["n"] + 1, "h": [c["h"][0].astype("float32")]},
        {"n": 0, "h": [np.ones((2, 3))]},
    )


def carry_strong_to_stronger():
    wend.while_loop(lambda c: c < 3, lambda c: c + np.float64(1), np.float32(0))


def carry_shape():
    x = np.ones((2, 2))
    wend.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, wnp.concatenate([c[1], c[1]])), (0, x))


def carry_rank():
    wend.fori_loop(0, 3, lambda i, c: {"h": c["h"][None]}, {"h": np.ones(3)})


def carry_weak_to_vector():
    wend.fori_loop(0, 3, lambda i, c: c + np.ones(2), 0)


def carry_unknown_size():
    fun = wend.function(
        lambda c, xs: wend.scan(lambda c, x: (c + x, None), c, xs),
        input_signature=[wend.TensorSpec([None]), wend.TensorSpec([None, None])],
    )
    fun(np.ones(1), np.ones((3, 2)))


def carry_missing_key():
    wend.while_loop(lambda c: c["a"] < 3, lambda c: {"a": c["a"]}, {"a": 8, "b": 3})


def carry_extra_key():
    wend.fori_loop(0, 3, lambda i, c: {**c, "z": 1}, {"a": 8, "b": 3})


def carry_arity():
    wend.while_loop(lambda c: c[0] < 3, lambda c: (c[0],), (1.0, {"a": 2.0}))


def carry_none():
    wend.while_loop(lambda c: c[0] < 30, lambda c: (c[0] * 2, 3.0), (1.0, None))


def carry_object():
    wend.while_loop(lambda c: True, lambda c: c, (1.0, object()))


def carry_becomes_string():
    wend.fori_loop(0, 3, lambda i, c: (c[0], "a"), (1.0, 2.0))


def scan_carry():
    wend.scan(lambda c, x: (c.astype("int64"), x), ONE, np.arange(3))


def scan_no_pair():
    wend.scan(lambda c, x: c + x, 0.0, np.arange(3))


def scan_lengths():
    wend.scan(lambda c, x: (c, x), 0.0, {"a": np.arange(3), "b": np.arange(4)})


def scan_length_and_rows():
    wend.scan(lambda c, x: (c, x), 0.0, np.arange(3), length=4)


def scan_traced_length_and_rows():
    wend.function(lambda n, x: wend.scan(lambda c, x: (c, x), 0.0, x, length=n))(3, np.arange(3))


def scan_float_length():
    wend.scan(lambda c, x: (c, x), 0.0, None, length=3.0)


def scan_rows_of_no_known_size():
    wend.function(lambda xs: wend.map(lambda x: x[x > 0], xs))(np.ones((3, 2)))


def list_of_no_known_size():
    def fun(xs):
        out = []
        for x in xs:
            out.append(x[x > 0])
        return wnp.stack(out)

    wend.function(fun)(np.ones((100, 2)))


def shapes_that_do_not_fit():
    wend.function(lambda x, y: x + y)(np.ones(3), np.ones(2))


def products_that_do_not_fit():
    wend.fori_loop(0, 3, lambda i, x: x @ np.ones((2, 3)), np.ones((2, 3)))


def truth_of_many():
    wend.function(lambda x: 1.0 if x > 0 else 2.0)(np.ones(3))


def unknown_function():
    wend.function(lambda x: np.spacing(x))(np.ones(4))


def unknown_method():
    wend.function(lambda x: np.spacing.at(x, [0, 2]))(np.ones(4))


def function_of_scipy():
    from scipy.special import ellipk

    wend.function(lambda x: ellipk(x))(np.ones(4))


def grad_by_name():
    wend.grad(lambda x, y: x * y, "y")


def grad_by_float():
    wend.value_and_grad(lambda x, y: x * y, (0, 1.0))


def returned_on_one_path():
    def fun(x):  # noqa: RET503 - the mistake
        if x > 0:
            return x

    wend.vmap(wend.function(fun))(np.ones(2))


def scan_nothing():
    wend.scan(lambda c, x: (c, x), 0.0)


def scan_scalar():
    wend.scan(lambda c, x: (c, x), 0.0, 2.0)


def predicate_int():
    wend.while_loop(lambda c: c, lambda c: c, 1)


def predicate_float():
    wend.while_loop(lambda c: c * 0.5, lambda c: c, 1.0)


def predicate_vector():
    wend.while_loop(lambda c: c < 3, lambda c: c, np.ones(3))


def predicate_none():
    wend.while_loop(lambda c: None, lambda c: c, 1.0)


def cond_vector():
    wend.cond(np.array([True, False]), lambda: 1, lambda: 2)


def assert_vector():
    wend.assert_(np.array([True, False]))


def branch_dtype():
    wend.cond(ONE > 0, lambda: {"a": np.float32(1)}, lambda: {"a": np.float64(2)})


def branch_shape():
    wend.cond(ONE > 0, lambda: np.ones(2), lambda: np.ones(3))


def branch_structure():
    wend.cond(ONE > 0, lambda: (1, 2), lambda: [1, 2])


def branch_none():
    wend.cond(ONE > 0, lambda: (1.0, None), lambda: (1.0, 2.0))


def branch_string():
    wend.cond(ONE > 0, lambda: "a", lambda: "b")


def switch_dtype():
    wend.switch(np.int64(0), [lambda: 1.0, lambda: np.float32(1), lambda: np.float64(1)])


def switch_float():
    wend.switch(1.5, [lambda: 1])


def switch_nothing():
    wend.switch(0, [])


def fori_float_bound():
    wend.fori_loop(0, 3.0, lambda i, c: c, 1.0)


def fori_none_bound():
    wend.fori_loop(0, None, lambda i, c: c, 1.0)


def maximum_is_float():
    wend.while_loop(lambda c: True, lambda c: c, 1.0, maximum_iterations=2.5)


def cond_fun_not_callable():
    wend.while_loop(3, lambda c: c, 1.0)


def body_fun_not_callable():
    wend.while_loop(lambda c: True, None, 1.0)


def branch_not_callable():
    wend.cond(True, 3, lambda: 1)


def parallel_zero():
    wend.while_loop(lambda c: c < 3, lambda c: c + 1, 0, parallel_iterations=0)


def unroll_zero():
    wend.scan(lambda c, x: (c, x), 0, np.arange(3), unroll=0)


def reduce_retracing_unknown():
    wend.function(lambda x: x, reduce_retracing="never")


def invariants_do_not_fit():
    wend.while_loop(lambda c: c < 3, lambda c: c, 1.0, shape_invariants=(1, 2))


def invariants_structure():
    wend.while_loop(lambda c: c[0] < 3, lambda c: c, (1.0, 2.0), shape_invariants=((),))


def leaked_from_function():
    kept = []
    keep = at_trace(kept)
    wend.function(lambda x: (keep(x * 2), x)[1])(1.0)
    kept[0] + 1


def leaked_argument():
    kept = []
    keep = at_trace(kept)
    wend.function(lambda x: (keep(x), x)[1])(1.0)
    wend.function(lambda y: y + kept[0])(1.0)


def leaked_from_body():
    kept = []

    def fun(x):
        wend.fori_loop(0, 3, lambda i, c: (kept.append(c * 2), c)[1], x)
        return kept[0] + x

    wend.function(fun)(1.0)


def leaked_carry():
    kept = []

    def fun(x):
        wend.while_loop(lambda c: c["h"] < 3, lambda c: (kept.append(c["h"]), c)[1], {"h": x})
        return kept[0] + x

    wend.function(fun)(1.0)


def leaked_across_branches():
    kept = []
    wend.function(
        lambda x: wend.cond(x > 0, lambda: kept[0] + x, lambda: (kept.append(x * 3), x)[1])
    )(1.0)


def truth():
    wend.function(lambda x: 1 if x > 0 else 2, capture=False)(1.0)


def number():
    wend.function(lambda x: float(x), capture=False)(1.0)


def integer():
    wend.function(lambda n: int(n), capture=False)(np.int64(1))


def as_index():
    wend.function(lambda n: [1, 2, None][n])(np.int64(1))


def as_range():
    wend.function(lambda n: list(range(n)), capture=False)(np.int64(1))


def as_array():
    wend.function(lambda x: np.asarray(x), capture=False)(np.ones(2))


def long_list():
    wend.function(lambda x: x.tolist())(np.ones(1000))


def returns_object():
    wend.function(lambda x: {"a": object()})(1.0)


def unhashable_static():
    wend.function(lambda x, rates: x, static_argnames="rates")(1.0, [0.1])


def unhashable_argument():
    wend.function(lambda x, options: x)(1.0, {"tags": {1, 2}})


def signature_dtype():
    wend.function(lambda x: x, input_signature=[wend.TensorSpec([None], "float32")])(np.ones(3))


def signature_rank():
    spec = wend.TensorSpec([None], "float32")
    wend.function(lambda x: x, input_signature=[spec])(np.ones((2, 2), np.float32))


def signature_too_many():
    wend.function(lambda x, n=3: x * n, input_signature=[wend.TensorSpec([])])(1.0, 5)


def grad_of_integers():
    wend.grad(lambda x: wnp.sum(x * 1.0))(np.arange(3))


def grad_of_bool():
    wend.grad(lambda x: x * 1.0)(True)


def grad_of_vector():
    wend.grad(lambda x: x * 2.0)(np.ones(2))


def grad_of_complex():
    wend.grad(lambda z: z * z)(1 + 2j)


def grad_of_integer_result():
    wend.grad(lambda x: 3)(1.0)


def grad_of_order():
    wend.grad(wnp.argsort)(np.array([3.0, 1.0, 2.0]))


def grad_of_tuple():
    wend.grad(lambda x: (x, x))(1.0)


def grad_aux_without_pair():
    wend.grad(lambda x: x * x, has_aux=True)(2.0)


def grad_argnums():
    wend.grad(lambda x: x, 3)(1.0)


def pullback_structure():
    wend.vjp(lambda x: {"a": x, "b": (x, None)}, 1.0)[1](1.0)


def pullback_shape():
    wend.vjp(lambda x: x * 2, 1.0)[1](np.ones(2))


def pullback_dtype():
    wend.vjp(lambda x: x * 2, np.float32(1.0))[1](np.float64(1.0))


CASES = {
    CarryError: [
        carry_dtype,
        carry_strong_to_stronger,
        carry_shape,
        carry_rank,
        carry_weak_to_vector,
        carry_unknown_size,
        scan_carry,
        branch_dtype,
        branch_shape,
        switch_dtype,
        invariants_do_not_fit,
    ],
    StructureError: [
        carry_missing_key,
        carry_extra_key,
        carry_arity,
        carry_none,
        scan_no_pair,
        branch_structure,
        branch_none,
        invariants_structure,
        grad_aux_without_pair,
        pullback_structure,
    ],
    TypeMismatchError: [
        carry_object,
        carry_becomes_string,
        predicate_int,
        predicate_float,
        predicate_vector,
        predicate_none,
        cond_vector,
        assert_vector,
        branch_string,
        switch_float,
        fori_float_bound,
        fori_none_bound,
        maximum_is_float,
        returns_object,
        signature_dtype,
        signature_rank,
        scan_float_length,
        unknown_function,
        unknown_method,
        function_of_scipy,
        grad_argnums,
        grad_by_name,
        grad_by_float,
        pullback_dtype,
    ],
    ShapeError: [
        scan_lengths,
        scan_length_and_rows,
        scan_traced_length_and_rows,
        scan_rows_of_no_known_size,
        list_of_no_known_size,
        scan_nothing,
        scan_scalar,
        shapes_that_do_not_fit,
        products_that_do_not_fit,
        pullback_shape,
    ],
    ValueError: [switch_nothing, reduce_retracing_unknown, truth_of_many, unroll_zero],
    TypeError: [
        cond_fun_not_callable,
        body_fun_not_callable,
        branch_not_callable,
        parallel_zero,
        unhashable_static,
        unhashable_argument,
        signature_too_many,
    ],
    LeakedValueError: [
        leaked_from_function,
        leaked_argument,
        leaked_from_body,
        leaked_carry,
        leaked_across_branches,
    ],
    ConcreteValueError: [
        truth,
        number,
        integer,
        as_index,
        as_range,
        as_array,
        long_list,
        returned_on_one_path,
    ],
    NotDifferentiableError: [
        grad_of_integers,
        grad_of_bool,
        grad_of_vector,
        grad_of_complex,
        grad_of_integer_result,
        grad_of_order,
        grad_of_tuple,
    ],
}
LINE = re.compile(r"test_errors\.py:(\d+)")


@pytest.mark.parametrize(
    ("kind", "mistake"),
    [(kind, mistake) for kind, mistakes in CASES.items() for mistake in mistakes],
    ids=lambda x: getattr(x, "__name__", None),
)
def test_message(kind, mistake, golden):
    with pytest.raises(kind) as caught:
        mistake()
    text = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    lines, first = inspect.getsourcelines(mistake)
    for number in LINE.findall(text):
        assert first <= int(number) < first + len(lines), "the line is not the user's"
    text = re.sub(r" at 0x[0-9a-f]+", " at ADDRESS", LINE.sub("test_errors.py:LINE", text))
    text = re.sub(r"\bd\d+\b", "dN", text)
    golden.check(f"errors/{mistake.__name__}.txt", f"{type(caught.value).__name__}: {text}")


def test_where_a_control_mistake_was_made():
    """Messages about control flow name the user's file and line."""
    for mistake in (carry_dtype, carry_missing_key, predicate_int, cond_vector, branch_dtype):
        with pytest.raises(wend.WendError, match=LINE.pattern):
            mistake()


def test_errors_are_the_built_in_ones_too():
    for mistake, kind in [
        (carry_dtype, TypeError),
        (carry_shape, ValueError),
        (carry_missing_key, ValueError),
        (predicate_int, TypeError),
        (truth, TypeError),
        (leaked_carry, TypeError),
    ]:
        with pytest.raises(kind):
            mistake()


def test_nothing_runs_before_a_mistake_is_told(capsys):
    def body(c):
        wend.print("ran")
        return c.astype("float32")

    with pytest.raises(CarryError):
        wend.while_loop(lambda c: c < 3.0, body, ONE)
    with pytest.raises(CarryError):
        wend.cond(ONE > 0, lambda: (wend.print("ran"), ONE)[1], lambda: np.float32(1))
    assert capsys.readouterr().out == ""


def test_a_failed_trace_leaves_nothing_behind():
    fun = wend.function(
        lambda x, s: x if s == "ok" else wend.cond(x * np.ones(2), lambda: 1, lambda: 2)
    )
    with pytest.raises(TypeMismatchError):
        fun(1.0, "bad")
    assert fun.trace_count == 0
    assert fun(1.0, "ok") == 1.0
    assert wend.while_loop(lambda v: v < 8.0, lambda v: v * v, 2.0) == 16.0  # no trace is open
