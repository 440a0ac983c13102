"""Lists and dicts that have several names, and become others on some paths, for the table."""

from __future__ import annotations

import heapq
from collections import defaultdict
from types import SimpleNamespace

import numpy as np

from tests.capture.snippets import FLOATS, INTS, on

OTHER = "which is known only at run time: in Python both would change"
NO_KEYS = "To fix it: give it the same keys on both paths"

_TABLE = [1.0, 2.0]


# ---------------------------------------------------------------- changed by calls
@on(*FLOATS)
def lists_changed_by_calls_before_the_loop_is_traced(x):
    """Python runs the first trip, and it is taken back: what it holds is traced after it."""
    turned, pushed, s = [1.0, 2.0], [4, 6, 5], 0.0
    for i in range(3):
        turned.reverse()
        heapq.heapreplace(pushed, 9 - i)
        s = s + x * turned[0] + pushed[0]
    return s, turned, pushed


@on(*FLOATS)
def an_entry_after_a_pop_on_one_path(x):
    stack = [x, 2.0 * x, 3.0]
    if x > 1:
        stack.pop()
        stack[-1] = x * 5.0
    return stack[-1]


# ---------------------------------------------------------------- a choice between two
@on(*FLOATS)
def a_list_or_another_read(x):
    a = [1.0, 2.0]
    b = a
    if x > 1:
        a = [3.0, x]
    return a, b


@on(*FLOATS)
def a_list_or_another_changed(x):
    a = [1.0, 2.0]
    if x > 1:
        a = [3.0, x]
    a[0] = 9.0
    a[1] += x
    return a


@on(*FLOATS, refused=OTHER)
def a_list_with_another_name_or_another(x):
    a = [1.0, 2.0]
    b = a
    if x > 1:
        a = [3.0, 4.0]
    a[0] = 9.0
    return a, b


@on(*FLOATS, refused=OTHER)
def the_other_name_changed(x):
    a = [1.0, 2.0]
    b = a
    if x > 1:
        a = [3.0, 4.0]
    b.append(9.0)
    return a[0], b[0]


@on(*FLOATS, refused=OTHER)
def a_list_or_that_of_another_name(x):
    a, b = [1.0, 2.0], [3.0, 4.0]
    if x > 1:
        a = b
    a.reverse()
    return a, b


@on(*FLOATS, refused=OTHER)
def an_equal_copy_on_one_path(x):
    a = [1.0, 2.0]
    b = a
    if x > 1:
        a = list(a)
    a[0] = 9.0
    return a, b


@on(*FLOATS)
def lists_that_change_places(x):
    a, b = [1.0, 2.0], [3.0, 4.0]
    if x > 1:
        a, b = b, a
    a[0] = 9.0
    return a, b


@on(*FLOATS, refused=OTHER)
def changed_before_it_becomes_another(x):
    a = [1.0, 2.0]
    b = a
    if x > 1:
        a[0] = 7.0
        a = [3.0, 4.0]
    return a, b


@on(*FLOATS, refused=OTHER)
def a_part_of_a_dict_or_another(x):
    d = {"row": [1.0, 2.0]}
    row = d["row"]
    if x > 1:
        row = [3.0, 4.0]
    row[0] = 9.0
    return row, d


@on(*FLOATS, refused=OTHER)
def a_dict_with_another_name_or_another(x):
    a = {"p": 2.0, "q": 1.0}
    b = a
    if x > 1:
        a = {"p": 3.0, "q": 1.0}
    a["p"] += 1.0
    return a, b


@on(*FLOATS, refused=OTHER)
def an_attribute_or_another(x):
    row = [1.0, 2.0]
    held = SimpleNamespace(row=row)
    if x > 1:
        held.row = [3.0, 4.0]
    held.row[0] = 9.0
    return row, held.row


@on(*FLOATS, refused=OTHER)
def chosen_by_a_ternary(x):
    a = [1.0, 2.0]
    b = a if x > 1 else [3.0, 4.0]
    b[0] = 9.0
    return a, b


@on(*FLOATS, refused=OTHER)
def chosen_by_a_helper(x):
    def pick(row):
        if x > 1:
            return row
        return [3.0, 4.0]

    def change(row):
        row[0] = 9.0

    a = [1.0, 2.0]
    b = pick(a)
    change(b)
    return a, b


