"""Lists, dicts, tuples and sets that `f` makes or reads."""

from __future__ import annotations

from tests.semantics.making.expressions import boolean, integer, known_boolean, known_integer, real
from tests.semantics.making.writer import Writer

KEYS = "'a'", "'b'", "'c'", "1", "0", "2.0", "True", "'k'", "(1, 2)", "None"


def local_list(w: Writer) -> None:
    name, size = w.name("l"), w.number(2, 4)
    items = ", ".join(real(w, 1) + " + 0.0" for _ in range(size))
    w.write(f"{name} = [{items}]")
    w.facts.setdefault("local lists", []).append((name, size))
    w.add(f"{name}[{w.number(-2, 1)}]", "float")
    w.add(f"len({name})", "int", known=True)
    w.add(f"sum({name})", "float")


def _in_scope(w: Writer, kind: str) -> list:
    return [pair for pair in w.facts.get(kind, []) if w.has(pair[0])]


def change_list(w: Writer) -> None:
    lists = _in_scope(w, "local lists")
    if not lists:
        return local_list(w)
    name, _ = w.choose(*lists)
    x = real(w, 1) + " + 0.0"
    if w.staged and not (w.risky and w.chance(0.2)):
        w.write(f"{name}[{w.choose(0, 1, -1, known_integer(w) + ' % 2')}] = {x}")
        return None
    w.write(
        w.choose(
            f"{name}.append({x})",
            f"{name}[{w.number(0, 1)}] = {x}",
            f"{name} += [{x}]",
            f"{name}.insert(1, {x})",
            f"{name}.reverse()",
            f"{name}[0], {name}[1] = {name}[1], {name}[0]",
            f"{name}.extend(v * 2 for v in {name}[:1])",
            f"{name}[{integer(w, 1)} % 2] = {x}",
            f"{name} = [v + 1 for v in {name}]",
            f"{name} = [*{name}, {x}]",
            f"{name} = list(reversed({name}))",
            f"{name} = {name} + {name}[:1]",
        )
    )
    return None


def read_list(w: Writer) -> None:
    lists = _in_scope(w, "local lists") + w.facts.get("lists", [])
    if not lists:
        return local_list(w)
    name, _ = w.choose(*lists)
    x = real(w, 1)
    w.assign(
        "float",
        w.choose(
            f"{name}[{integer(w, 1)} % 2] * 1.0",
            f"sum({name}[1:]) + 0.5",
            f"max(v * 1.0 for v in {name})",
            f"min({name}) * 0.5",
            f"sum(v * {x} for v in {name}) + 0.0",
            f"sum(i * v for i, v in enumerate({name})) + 0.0",
            f"sorted({name}, reverse=True)[0] * 1.0",
            f"(lambda first, *others: first + len(others) * 0.5)(*{name})",
            f"sum(a * b for a, b in zip({name}, {name}[1:])) * 1.0",
            f"(1.5 if {x} in {name} else 0.5)",
        ),
    )
    return None


def unpack(w: Writer) -> None:
    a, b, c = w.name("v"), w.name("v"), w.name("v")
    x, y, z = (real(w, 1) + " + 0.0" for _ in range(3))
    form = w.number(0, 3)
    if form == 0:
        w.write(f"{a}, {b} = {x}, {y}", f"{a}, {b} = {b}, {a}")
    elif form == 1:
        w.write(f"{a}, *{c} = [{x}, {y}, {z}]", f"{b} = sum({c})")
    elif form == 2:
        w.write(f"({a}, {b}), {c} = ({x}, {y}), {z}", f"{a} += {c}")
    else:
        w.write(f"*{c}, {b} = {x}, {y}, {z}", f"{a} = {c}[0] - {c}[-1]")
    w.add(a, "float", assigned=True)
    w.add(b, "float", assigned=True)


