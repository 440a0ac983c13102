"""What gives things once, and containers of every kind, for the conformance table."""

from __future__ import annotations

import collections
import contextlib
import functools
import io
import itertools
import operator
import random
from array import array
from types import SimpleNamespace

import numpy as np

from tests.capture.snippets import FLOATS, INTS, on

ONCE = "gives its items once"
GROWS = "grows in a loop or branch"
OTHER_LENGTH = "has another structure on each path"


def _count_up():
    k = 0
    while True:
        yield k
        k += 1


# ---------------------------------------------------------------- iterators
@on(*INTS, refused=ONCE)
def next_in_a_while(n):
    numbers = iter([10, 20, 30, 40, 50, 60])
    s = i = 0
    while i < n:
        s += next(numbers)
        i += 1
    return s


@on(*INTS)
def next_in_a_short_for(n):
    numbers = iter([10, 20, 30])
    s = 0
    for _ in range(3):
        s += next(numbers) * n
    return s


@on(*INTS)
def next_with_a_default(n):
    numbers = iter([10, 20])
    s = 0
    for _ in range(4):
        s += next(numbers, 1) * n
    return s


@on(*INTS, refused=ONCE)
def next_in_an_if(n):
    numbers = iter([10, 20, 30])
    if n > 1:
        a = next(numbers)
    else:
        a = next(numbers) + next(numbers)
    return a + next(numbers)


@on(*INTS, refused=ONCE)
def next_of_a_generator(n):
    numbers = _count_up()
    s = 0
    for _ in range(n):
        s += next(numbers)
    return s


@on(*INTS, refused=ONCE)
def next_by_its_method(n):
    numbers = itertools.count()
    s = 0
    for _ in range(n):
        s += numbers.__next__()
    return s


@on(*INTS, refused=ONCE)
def send_to_a_generator(n):
    def sums():
        total = 0
        while True:
            total = total + ((yield total) or 0)

    running = sums()
    next(running)
    s = 0
    for i in range(n):
        s = running.send(i)
    return s


class _Counter:
    def __init__(self):
        self.k = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.k += 1
        return self.k


@on(*INTS)
def next_of_a_class(n):
    counter = _Counter()
    s = 0
    for _ in range(n):
        s = s + next(counter)
    return s, counter.k


@on(*INTS, refused=ONCE)
def an_iterator_gone_through_in_a_branch(n):
    numbers = iter([1, 2, 3])
    s = 0
    if n > 1:
        for v in numbers:
            s += v
    return s + sum(numbers)


@on(*INTS, refused=ONCE)
def an_iterator_taken_apart(n):
    numbers = iter([1, 2])
    s = 0
    if n > 1:
        a, b = numbers
        s = a + b
    return s, len([*numbers])


@on(*INTS, refused=ONCE)
def an_iterator_as_arguments(n):
    numbers = iter([1, 2])
    s = max(*numbers) if n > 1 else 0
    return s, len([*numbers])


@on(*INTS, refused=ONCE)
def an_iterator_in_a_list(n):
    numbers = iter([1, 2])
    s = 0
    for _ in range(n):
        s += len([*numbers, 3])
    return s, len([*numbers])


@on(*INTS, refused=ONCE)
def an_iterator_searched(n):
    numbers = iter([1, 2, 3])
    s = n
    if n > 1 and 2 in numbers:
        s = 7
    return s, len([*numbers])


@on(*INTS, refused=ONCE)
def an_iterator_put_into_a_list(n):
    numbers, out = iter([1, 2]), [0, 0]
    if n > 1:
        out[:] = numbers
    return out, len([*numbers])


@on(*INTS)
def iterators_made_where_they_are_used(n):
    s = 0
    for _ in range(n):
        a, b = iter([1, 2])
        first, *rest = (k * 2 for k in range(3))
        s += max(*iter([a, b, first])) + len([*iter(rest)]) + (2 in iter([1, 2]))
    return s


@on(*INTS, refused=ONCE)
def an_iterator_gone_through_in_a_loop(n):
    pairs = zip([1, 2, 3], [4, 5, 6])  # noqa: B905
    s = 0
    for _ in range(n):
        for v, w in pairs:
            s += v * w
    return s


@on(*INTS, refused=ONCE)
def an_iterator_gone_through_by_a_builtin(n):
    numbers = map(abs, [2, 4, 6])
    s = 0
    for _ in range(n):
        s += sum(numbers)
    return s


@on(*INTS, refused=ONCE)
def an_iterator_gone_through_in_a_comprehension(n):
    numbers = iter([1, 2, 3])
    found = [v * 2 for v in numbers] if n > 1 else [0]
    return sum(found) + sum(numbers)


@on(*INTS)
def iterators_made_in_the_loop(n):
    s = 0
    for i in range(n):
        numbers = iter([i, 2, 3])
        s += next(numbers) + sum(numbers) + sum(v * i for v in [1, 2])
        for a, b in zip([i, 2], map(abs, [-1, i])):  # noqa: B905
            s += a * b
        s += next(v for v in [i, 2]) + sum(_first(_count_up(), 3))
    return s