# ---------------------------------------------------------------- lists in lists and dicts
PART = "is known only at run time: changes to one would show in the other"


@on(*FLOATS, refused=PART)
def a_part_that_becomes_another(x):
    d = {"row": [1.0, 2.0]}
    row = d["row"]
    if x > 1:
        d["row"] = [3.0, 4.0]
    d["row"][0] = 9.0
    return row, d


@on(*FLOATS, refused=PART)
def a_part_that_becomes_one_of_another_name(x):
    d, row = {"row": [1.0, 2.0]}, [5.0, 6.0]
    if x > 1:
        d["row"] = row
    d["row"][0] = 9.0
    return row, d


@on(*FLOATS, refused=PART)
def a_part_that_changes_and_becomes_another(x):
    d = {"row": [1.0, 2.0]}
    row = d["row"]
    if x > 1:
        d["row"][0] = x
        d["row"] = [3.0, 4.0]
    return row, d


@on(*FLOATS, refused=PART)
def parts_that_change_places(x):
    rows = [[1.0, 2.0], [3.0, 4.0]]
    first = rows[0]
    if x > 1:
        rows[0], rows[1] = rows[1], rows[0]
    first[0] = 9.0
    return rows


@on(*FLOATS)
def parts_that_change_places_alone(x):
    rows = [[1.0, 2.0], [3.0, 4.0]]
    if x > 1:
        rows[0], rows[1] = rows[1], rows[0]
    rows[0][0] = 9.0
    return rows


@on(*FLOATS)
def parts_that_stay(x):
    rows = [[1.0, 2.0], [3.0, 4.0]]
    first = rows[0]
    if x > 1:
        rows[0][1] = x
        rows[1][0] += 1.0
    first[0] = 9.0
    return rows, first


@on(*FLOATS)
def a_part_beside_one_that_changes(x):
    d = {"row": [1.0, 2.0], "k": 0.0}
    row = d["row"]
    if x > 1:
        d["k"] = x
    d["row"][0] = 9.0
    return row, d


@on(*INTS)
def rows_put_in_on_the_way(n):
    d, row = {"row": [1.0, 2.0]}, None
    for i in range(n):
        row = [i * 1.0, 2.0]
        d["row"] = row
    d["row"][1] += 1.0
    return d


@on(*INTS, refused=PART)
def a_part_that_becomes_another_in_each_trip(n):
    d = {"row": [1.0, 2.0]}
    row = d["row"]
    for i in range(n):
        d["row"] = [i * 1.0, 4.0]
    row[0] = 9.0
    return row, d


# ---------------------------------------------------------------- loops
@on(*INTS, refused=OTHER)
def another_list_in_each_trip(n):
    a = [1.0, 2.0]
    b = a
    for i in range(n):
        a = [3.0 + i, 4.0]
    a[0] = 9.0
    return a, b


@on(*INTS, refused=OTHER)
def changed_and_another_in_each_trip(n):
    a = [1.0, 2.0]
    b = a
    for i in range(n):
        a[0] += 1.0
        a = [a[0] + i, 4.0]
    return a, b


@on(*INTS)
def changed_and_another_in_each_trip_alone(n):
    a = [1.0, 2.0]
    for i in range(n):
        a[0] += 1.0
        a = [a[0] + i, 4.0]
        a[1] -= 1.0
    a[1] *= 2.0
    return a


@on(*INTS, refused=OTHER)
def the_list_of_the_last_trip(n):
    a, last = [1.0, 2.0], [0.0, 0.0]
    for i in range(n):
        last = a
        if i > 2:
            a = [0.0, 1.0]
        a[0] += i * 1.0
    return a, last


@on(*INTS)
def lists_that_change_places_in_a_loop(n):
    a, b = [1.0, 2.0], [3.0, 4.0]
    for _ in range(n):
        a, b = b, a
        a[0] = a[0] + 1.0
    b[1] = 7.0
    return a, b


# ---------------------------------------------------------------- lists that grow
@on(*FLOATS)
def a_list_that_grows_on_both_paths_and_that_nobody_reads_later(x):
    items = [0.0]
    if x > 1:
        for _ in range(int(abs(x)) % 3):
            items.append(items[-1] + x)
        if x > 2:
            items.append(1.0)
    else:
        items.append(2.0)
    return x


