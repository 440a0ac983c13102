"""Variables that functions make."""

from __future__ import annotations

import gc
import re
import weakref

import numpy as np
import pytest
from tests.helpers.golden import Golden

import wend
import wend.numpy as wnp
from wend.base.errors import SideEffectError, StructureError, VariableError


class Scale:
    """Multiplies by a variable that it makes when it is first called."""

    def __init__(self, initial):
        self.v, self.initial = None, initial

    def __call__(self, x):
        if self.v is None:
            self.v = wend.Variable(self.initial(x), name="scale")
        return x * self.v


@pytest.mark.parametrize(
    "initial",
    [
        lambda x: 2.0,
        lambda x: np.float64(2.0),
        lambda x: wnp.sum(wnp.ones(2)),
        lambda x: wend.while_loop(lambda c: c < 2.0, lambda c: c + 1.0, 0.0),
        lambda x: wnp.sum(wnp.ones_like(x)) * 2.0 / wnp.size(x),
    ],
)
def test_made_once(initial):
    """T84: two traces at the first call, then one for each signature."""
    one = Scale(initial)
    fun = wend.function(one)
    assert (fun(1.0), fun.trace_count) == (2.0, 2)
    assert (fun(3.0), fun.trace_count) == (6.0, 2)
    np.testing.assert_array_equal(fun(np.array([1.0, 2.0])), [2.0, 4.0])
    assert (fun.trace_count, one.v.value) == (3, 2.0)
    assert "while" not in str(fun.get_concrete_function(1.0).graph)
    assert fun.get_concrete_function(1.0).variables == (one.v,)
    assert "made Variable 'scale'" in fun.explain()


def test_made_from_an_argument():
    """T86: once, from the arguments of the first call."""
    one = Scale(lambda x: 2.0 * x)
    fun = wend.function(one)
    assert (fun(1.0), fun(3.0), one.v.value, fun.trace_count) == (2.0, 6.0, 2.0, 2)
    graph = fun.get_concrete_function(1.0).graph
    assert [node.op.name for node in graph.nodes] == ["mul"]


def test_from_an_argument_and_assigned():
    class Total:
        v = w = None

        def __call__(self, x):
            if self.v is None:
                self.v = wend.Variable(x * 10.0)
                self.w = wend.Variable(self.v * 2.0)
            self.v.assign_add(x)
            return self.v + self.w

    total = Total()
    fun = wend.function(total)
    assert (fun(1.0), fun(1.0)) == (11.0 + 20.0, 12.0 + 20.0)
    assert (total.v.value, total.w.value) == (12.0, 20.0)


def test_nothing_is_known_before_the_first_call():
    one = Scale(lambda x: 2.0 * x)
    fun = wend.function(one)
    concrete = fun.get_concrete_function(wend.TensorSpec([], "float64"))
    assert not one.v.is_initialized
    assert repr(one.v) == "<Variable 'scale': f64[], no value yet>"
    with pytest.raises(VariableError, match=r"'scale', made at test_creation.*has no value yet"):
        one.v.value
    assert concrete(np.float64(3.0)) == 18.0
    assert (one.v.value, fun(np.float64(1.0))) == (6.0, 6.0)
    assert fun.trace_count == 2


def test_the_first_call_may_be_of_another_signature():
    one = Scale(lambda x: wnp.sum(x))
    fun = wend.function(one)
    fun.get_concrete_function(wend.TensorSpec([2], "float64"))
    with pytest.raises(VariableError, match="depends on an argument f64"):
        fun(np.ones(3, np.float32))
    np.testing.assert_array_equal(fun(np.ones(2)), [2.0, 2.0])


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_in_functions_of_functions(depth):
    one = Scale(lambda x: 2.0 * x)
    fun = wend.function(one)
    for _ in range(depth):
        fun = wend.function(lambda x, fun=fun: fun(x + 1.0) + 0.0)
    assert fun(1.0) == (1.0 + depth) ** 2 * 2.0
    assert one.v.value == 2.0 * (1.0 + depth)
    assert fun(2.0) == (2.0 + depth) * one.v.value