def _first(iterator, count):
    return [next(iterator) for _ in range(count)]


@on(*INTS)
def a_generator_inside(n):
    def below(limit):
        k = 0
        while k < limit:
            yield k
            k += 1

    return sum(k * n for k in below(4))


@on(*INTS, refused=ONCE)
def a_file_read_in_a_loop(n):
    file = io.StringIO("1\n2\n3\n4\n5\n6\n")
    s = 0
    for _ in range(n):
        s += int(file.readline())
    return s


@on(*INTS, refused="draws a number")
def random_numbers_in_a_loop(n):
    generator = random.Random(1)
    s = 0.0
    for _ in range(n):
        s += generator.random()
    return s


@on(*INTS, refused="draws a number")
def random_numbers_of_numpy_in_a_branch(n):
    generator = np.random.default_rng(1)
    s = generator.random() if n > 1 else 0.0
    return s + generator.random()


# ---------------------------------------------------------------- deques and their kin
@on(*INTS)
def a_deque_in_a_branch(n):
    items = collections.deque([1, 2])
    if n > 1:
        items.append(n)
    else:
        items.appendleft(5)
    return list(items)


@on(*INTS)
def a_deque_in_a_loop(n):
    items = collections.deque([1, 2])
    for _ in range(n):
        items.append(items.popleft() + 1)
        items.rotate(1)
    return list(items)


@on(*INTS)
def a_deque_of_bounded_length(n):
    items = collections.deque([0] * 3, maxlen=3)
    for i in range(n):
        items.append(n * i)
    return sum(items), list(items)


@on(*INTS)
def an_item_of_a_deque(n):
    items = collections.deque([1, 2, n])
    if n > 1:
        items[0] = 7
    return list(items)


@on(*INTS, refused=OTHER_LENGTH)
def a_counter_in_a_branch(n):
    counts = collections.Counter()
    if n > 1:
        counts["a"] += 1
    else:
        counts["b"] += 2
    return counts["a"], counts["b"]


@on(*INTS)
def a_counter_in_a_loop(n):
    counts = collections.Counter(a=0)
    for _ in range(n):
        counts["a"] += 1
    return counts["a"]


@on(*INTS)
def a_default_dict_with_its_keys(n):
    sums = collections.defaultdict(int, a=0)
    for i in range(n):
        sums["a"] += i
    if n > 1:
        sums["a"] += 10
    return sums["a"]


@on(*INTS, refused=OTHER_LENGTH)
def the_order_of_a_dict(n):
    items = collections.OrderedDict(a=1, b=2)
    if n > 1:
        items.move_to_end("a")
    return list(items) == ["a", "b"]


class _Items(list):
    pass


class _Table(dict):
    pass


@on(*INTS, refused=OTHER_LENGTH)
def a_kind_of_list_in_a_branch(n):
    items = _Items([1, 2])
    if n > 1:
        items.append(n)
    return len(items)


@on(*INTS)
def a_kind_of_list_in_a_loop(n):
    items = _Items([1, 2])
    for i in range(n):
        items[0], items[1] = items[1], items[0] + i
    return items[0], items[1]


@on(*INTS)
def a_kind_of_dict(n):
    table = _Table(a=1)
    if n > 1:
        table["a"] = n
    for _ in range(n):
        table["a"] += 1
    return table["a"]


@on(*INTS)
def a_counter_in_a_dict(n):
    nested = {"counts": collections.Counter(a=0)}
    for i in range(n):
        nested["counts"]["a"] += i
    return nested["counts"]["a"]


@on(*INTS)
def a_deque_in_a_list(n):
    nested = [collections.deque([0, 0]), 1]
    for i in range(n):
        nested[0].append(i)
        nested[0].popleft()
        nested[1] += i
    return list(nested[0]), nested[1]


@on(*INTS)
def a_list_in_a_list(n):
    nested = [[0, 1], 1]
    for i in range(n):
        nested[0].reverse()
        nested[1] += i
        nested[0].append(nested[0].pop(0) + i)
    return nested


@on(*INTS, refused="only arrays and numbers can depend on a traced test")
def bytes_in_a_branch(n):
    held = bytearray(b"ab")
    if n > 1:
        held.append(3)
    return len(held)


@on(*INTS, refused="only arrays and numbers can change in a staged loop")
def an_array_of_the_standard_library(n):
    held = array("d", [1.0])
    for _ in range(n):
        held[0] += 1
    return held[0]


# ---------------------------------------------------------------- methods of lists, dicts, sets
@on(*INTS)
def insert_on_one_path(n):
    items = [1, 2]
    if n > 1:
        items.insert(0, n)
    else:
        items.insert(1, 7)
    return items