# ---------------------------------------------------------------- dicts that fill themselves
@on(*FLOATS, refused=NO_KEYS)
def a_missing_key_read_on_one_path(x):
    d = defaultdict(float)
    y = d["k"] if x > 1 else 0.0
    return y, len(d)


@on(*FLOATS, refused="has another structure on each path")
def another_missing_key_read_on_one_path(x):
    d = defaultdict(float)
    d["a"] = x
    if x > 1:
        y = d["b"] + x
    else:
        y = x
    return y, len(d)


@on(*FLOATS)
def a_missing_key_read_on_both_paths(x):
    d = defaultdict(float)
    if x > 1:
        d["k"] += x
    else:
        d["k"] -= 1.0
    return dict(d)


@on(*FLOATS)
def a_key_that_is_there(x):
    d = defaultdict(float)
    d["k"] = 1.0
    if x > 1:
        x = x + d["k"]
    return x, dict(d)


# ---------------------------------------------------------------- at a position of the run
_WEIGHTS = (np.ones(2), np.arange(2.0))


@on(*INTS)
def an_item_of_numbers(n):
    return [1.0, 2.5, 4.0][n % 3], (1, 2, 0.5)[-(n % 3)], [True, False][n % 2]


@on(0, 1, -2)
def an_item_of_arrays(n):
    rows = [np.arange(3.0), np.ones(3) * n]
    rows.append(rows[n] + 1)
    return rows[n] * 2, rows[-1]


@on(*INTS)
def items_in_a_loop(n):
    x = np.ones(2)
    for i in range(n):
        x = x * _WEIGHTS[i % len(_WEIGHTS)] + [1, 0.5][-(i % 2)]
    return x


@on(*INTS)
def an_item_in_a_while_that_python_begins(n):
    total, weights = 0.0, [n * n + 1.0, 3.0]
    while total < 10:
        total = total + weights[n % 2]
    return total


@on(0, 1)
def an_item_that_short_loops_do_not_count(n):
    total = n * 0.5
    for _ in range(50):
        for _ in range(50):
            total = total * 0.5 + [1.0, 2.0][n]
    return total


@on(*INTS, refused="its value is not known while the function is traced")
def containers_are_no_items(n):
    counts = [{"hits": 0, "sum": 0.0} for _ in range(3)]
    for i in range(n):
        count = counts[i % 3]
        count["hits"] += 1
        count["sum"] += i
    return counts


@on(*INTS)
def a_list_that_grows_by_its_own_items(n):
    numbers = [1, 1]
    for i in range(2, n):
        numbers.append(numbers[i - 1] + numbers[i - 2])
    return numbers[-1], len(numbers)


@on(*INTS)
def a_list_that_grows_in_a_while_by_its_own_items(n):
    sums, i = [0.5], 0
    while i < n:
        sums.append(sums[i] + sums[i // 2])
        i += 1
    return sums[i // 2]


@on(0, 1, 2, -1, -2, -3)
def an_item_that_may_not_be_there(n):
    items = [1.0, 2.0]
    return items[n]


@on(*INTS)
def an_item_in_a_short_loop(n):
    squash = [abs, float, int]
    x = n
    for i in range(3):
        x = squash[i](x) + [1, 2.0, 3][i]
    return x


@on(0, 1)
def an_item_of_its_own_changed(n):
    v = np.arange(3.0)
    item = [v + 1, v * 2][n]
    item[n] = 7.0
    return item, v


@on(0, 1, refused="which is known only at run time; in NumPy both would change")
def an_item_that_is_held_changed(n):
    items = [np.arange(3.0), np.ones(3)]
    item = items[n]
    item[0] = 7.0
    return items


@on(0, 1, refused="so it would have changed too")
def an_item_read_after_the_list_has_changed_it(n):
    items = [np.arange(3.0) + n, np.ones(3) * n]
    item = items[n]
    items[0][1] = 7.0
    return item.sum()


@on(np.int8(0), np.int8(1), refused="out of bounds for int8")
def an_item_that_does_not_fit(n):
    return [n, 300][n]


@on(0, 1, refused="its value is not known while the function is traced")
def an_item_of_unlike_ones(n):
    return [np.ones(2), np.ones(3)][n]