def test_an_inner_function_that_was_traced_before():
    one = Scale(lambda x: 2.0 * x)
    inner = wend.function(one)
    inner.get_concrete_function(1.0)
    outer = wend.function(lambda x: inner(x * 5.0))
    assert (outer(1.0), one.v.value, outer(2.0)) == (50.0, 10.0, 100.0)


def test_under_a_tape():
    one = Scale(lambda x: 2.0 * x)
    fun = wend.function(one)
    with wend.GradientTape() as tape:
        y = fun(3.0)
    assert (one.v.value, tape.gradient(y, one.v)) == (6.0, 3.0)


def test_in_eager_mode():
    one = Scale(lambda x: 2.0 * x)
    fun = wend.function(one)
    with wend.config(eager=True):
        assert (fun(1.0), fun(3.0)) == (2.0, 6.0)


def test_of_each_instance():
    """T88."""

    class Accumulator:
        def __init__(self):
            self.v = None

        @wend.function
        def add(self, x):
            if self.v is None:
                self.v = wend.Variable(wnp.zeros_like(x))
            self.v.assign_add(x)
            return self.v.value

    one, two = Accumulator(), Accumulator()
    assert (one.add(3), one.add(4)) == (3, 7)
    np.testing.assert_array_equal(two.add(np.array([4, 5])), [4, 5])
    assert one.v.value == 7


def test_two_functions_of_one_python_function_share_nothing():
    def make():
        held = []

        @wend.function
        def count(x):
            if not held:
                held.append(wend.Variable(0.0))
            return held[0].assign_add(x).value

        return count

    one, two = make(), make()
    assert (one(1.0), one(1.0), two(5.0)) == (1.0, 2.0, 5.0)


def test_an_optimizer_that_is_passed_makes_its_slots():
    """A new object may bring variables, made where it is first used."""

    class Momentum:
        def __init__(self, rate):
            self.rate, self.slots = rate, {}

        def apply(self, v, gradient):
            slot = self.slots.get(id(v))
            if slot is None:
                slot = self.slots[id(v)] = wend.Variable(np.zeros(v.shape), name="slot")
            slot.assign(0.9 * slot + gradient)
            v.assign_sub(self.rate * slot)

    v = wend.Variable(1.0)

    @wend.function
    def step(optimizer):
        with wend.GradientTape() as tape:
            loss = v * v
        optimizer.apply(v, tape.gradient(loss, v))
        return loss

    first, second = Momentum(1.0), Momentum(0.5)
    assert (step(first), v.value) == (1.0, -1.0)
    assert (step(first), v.value) == (1.0, -1.0 - (0.9 * 2.0 - 2.0))
    v.assign(1.0)
    assert (step(second), v.value) == (1.0, 0.0)
    assert len(first.slots) == len(second.slots) == 1
    assert step.trace_count == 4


# What is refused
def test_made_at_each_call():
    def fun(x):
        w = wend.Variable(x, name="w")
        return w * x

    message = r"Variable 'w', made at test_creation.py:\d+, is made again when fun is traced"
    for _ in range(2):
        with pytest.raises(VariableError, match=message):
            wend.function(fun)(1.0)
    with wend.config(eager=True):
        assert wend.function(fun)(2.0) == 4.0


def test_made_later():
    """T85."""
    held = []

    @wend.function
    def fun(x, more):
        if more:
            held.append(wend.Variable(1.0, name="more"))
        return x

    assert fun(1.0, None) == 1.0
    with pytest.raises(VariableError, match=r"'more', made at .*, is made in a later trace of fun"):
        fun(1.0, "more")


def test_an_object_that_holds_no_such_variable():
    held = []

    class Unrelated:
        pass

    @wend.function
    def fun(x, one):
        if one is not None:
            held.append(wend.Variable(1.0, name="other"))
        return x

    fun(1.0, None)
    with pytest.raises(VariableError, match=r"'other', made at .*, is made in a later trace"):
        fun(1.0, Unrelated())


