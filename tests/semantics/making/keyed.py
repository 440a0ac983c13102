"""Keys that Python knows: dicts and sets that change, names and items that are deleted, sorting."""

from __future__ import annotations

from tests.semantics.making.containers import KEYS
from tests.semantics.making.expressions import boolean, integer, known_boolean, real
from tests.semantics.making.writer import Writer

ORDERS = "abs", "lambda u: -u", "lambda u: u % 2", "lambda u: (u > 0, -u)"


def counts(w: Writer) -> None:
    """A dict of counts and sums, whose keys all trips have."""
    name, i = w.name("d"), w.name("i")
    a, b = w.random.sample(KEYS[:4], 2)
    w.write(f"{name} = {{{a}: {real(w, 0)} + 0.0, {b}: 0}}")
    with w.block(f"for {i} in range({w.choose(integer(w, 0) + ' % 5', '3')}):", staged=True):
        w.add(i, "int")
        w.write(
            w.choose(
                f"{name}[{b}] = {name}.get({b}, 0) + {i}",
                f"{name}[{b}] += {i}",
                f"if {boolean(w, 1)}: {name}[{b}] += 1",
            ),
            w.choose(
                f"{name}[{a}] = {name}.setdefault({a}, 7.0) * 0.5 + {real(w, 1)}",
                f"{name}[{a}] = max({name}[{a}], {name}.get('zz', {real(w, 0)}) + 0.0)",
                f"{name}.update({{{a}: {name}[{a}] - {i}}})",
            ),
        )
    w.assign("float", f"{name}[{a}] + {name}.get({b}, 0.5)")
    w.assign("int", f"{name}.pop({b}) + {name}.pop('zz', 3) + len({name})")


def traced(w: Writer) -> None:
    """A dict with numbers of the run as keys, which often has an item for each."""
    name, i, count = w.name("d"), w.name("i"), w.number(2, 4)
    w.write(f"{name} = {{k: {w.choose('0', '0.5', 'k * 1.5')} for k in range({count})}}")
    key = f"({integer(w, 1)}) % {count + (w.chance(0.1))}"
    use = w.choose(
        f"{name}[{key}] += 1",
        f"{name}[{key}] = {name}.get({key}, 0) * 2",
        f"if {name}[{key}] < 2: {name}[{key}] = {name}[0] + 1",
        f"try: {name}[{key}] += 1\nexcept KeyError: {name}[0] += 2",
    )
    with w.block(f"for {i} in range({integer(w, 0)} % 5):", staged=True):
        w.add(i, "int")
        w.write(*use.split("\n"))
    w.assign("float", f"{name}[{key}] + sum({name}.values()) * 0.5")


def taken(w: Writer) -> None:
    """Items that are taken from a dict, and put there."""
    name = w.name("d")
    a, b, c = w.random.sample(KEYS[:4] + KEYS[7:], 3)
    x, y = real(w, 1), real(w, 0)
    w.write(f"{name} = {{{a}: {x} + 0.0, {b}: {y} + 0.0}}")
    w.assign(
        "float",
        w.choose(
            f"{name}.pop({a}) + {name}.setdefault({c}, {y}) + len({name})",
            f"{name}.setdefault({a}, 0.5) * 2 - {name}.pop({c}, {y})",
            f"{name}.popitem()[1] + {name}.get({b}, -1.0)",
            f"{name}.get({c}, {name}[{a}]) + sum({name}.pop(k) for k in list({name}))",
        ),
    )
    if w.chance(0.5):
        with w.block(f"if {known_boolean(w)}:"):
            w.write(f"{name}[{c}] = {y} + 0.0")
    if w.chance(0.2):
        w.write(f"del {name}[{w.choose(a, b, c)}]")  # a KeyError at times
    w.assign("float", f"sum({name}.values()) * 0.5 + len({name})")