def local_dict(w: Writer) -> None:
    name = w.name("d")
    keys = w.random.sample(KEYS, w.number(2, 3))
    w.write(f"{name} = {{{', '.join(f'{k}: {real(w, 1)} + 0.0' for k in keys)}}}")
    w.facts.setdefault("local dicts", []).append((name, keys))
    w.add(f"{name}[{keys[0]}]", "float")
    w.add(f"{name}.get({keys[1]}, 0.5)", "float")
    w.add(f"len({name})", "int", known=True)
    w.add(f"({w.choose(*KEYS)} in {name})", "bool", known=True)


def change_dict(w: Writer) -> None:
    dicts = _in_scope(w, "local dicts")
    if not dicts:
        return local_dict(w)
    name, keys = w.choose(*dicts)
    x = real(w, 1) + " + 0.0"
    if w.staged and not (w.risky and w.chance(0.2)):
        w.write(w.choose(f"{name}[{keys[0]}] = {x}", f"{name}[{keys[1]}] += {real(w, 0)}"))
        return None
    key = w.choose(*KEYS)
    w.write(
        w.choose(
            f"{name}[{key}] = {x}",
            f"{name}[{keys[0]}] = {name}.pop({keys[0]})",
            f"{name}.setdefault({key}, {x})",
            f"{name}.update({{{key}: {x}}})",
            f"{name} = {{**{name}, {key}: {x}}}",
            f"{name}.update(z={x})",
            f"{name} = dict(reversed({name}.items()))",
            f"{name} = {name} | {{{key}: {x}}}",
            f"{name} = {{k: v + 1 for k, v in {name}.items()}}",
            f"del {name}[{keys[1]}]; {name}[{keys[1]}] = {x}",
            f"{name} = dict(sorted({name}.items(), key=lambda kv: str(kv[0])))",
        )
    )
    return None


def read_dict(w: Writer) -> None:
    options = [d[0] for d in w.facts.get("dicts", [])] + [d[0] for d in _in_scope(w, "local dicts")]
    if not options:
        return local_dict(w)
    name = w.choose(*options)
    form = w.number(0, 3)
    if form == 0:
        total = w.assign("float", "0.0")
        with w.block(f"for key, value in {name}.items():"):
            w.write(f"{total} = {total} * 2 + value * {w.choose('1', 'len(str(key))')}")
    elif form == 1:
        total = w.assign("float", "0.0")
        with w.block(f"for key in {name}:"):
            w.write(f"{total} = {total} * {w.choose(2, -1)} + {name}[key]")
    elif form == 2:
        w.assign("float", f"sum(v * i for i, v in enumerate({name}.values())) + {real(w, 0)}")
    else:
        w.assign(
            "float",
            w.choose(
                f"{name}.get('zz', {real(w, 0)})",
                f"list({name}.values())[0] * 1.0",
                f"max({name}.values()) * 0.5",
                f"next(iter({name}.items()))[1] + 0.5",
                f"{{v: k for k, v in enumerate({name})}}.get('a', 3) * 0.5",
            ),
        )
    return None


def comprehension(w: Writer) -> None:
    x, name = real(w, 1), w.name("l")
    w.write(
        w.choose(
            f"{name} = [v * {x} for v in (1.0, 2.0, -0.5)]",
            f"{name} = [i + {x} for i in range(3)]",
            f"{name} = [{x} if {boolean(w, 1)} else v for v in (0.5, 1.5)]",
            f"{name} = list({{k: k * {x} for k in (1.0, 2.0)}}.values())",
            f"{name} = [{x} + v for v in (1.0, 2.0, 3.0) if v > {known_integer(w)} % 3]",
            f"{name} = [u * v for u in (0.5, 1.0) for v in ({x}, 2.0)]",
        )
    )
    w.facts.setdefault("local lists", []).append((name, 2))
    w.add(f"sum({name})", "float")
    w.add(f"len({name})", "int", known=True)