@pytest.mark.parametrize("kind", ["loop", "branch"])
def test_made_in_a_part(kind):
    class Holder:
        v = None

        def make(self, initial):
            if self.v is None:
                self.v = wend.Variable(initial, name="inside")
            return self.v * 1.0

    def run(holder, initial):
        if kind == "loop":
            body = lambda i, c: c + holder.make(initial(c))  # noqa: E731
            return wend.function(lambda x: wend.fori_loop(0, 3, body, x))(2.0)
        branch = lambda x: holder.make(initial(x))  # noqa: E731
        return wend.function(lambda x: wend.cond(x > 0.0, branch, lambda x: x, x))(2.0)

    assert run(Holder(), lambda c: 5.0) == (17.0 if kind == "loop" else 5.0)
    with pytest.raises(VariableError, match=r"'inside', made at .*, is made in"):
        run(Holder(), lambda c: c * 2.0)


class Lazily:
    """Makes variables at its first call, in the ways that people test for that."""

    v = None

    def __init__(self):
        self.layers, self.params = [], {}

    def variables(self):
        named = [self.v, getattr(self, "w", None)]
        of_memo = [v for (owner, _), v in MEMO.items() if owner is self]
        return [v for v in (*named, *self.params.values(), *self.layers, *of_memo) if v is not None]

    def of_none(self, x, initial):
        if self.v is None:
            self.v = wend.Variable(initial, name="lazy")
        self.v.assign_add(1.0)
        return x * self.v

    def of_hasattr(self, x, initial):
        if not hasattr(self, "w"):
            self.w = wend.Variable(initial, name="lazy")
        self.w.assign_add(1.0)
        return x * self.w

    def of_choice(self, x, initial):
        self.v = wend.Variable(initial, name="lazy") if self.v is None else self.v
        self.v.assign_add(1.0)
        return x * self.v

    def of_key(self, x, initial):
        if "w" not in self.params:
            self.params["w"] = wend.Variable(initial, name="lazy")
        self.params["w"].assign_add(1.0)
        return x * self.params["w"]

    def of_getattr(self, x, initial):
        w = getattr(self, "w", None)
        if w is None:
            w = self.w = wend.Variable(initial, name="lazy")
        w.assign_add(1.0)
        return x * w

    def of_memo(self, x, initial):
        for key in ("a", "b"):
            if (self, key) not in MEMO:
                MEMO[self, key] = wend.Variable(initial, name="lazy")
            MEMO[self, key].assign_add(1.0)
            x = x * MEMO[self, key]
        return x

    def of_list(self, x, initial):
        if not self.layers:
            for _ in range(2):
                self.layers.append(wend.Variable(initial, name="lazy"))
        self.layers[0].assign_add(1.0)
        return x * self.layers[0] + self.layers[1]


MEMO = {}


def in_for(step, x, n, initial):
    for _ in range(n):
        x = step(x, initial(x))
    return x


def in_while(step, x, n, initial):
    while n > 0:
        x, n = step(x, initial(x)), n - 1
    return x


def in_nested_loops(step, x, n, initial):
    for i in range(n):
        for _ in range(2):
            if x < 1e9 and i < 1:
                x = step(x, initial(x))
    return x


def in_branch(step, x, n, initial):
    if n > 0:
        x = step(x, initial(x))
    return x


PROGRAMS = [in_for, in_while, in_nested_loops, in_branch]
WAYS = [name for name in vars(Lazily) if name.startswith("of_")]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_first_reached_in_plain_control_flow(program, way, backend):
    """They are made when the function is traced, and then as if they had been there before."""
    one, other = Lazily(), Lazily()
    traced = wend.function(lambda x, n: program(getattr(one, way), x, n, lambda x: 2.0))
    with wend.config(backend=backend):
        for x, n in [(1.0, 2.0), (3.0, 1.0), (1.0, 3.0), (5.0, 0.0)]:
            n = n if program in (in_while, in_branch) else int(n)
            plain = program(getattr(other, way), x, n, lambda x: 2.0)
            assert traced(x, n) == np.float64(plain)
    assert [v.value for v in one.variables()] == [v.value for v in other.variables()]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("way", ["of_none", "of_hasattr"])