def deleted(w: Writer) -> None:
    """Names, items and attributes that are deleted."""
    name, x = w.name("gone"), real(w, 1)
    form = w.number(0, 4)
    if form == 0:
        w.write(f"{name} = {x} + 0.0", f"{(v := w.name('v'))} = {name} * 2", f"del {name}")
        w.add(v, "float", assigned=True)
        if w.chance(0.3):
            w.write("try:", f"    {v} = {name}", "except NameError:", f"    {v} = {v} - 1")
    elif form == 1:
        w.write(f"{name} = [{x} + 0.0, 1.5, {real(w, 0)} + 0.0, 0.5]")
        w.write(f"del {name}[{w.choose('0', '-1', '1:3', '::2', ':1')}]")
        w.assign("float", f"{name}[0] - sum({name}) * len({name})")
    elif form == 2:
        w.write(f"{name} = SimpleNamespace(v={x}, n=1)", f"del {name}.v")
        w.assign("float", f"getattr({name}, 'v', {real(w, 0)}) + {name}.n")
    elif form == 3:
        w.write(f"{name} = {{'a': {x} + 0.0, 'b': 1.5}}", f"del {name}['{w.choose('a', 'b')}']")
        w.assign("float", f"sum({name}.values()) + ('a' in {name})")
    else:
        i = w.name("i")
        with w.block(f"for {i} in range({integer(w, 0)} % 4):", staged=True):
            w.write(f"{name} = {i} * {x}", f"{name} += 1", f"del {name}")
        w.write(f"{name} = {x} + 0.0")
        w.add(name, "float", assigned=True)


def keys(w: Writer) -> None:
    """Sets of keys that Python knows, and traced numbers that are looked for in them."""
    name, x = w.name("seen"), real(w, 1)
    a, b = w.random.sample(KEYS, 2)
    w.write(f"{name} = {w.choose('set()', f'{{{a}}}', f'{{{a}, {b}}}', f'frozenset([{a}])')}")
    if w.chance(0.6):
        w.write(f"{name} = {name} {w.choose('|', '-', '&', '^')} {{{b}, {w.choose(*KEYS)}}}")
    if w.chance(0.4):
        w.write(f"{name} = set({name})", f"{name}.{w.choose('add', 'discard')}({w.choose(*KEYS)})")
    w.assign("float", f"len({name}) * {x}")
    w.add(f"({w.choose(*KEYS)} in {name})", "bool", known=True)
    numbers = ", ".join(str(w.number(-1, 4)) for _ in range(3))
    w.assign("bool", f"({integer(w, 1)} {w.choose('in', 'not in')} {{{numbers}}})")


def ordered(w: Writer) -> None:
    """Numbers and tuples of them, sorted by a key."""
    x, y, order = real(w, 1), real(w, 0), w.choose(*ORDERS)
    reverse = w.choose("", ", reverse=True")
    name, form = w.name("l"), w.number(0, 4)
    if form == 0:
        w.write(f"{name} = sorted([{x}, {y}, 1.5, -0.5], key={order}{reverse})")
        w.assign("float", f"{name}[0] * 2 - {name}[1] + {name}[-1] * 0.5")
    elif form == 1:
        w.write(f"{name} = [{x} + 0.0, {y} + 0.0, 1.5]", f"{name}.sort(key={order}{reverse})")
        w.assign("float", f"{name}[0] * 2 - {name}[1]")
    elif form == 2:
        place = w.number(0, 1)
        w.write(f"{name} = [({x} + 0.0, 0), ({y} + 0.0, 1), (1.0, 2)]")
        w.write(f"{name} = sorted({name}, key=lambda t: t[{place}]{reverse})")
        w.assign("float", f"{name}[0][0] * 2 - {name}[1][0] + {name}[2][1]")
    elif form == 3:
        w.write(f"{name} = {{'a': {x} + 0.0, 'b': {y} + 0.0, 'c': 1.5}}")
        w.assign("float", f"max({name}.items(), key=lambda kv: (kv[1] > 1, -kv[1]))[1] + 0.0")
    else:
        i = w.name("i")
        w.write(f"{name} = []")
        with w.block(f"for {i} in range({integer(w, 0)} % 4 + 1):", staged=True):
            w.write(f"{name}.append(({x} + {i} * 1.5) % 4)")
        in_place = f"{name}.sort({reverse[2:]})"
        w.write(w.choose(f"{name} = sorted({name}, key={order}{reverse})", in_place))
        w.assign("float", f"{name}[0] * 2 - {name}[-1]", scalar=True)


STATEMENTS = {
    "counts by key": (1.2, counts, True),
    "a dict at traced keys": (1.2, traced, True),
    "items taken from a dict": (1.2, taken, False),
    "del": (1.2, deleted, True),
    "a set of keys": (1, keys, True),
    "sorted by a key": (1.5, ordered, True),
}