def collections(w: Writer) -> None:
    name, x = w.name("c"), real(w, 1)
    form = w.number(0, 4)
    if form == 0:
        w.write(f"{name} = defaultdict(float)", f"{name}['a'] += {x}", f"{name}['b'] -= {x}")
        w.assign("float", f"{name}['a'] + {name}['c'] + len({name})")
    elif form == 1:
        w.write(f"{name} = deque([{x}, 1.5], maxlen=2)", f"{name}.append({real(w, 0)})")
        w.assign("float", f"{name}[0] - {name}.popleft() + {name}[0] * len({name})")
    elif form == 2:
        w.write(f"{name} = Counter('{w.choose('aab', 'bca', 'abcb')}')")
        w.assign("float", f"{name}['a'] * {x} + {name}['z']")
    elif form == 3:
        w.write(f"{name} = {{1, 2}} | {{{known_integer(w)}}}")
        w.assign("float", f"len({name}) * {x}")
    else:
        w.write(f"{name} = SimpleNamespace(v={x}, n=2)", f"{name}.v *= {name}.n")
        w.assign("float", f"{name}.v + 0.0")


def known_branch(w: Writer) -> None:
    """A branch that Python takes, whose paths leave different structures."""
    name, test = w.name("d"), known_boolean(w)
    with w.block(f"if {test}:"):
        w.write(f"{name} = {{'a': {real(w, 1)} + 0.0, 'n': 1.5}}")
    with w.block("else:"):
        w.write(f"{name} = {{'b': {real(w, 0)} + 0.0}}")
    w.assign("float", f"sum({name}.values()) * len({name})")
    w.assign("bool", f"('a' in {name})", known=True)


def growing_list(w: Writer) -> None:
    """A list that grows in a loop, and is then read."""
    name, i, x = w.name("grown"), w.name("i"), real(w, 1)
    w.write(f"{name} = [{w.choose('', '1.5', real(w, 0) + ' + 0.0')}]")
    with w.block(f"for {i} in range({integer(w, 0)} % 4 + 1):", staged=True):
        w.add(i, "int")
        if w.chance(0.3):
            with w.block(f"if {boolean(w, 1)}:", staged=True):
                w.write(f"{name}.append({x} + 0.0)")
        else:
            w.write(f"{name}.append({x} + {i} * 0.5)")
        if w.chance(0.2):
            w.write(f"if {name}: {name}[-1] += 1.0")  # as below
    if w.chance(0.2):
        # What nothing uses is not popped, and raises nothing.
        w.write(f"if {name}: {name}.pop()" if w.chance(0.5) else f"{name}.append(0.5)")
    w.assign("int", f"len({name})")
    w.assign(
        "float", f"sum({name}) + 0.0" if w.chance(0.5) else f"np.sum(np.array({name}))", scalar=True
    )


def nested_state(w: Writer) -> None:
    """Containers in containers, changed in branches and loops."""
    name, x, y = w.name("state"), real(w, 1), real(w, 0)
    w.write(f"{name} = {{'v': {x} + 0.0, 'l': [{y} + 0.0, 1.5], 'd': {{'n': 0}}}}")
    opening = w.choose(f"if {boolean(w, 1)}:", f"for _ in range({integer(w, 0)} % 4):")
    with w.block(opening, staged=True):
        w.write(
            w.choose(
                f"{name}['v'] = {name}['v'] * 0.5 + 1",
                f"{name}['l'][0] -= {y}",
                f"{name}['l'][0], {name}['l'][1] = {name}['l'][1], {name}['l'][0]",
            )
        )
        w.write(f"{name}['d']['n'] += 1")
    w.add(f"{name}['v']", "float")
    w.add(f"{name}['l'][0]", "float")
    w.add(f"{name}['d']['n']", "int")


STATEMENTS = {
    "a local list": (2, local_list, True),
    "a change of a list": (2, change_list, True),
    "a read of a list": (2, read_list, True),
    "unpacking": (1.5, unpack, True),
    "a local dict": (2, local_dict, True),
    "a change of a dict": (2.5, change_dict, True),
    "a read of a dict": (2.5, read_dict, True),
    "a comprehension": (2, comprehension, True),
    "a list that grows": (1.5, growing_list, True),
    "nested state": (1.5, nested_state, True),
    "collections": (1.5, collections, False),
    "a branch of Python": (1, known_branch, True),
}