def test_made_in_each_trip(program, way):
    depends = wend.function(lambda x, n: program(getattr(Lazily(), way), x, n, lambda x: 2 * x))
    with pytest.raises(wend.WendError, match="lazy"):
        depends(1.0, 2)


def test_appended_in_each_trip():
    held = []

    def fun(x):
        i = 0.0
        while i < x:
            held.append(wend.Variable(2.0))
            i = i + 1.0
        return i

    with pytest.raises(StructureError, match=r"each trip makes a Variable, .* to `held`"):
        wend.function(fun)(3.0)


def test_setting_one_again_runs_the_code_of_the_user():
    """`self.v = … if self.v is None else self.v` sets it at each call, which a setter sees."""

    class Counted:
        held = None

        def __init__(self):
            self.count = wend.Variable(0.0)

        @property
        def v(self):
            return self.held

        @v.setter
        def v(self, value):
            self.held = value
            self.count.assign_add(1.0)

        def step(self, x):
            self.v = 2.0 if self.v is None else self.v
            return x * self.v

    fun = wend.function(lambda x, one: one.step(x))
    with pytest.raises(SideEffectError, match=r"is changed at .*, and outlives the call"):
        fun(1.0, Counted())


def test_none_becomes_a_variable_that_was_there_before_on_a_path_of_its_own():
    known = wend.Variable(3.0)

    @wend.function
    def choose(x):
        v = None
        if x > 0:
            v = known
        return 0.0 if v is None else v * 1.0

    for x in (-1.0, 2.0, -3.0, 4.0):
        assert choose(x) == (3.0 if x > 0 else 0.0)
    known.assign(5.0)
    assert choose(1.0) == 5.0


def test_made_in_a_loop_outside_functions():
    with pytest.raises(VariableError, match="traced at each call"):
        wend.fori_loop(0, 3, lambda i, c: wend.Variable(c) * 1.0, 1.0)


# Lifetime
def test_a_trace_does_not_keep_its_variables():
    held = [wend.Variable(2.0, name="kept")]
    fun = wend.function(lambda x: held[0].assign_add(x) * 1.0)
    with wend.config(guards=False):
        assert fun(1.0) == 3.0
        gone = weakref.ref(held.pop())
        assert gone() is None
        with pytest.raises(VariableError, match=r"'kept', made at .*, is gone"):
            fun(1.0)
    with pytest.raises(IndexError):  # as in plain Python
        fun(1.0)


class Holder:
    """What functions find a variable in."""

    def __init__(self, v):
        self.replace(v)

    def replace(self, v):
        self.v, self.items, self.named, self.nested = v, [v], {"v": v}, ([v], {"w": (v,)})
        self.__dict__["hidden"] = v


READS = [
    lambda h: h.v,
    lambda h: h.items[0],
    lambda h: h.named["v"],
    lambda h: h.named.get("v"),
    lambda h: h.nested[1]["w"][0],
    lambda h: getattr(h, "hid" + "den"),
    lambda h: next(iter(h.items)),
    lambda h: [x for x in h.items][-1],  # noqa: C416 - how it is read is what is tested
    lambda h: [*h.named.values()][0],  # noqa: RUF015
    lambda h: vars(h)["v"],
]


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("calls", [1, 12])  # the first do not enter compiled code directly
@pytest.mark.parametrize("keeps", [False, True])
def test_a_variable_that_is_replaced(read, calls, keeps):
    """The function goes on with the one that is there, as plain Python does."""
    holder = Holder(wend.Variable(0.0))
    fun = wend.function(lambda x: read(holder).assign_add(x) * 1.0)
    assert [fun(1.0) for _ in range(calls)] == [float(k + 1) for k in range(calls)]
    old = holder.v if keeps else None
    holder.replace(wend.Variable(50.0))
    assert [fun(1.0), fun(1.0)] == [51.0, 52.0]
    assert holder.v.value == 52.0
    if keeps:
        assert old.value == calls
        holder.replace(old)
        assert fun(1.0) == calls + 1.0


def test_a_name_that_is_bound_to_another_variable():
    v = wend.Variable(2.0)
    fun = wend.function(lambda x: v * x)
    assert fun(1.0) == 2.0
    first, v = v, wend.Variable(7.0)
    first.assign(5.0)
    assert fun(1.0) == 7.0


