"""What users of tapes and variables are told: each message against tests/golden/errors/*.txt."""

from __future__ import annotations

import re

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.base.errors import (
    ConcreteValueError,
    NotDifferentiableError,
    ShapeError,
    StructureError,
    TapeError,
    TypeMismatchError,
)


def recorded():
    tape = wend.GradientTape(persistent=True)
    with tape:
        x = tape.watch(np.array([1.0, 2.0]))
        y = x * x
    return tape, x, y


def tape_as_in_tensorflow():
    x = np.ones(3)
    with wend.GradientTape() as tape:
        tape.watch(x)
        y = wnp.sum(x * x)
    tape.gradient(y, x)


def tape_of_a_number():
    with wend.GradientTape() as tape:
        tape.watch(2.0)
    tape.gradient(4.0, [2.0])


def tape_of_integers():
    tape, _, y = recorded()
    tape.gradient(y, np.arange(3))


def tape_watches_integers():
    with wend.GradientTape() as tape:
        tape.watch(np.arange(3))


def tape_watches_text():
    with wend.GradientTape() as tape:
        tape.watch("x")


def tape_of_anothers():
    with wend.GradientTape() as outer:
        x = outer.watch(2.0)
        with wend.GradientTape() as inner:
            y = x * x
        inner.gradient(y, x)


def tape_complex_target():
    with wend.GradientTape() as tape:
        x = tape.watch(1j)
        y = x * x
    tape.gradient(y, x)


def tape_asked_twice():
    with wend.GradientTape() as tape:
        x = tape.watch(2.0)
        y = x * x
    tape.gradient(y, x)
    tape.gradient(y, x)


def tape_opened_twice():
    with wend.GradientTape() as tape, tape:
        pass


def tape_never_opened():
    wend.GradientTape().gradient(1.0, 1.0)


def tape_watch_outside():
    wend.GradientTape().watch(1.0)


def tape_from_outside_a_trace():
    tape, x, y = recorded()
    wend.function(lambda v: tape.gradient(y, x))(1.0)


def tape_of_a_trace_in_its_loop():
    @wend.function
    def fun(x):
        with wend.GradientTape() as tape:
            x = tape.watch(x)
            y = x * x
        return wend.fori_loop(0, 2, lambda i, c: tape.gradient(y, x), x)

    fun(2.0)


def tape_in_another_recording():
    tape, _, _ = recorded()
    with wend.GradientTape(), tape:
        pass


def tape_target_is_text():
    tape, x, _ = recorded()
    tape.gradient("y", x)


def tape_output_gradient_structure():
    tape, x, y = recorded()
    tape.gradient([y, y], x, output_gradients=[1.0])


def tape_output_gradient_dtype():
    tape, x, y = recorded()
    tape.gradient(y, x, output_gradients=np.ones(2, np.float32))


def tape_output_gradient_shape():
    tape, x, y = recorded()
    tape.gradient(y, x, output_gradients=np.ones(3))


def recorded_float():
    with wend.GradientTape() as tape:
        float(tape.watch(2.0))


def recorded_array():
    with wend.GradientTape() as tape:
        np.linalg.norm(np.asarray(tape.watch(np.ones(2))))


def recorded_into_an_array():
    with wend.GradientTape() as tape:
        np.zeros(2)[:] = tape.watch(np.ones(2))


def recorded_in_place():
    with wend.GradientTape() as tape:
        tape.watch(np.ones(2))[0] = 1.0


def recorded_written_to_an_argument():
    @wend.function
    def fun(x, out):
        out[0] = x

    with wend.GradientTape() as tape:
        fun(tape.watch(2.0), np.zeros(2))


def variable_dtype():
    wend.Variable(np.ones(2), name="w").assign(np.ones(2, np.float32))


def variable_shape():
    wend.Variable(np.ones(2)).assign(np.ones(3))


def variable_in_place():
    wend.Variable(np.ones(2))[0] = 2.0


def variable_operator():
    v = wend.Variable(1.0, name="v")
    v += 1.0


CASES = {
    NotDifferentiableError: [
        tape_as_in_tensorflow,
        tape_of_a_number,
        tape_of_integers,
        tape_watches_integers,
        tape_watches_text,
        tape_of_anothers,
        tape_complex_target,
    ],
    TapeError: [
        tape_asked_twice,
        tape_opened_twice,
        tape_never_opened,
        tape_watch_outside,
        tape_from_outside_a_trace,
        tape_of_a_trace_in_its_loop,
        tape_in_another_recording,
    ],
    StructureError: [tape_output_gradient_structure],
    ShapeError: [tape_output_gradient_shape],
    ConcreteValueError: [recorded_float, recorded_array, recorded_into_an_array],
    TypeMismatchError: [
        tape_target_is_text,
        tape_output_gradient_dtype,
        recorded_written_to_an_argument,
        variable_dtype,
        variable_shape,
    ],
    TypeError: [recorded_in_place, variable_in_place, variable_operator],
}


@pytest.mark.parametrize(
    ("kind", "mistake"),
    [(kind, mistake) for kind, mistakes in CASES.items() for mistake in mistakes],
    ids=lambda x: getattr(x, "__name__", None),
)
def test_message(kind, mistake, golden):
    with pytest.raises(kind) as caught:
        mistake()
    text = re.sub(r"test_errors\.py:\d+", "test_errors.py:LINE", str(caught.value))
    golden.check(f"errors/{mistake.__name__}.txt", f"{type(caught.value).__name__}: {text}")


def test_mistakes_leave_no_recording():
    from wend.eager.dispatch import recorder

    for mistakes in CASES.values():
        for mistake in mistakes:
            with pytest.raises(Exception):  # noqa: B017
                mistake()
            assert recorder.get() is None