@on(*INTS)
def sort_or_reverse(n):
    items = [3, 1, 2]
    if n > 1:
        items.sort()
    else:
        items.reverse()
    return items


@on(*INTS)
def clear_in_a_loop(n):
    items = [1, 2]
    for i in range(n):
        items.clear()
        items.extend([i, 2])
    return items


@on(*INTS)
def update_on_one_path(n):
    table = {"a": 1, "b": 2}
    if n > 1:
        table.update(a=n)
    else:
        table.update({"b": n})
    for i in range(n):
        table["a"] = table.setdefault("a", 5) + i
    return table


@on(*INTS, refused="only arrays and numbers can depend on a traced test")
def add_to_a_set_on_one_path(n):
    held = {1}
    if n > 1:
        held.add(2)
    return len(held)


# ---------------------------------------------------------------- methods given to others
@on(*FLOATS)
def append_given_to_map(x):
    items = []
    if x > 1:
        list(map(items.append, [1.0, 2.0]))
    else:
        list(map(items.append, [3.0, 4.0]))
    return items


@on(*FLOATS, refused=GROWS)
def append_given_to_map_on_one_path(x):
    items = []
    if x > 1:
        list(map(items.append, [1.0, 2.0]))
    return len(items)


@on(*FLOATS, refused=GROWS)
def append_given_to_partial(x):
    items = []
    put = functools.partial(items.append, x)
    if x > 1:
        put()
    return len(items)


@on(*FLOATS, refused=GROWS)
def append_by_its_name(x):
    items = []
    if x > 1:
        operator.methodcaller("append", 1.0)(items)
    return len(items)


# ---------------------------------------------------------------- parts that no name tells
@on(*INTS)
def an_attribute_of_an_item(n):
    points = [SimpleNamespace(v=k, tags=[k]) for k in range(3)]
    for i in range(n):
        for point in points:
            point.v += i
        points[1].v += 1
    if n > 1:
        points[0].v = 50
        points[0].tags[0] = 7
        points[1].tags[0] += n
    return [point.v for point in points], [point.tags[0] for point in points]


@on(*INTS)
def parts_of_what_a_call_gives(n):
    point, items = SimpleNamespace(v=1), [1, 2]

    def get():
        return point

    def get_items():
        return items

    if n > 1:
        get().v = n
        get_items()[0] = 5
    for i in range(n):
        get().v += i
        get_items()[1] += i
    return point.v, items


# ---------------------------------------------------------------- leaving a `try`
@on(*FLOATS)
def the_else_of_a_try_that_is_left(x):
    t = 0.0
    for _ in range(3):
        try:
            t += x
            if t > 3:
                continue
        except ValueError:
            t = -1.0
        else:
            t += 0.5
        finally:
            t += 0.25
    return t


@on(*INTS, refused="may raise UnboundLocalError")
def a_name_error_that_is_caught(n):
    for i in range(n):
        z = i
    try:
        return z
    except NameError:
        return -7


# ---------------------------------------------------------------- methods of the user's own
class _Everything:
    def __contains__(self, item):
        return True

    def __iter__(self):
        return iter([1.0, 2.0])


@on(*FLOATS)
def a_class_that_says_what_it_holds(x):
    everything = _Everything()
    return x in everything, x not in everything, sum(v * x for v in everything)


@on(*FLOATS)
def a_context_manager_by_a_generator(x):
    log = [0.0]

    @contextlib.contextmanager
    def counted():
        log[0] += 1
        yield 2.0
        log[0] += 10

    t = 0.0
    while t < x:
        with counted() as k:
            t += k
    return t, log


# ---------------------------------------------------------------- changed by what is not captured
class _Tally:
    def __init__(self):
        self.k = 0
        self.sums = [0]

    def __add__(self, other):
        self.k += 1
        self.sums[0] += other
        return other

    def __getitem__(self, i):
        self.k += 1
        return i

    def __iter__(self):
        self.k += 1
        yield 1
        yield 2


@on(*INTS)
def an_operator_that_changes_its_operand(n):
    tally = _Tally()
    t = 0
    for i in range(n):
        t = t + (tally + i) + tally[i]
        for v in tally:
            t = t + v
    if n > 1:
        t += tally[3]
    return t, tally.k, tally.sums


class _Holder:
    def __init__(self):
        self.tally = _Tally()


@on(*INTS)
def an_operator_of_an_attribute(n):
    holder = _Holder()
    t = 0
    for i in range(n):
        t = t + (holder.tally + i)
    return t, holder.tally.k


def _noted(log):
    for i in range(3):
        log[0] += i
        yield i


@on(*INTS)
def what_a_generator_changes(n):
    log, given, count = [0], [0], 0

    def numbers():
        nonlocal count
        for i in range(3):
            log[0] += i
            count += 1
            yield i

    s = sum(numbers()) if n > 1 else 0
    for _ in range(n):
        s = s + sum(numbers()) + sum(_noted(given))
    return s, log, count, given