def test_variables_that_are_added_to_a_list():
    layers = [wend.Variable(2.0)]

    @wend.function
    def product(x):
        for layer in layers:
            x = x * layer
        return x

    assert product(1.0) == 2.0
    layers.append(wend.Variable(3.0))
    assert product(1.0) == 6.0
    del layers[0]
    assert product(1.0) == 3.0


def test_a_function_that_is_gone_frees_all():
    class Holder:
        v = None

        @wend.function
        def step(self, x):
            if self.v is None:
                self.v = wend.Variable(x * 2.0)
            return self.v.assign_add(x).value

    holder = Holder()
    holder.step(1.0)
    references = [weakref.ref(holder.v), weakref.ref(holder)]
    references.append(
        weakref.ref(Holder.step._instance_functions[id(holder)][1].concrete_functions()[0])
    )
    del holder
    gc.collect()
    assert [reference() for reference in references] == [None] * 3


# What errors say
def made_at_each_call():
    wend.function(lambda x: wend.Variable(x, name="w") * x)(1.0)


def made_later():
    held = []

    def fun(x, more):
        if more:
            held.append(wend.Variable(1.0))
        return x

    fun = wend.function(fun)
    fun(1.0, None)
    fun(1.0, "more")


def made_in_a_branch():
    make = lambda x: wend.Variable(x * 2.0) + 0.0  # noqa: E731
    wend.function(lambda x: wend.cond(x > 0.0, make, lambda x: x, x))(1.0)


def made_in_a_loop_body():
    wend.function(lambda x: wend.fori_loop(0, 2, lambda i, c: wend.Variable(c) + 0.0, x))(1.0)


def made_outside_functions():
    wend.fori_loop(0, 3, lambda i, c: wend.Variable(c) * 1.0, 1.0)


def made_of_unknown_size():
    spec = wend.TensorSpec([None], "float64")
    wend.function(lambda x: wend.Variable(x) * 2.0).get_concrete_function(spec)


def made_in_a_gradient():
    wend.grad(lambda x: wend.Variable(x * 2.0) * x)(1.0)


def read_too_early():
    one = Scale(lambda x: 2.0 * x)
    wend.function(one).get_concrete_function(1.0)
    one.v.assign_add(1.0)


def first_call_of_another_signature():
    one = Scale(wnp.sum)
    fun = wend.function(one)
    fun.get_concrete_function(wend.TensorSpec([2], "float64"))
    fun(np.ones(3, np.float32))


def variable_is_gone():
    held = [wend.Variable(2.0, name="kept")]
    fun = wend.function(lambda x: held[0] * x)
    with wend.config(guards=False):
        fun(1.0)
        held.clear()
        fun(1.0)


MISTAKES = [
    made_at_each_call,
    made_later,
    made_in_a_branch,
    made_in_a_loop_body,
    made_outside_functions,
    made_of_unknown_size,
    made_in_a_gradient,
    read_too_early,
    first_call_of_another_signature,
    variable_is_gone,
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_message(mistake, golden: Golden):
    with pytest.raises(VariableError) as caught:
        mistake()
    text = re.sub(r"test_creation\.py:\d+", "test_creation.py:LINE", str(caught.value))
    text = re.sub(r"\bd\d+\b", "SIZE", text)
    golden.check(f"errors/variable_{mistake.__name__}.txt", text)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_trace_that_failed_leaves_what_the_next_call_initialises(error):
    made, fails = [], [True, True]

    @wend.function
    def fun(x):
        if not made:
            made.append(wend.Variable(2.0 * x))
            made.append(wend.Variable(made[0] + 1.0))
            wend.Variable(x)  # nobody holds it: gone with the trace
        if fails:
            raise fails.pop() and error
        return made[0].assign_add(x).value, made[1].value

    for _ in range(2):
        with pytest.raises(error):
            fun(1.0)
    assert [*fun(3.0)] == [9.0, 7.0]
    assert [*fun(3.0)] == [12.0, 7.0]
