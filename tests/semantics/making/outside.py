"""The world around `f`: globals that it reads, and steps that change them."""

from __future__ import annotations

from tests.semantics.making.writer import Writer


def _numbers(w: Writer, low: int = 3, high: int = 4) -> list[int]:
    return [w.number(-2, 6) for _ in range(w.number(low, high))]


def global_number(w: Writer) -> None:
    name = w.name("k")
    if w.chance(0.5):
        w.outside(f"{name} = {w.number(-2, 4)}", f"{name} = {w.number(-3, 6)}", f"{name} += 1")
        w.add(name, "int", known=True)
    else:
        value = w.number(-4, 8) / 2
        w.outside(f"{name} = {value}", f"{name} = {w.number(-6, 9) / 2}", f"{name} = -{name}")
        w.add(name, "float", known=True)


def global_flag(w: Writer) -> None:
    name = w.name("flag")
    w.outside(f"{name} = {w.choose('True', 'False')}", f"{name} = not {name}", f"{name} = True")
    w.add(name, "bool", known=True)


def global_text(w: Writer) -> None:
    name = w.name("text")
    w.outside(f"{name} = 'ab'", f"{name} = 'abc'", f"{name} = 'b'", f"{name} = {name} + 'a'")
    w.add(name, "str", known=True)
    w.add(f"len({name})", "int", known=True)
    w.add(f"({name} == 'abc')", "bool", known=True)
    w.add(f"{name}.count('a')", "int", known=True)


def global_list(w: Writer) -> None:
    name, kind = w.name("items"), w.choose("int", "float")
    numbers = [n if kind == "int" else n / 2 for n in _numbers(w)]
    new = w.number(-3, 7) if kind == "int" else w.number(-3, 7) / 2
    w.outside(
        f"{name} = {numbers}",
        f"{name}[{w.number(-2, 2)}] = {new}",
        f"{name}.append({new})",
        f"{name}.reverse()",
        f"{name} = sorted({name})",
        f"{name}[:] = [{new}, *{name}]",
        f"{name}.insert(1, {new})",
        f"{name} += [{new}]",
    )
    w.facts.setdefault("lists", []).append((name, kind))
    reads = (
        f"{name}[{w.number(-2, 2)}]",
        f"sum({name})",
        f"max({name})",
        f"{name}[-1]",
        f"sum({name}[1:])",
        f"sorted({name})[0]",
        f"next(iter({name}))",
        f"list(reversed({name}))[0]",
    )
    for text in w.random.sample(reads, 3):
        w.add(text, kind, known=True)
    w.add(f"len({name})", "int", known=True)
    w.add(f"({new} in {name})", "bool", known=True)


def global_dict(w: Writer) -> None:
    name, kind = w.name("table"), w.choose("int", "float")
    keys = w.choose(
        ["'a'", "'b'"], ["'b'", "'a'", "'c'"], ["1", "'a'"], ["2.0", "0"], ["True", "2"]
    )
    items = {k: w.number(-2, 5) if kind == "int" else w.number(-2, 5) / 2 for k in keys}
    first, new = keys[0], w.number(-3, 8) if kind == "int" else w.number(-3, 8) / 2
    w.outside(
        f"{name} = {{{', '.join(f'{k}: {v}' for k, v in items.items())}}}",
        f"{name}[{first}] = {new}",
        f"{name}[{first}] = {name}.pop({first})",
        f"{name}['z'] = {new}",
        f"{name}.update({{{keys[-1]}: {new}}})",
        f"{name} = dict(reversed({name}.items()))",
        f"{name}.setdefault('y', {new})",
        f"{name}.pop('z', None)",
    )
    w.facts.setdefault("dicts", []).append((name, kind, keys))
    reads = (
        f"{name}[{first}]",
        f"{name}.get({keys[-1]})",
        f"{name}.get('z', {new})",
        f"sum({name}.values())",
        f"next(iter({name}.values()))",
        f"list({name}.values())[-1]",
        f"max({name}.values())",
        f"{{**{name}, 'w': {new}}}['w']",
    )
    for text in w.random.sample(reads, 3):
        w.add(text, kind, known=True)
    w.add(f"len({name})", "int", known=True)
    w.add(f"('z' in {name})", "bool", known=True)
    w.add(f"(list({name})[0] == {first})", "bool", known=True)


def global_array(w: Writer) -> None:
    name = w.name("w")
    numbers = [w.number(-4, 8) / 2 for _ in range(3)]
    new = w.number(-6, 9) / 2
    w.outside(
        f"{name} = np.array({numbers})",
        f"{name}[{w.number(-2, 2)}] = {new}",
        f"{name} *= 2",
        f"{name} = np.array([{new}, 0.5, 1.0])",
        f"{name}.fill({new})",
        f"{name}.sort()",
        f"np.add({name}, 1, out={name})",
        f"{name}[1:] = {new}",
    )
    w.add(name, "array", known=True)
    w.facts.setdefault("arrays", []).append(name)
    w.add(f"float({name}[0])", "float", known=True)
    w.add(f"{name}[{w.number(-2, 2)}].item()", "float", known=True)
    w.add(f"int({name}.sum() > {new})", "int", known=True)
    w.add(f"bool({name}[1] > {new})", "bool", known=True)
    w.add(f"{name}.tolist()[2]", "float", known=True)
    if w.chance(0.3):
        view = w.name("view")
        w.outside(f"{view} = {name}[::-1]", f"{view}[0] = {new}")
        w.add(view, "array", known=True)
        w.note("a view of a global")


def global_mixture(w: Writer) -> None:
    name = w.name("mix")
    w.outside(
        f"{name} = {{'n': [1, 2], 't': (0.5, {{'deep': 3}}), 's': 'ab'}}\n"
        f"{name}['w'] = np.array([1.0, 2.0, 0.5])",
        f"{name}['n'][0] = {w.number(2, 7)}",
        f"{name}['n'].append(5)",
        f"{name}['t'][1]['deep'] = {w.number(-2, 7)}",
        f"{name}['t'] = (1.5, {{'deep': 1}})",
        f"{name}['w'][1] = {w.number(3, 7)}.5",
        f"{name}['s'] = 'abcd'",
        f"{name}['n'] = {name}['n'][::-1]",
    )
    w.add(f"{name}['n'][0]", "int", known=True)
    w.add(f"sum({name}['n'])", "int", known=True)
    w.add(f"{name}['t'][1]['deep']", "int", known=True)
    w.add(f"{name}['t'][0]", "float", known=True)
    w.add(f"len({name}['s'])", "int", known=True)
    w.add(f"{name}['w']", "array", known=True)


def global_set(w: Writer) -> None:
    name = w.name("pool")
    numbers = w.choose("{1, 2}", "{0, 3, 5}", "frozenset([1, 4])")
    w.outside(
        f"{name} = {numbers}", f"{name} = {name} | {{{w.number(0, 6)}}}", f"{name} = {{1, 2}}"
    )
    w.add(f"len({name})", "int", known=True)
    w.add(f"({w.number(0, 5)} in {name})", "bool", known=True)
    w.add(f"sum({name})", "int", known=True)


def global_collection(w: Writer) -> None:
    name, form = w.name("deep"), w.number(0, 3)
    new = w.number(-2, 7)
    if form == 0:
        w.outside(
            f"{name} = deque([1, 2, 3], maxlen=4)",
            f"{name}.append({new})",
            f"{name}.rotate(1)",
            f"{name}.appendleft({new})",
        )
        w.add(f"{name}[0]", "int", known=True)
        w.add(f"sum({name})", "int", known=True)
    elif form == 1:
        w.outside(
            f"{name} = Counter('abca')",
            f"{name}['a'] += 1",
            f"{name}.update('cc')",
            f"{name}['d'] = 2",
        )
        w.add(f"{name}['a']", "int", known=True)
        w.add(f"{name}.most_common(1)[0][1]", "int", known=True)
        w.add(f"{name}['d']", "int", known=True)
    elif form == 2:
        w.outside(
            f"{name} = SimpleNamespace(n=1, r=0.5, sub=SimpleNamespace(m={new}))",
            f"{name}.n = {new}",
            f"{name}.r = 1.5",
            f"{name}.sub.m += 1",
            f"{name}.sub = SimpleNamespace(m=4)",
            f"vars({name})['n'] = 6",
        )
        w.add(f"{name}.n", "int", known=True)
        w.add(f"{name}.r", "float", known=True)
        w.add(f"{name}.sub.m", "int", known=True)
        w.add(f"len(vars({name}))", "int", known=True)
    else:
        w.outside(
            f"Row{name} = namedtuple('Row{name}', 'n r')\n{name} = Row{name}({new}, 0.5)",
            f"{name} = {name}._replace(n=3)",
            f"{name} = Row{name}(2, 2.5)",
        )
        w.add(f"{name}.n", "int", known=True)
        w.add(f"{name}[1]", "float", known=True)
    w.note("collections")


def global_module(w: Writer) -> None:
    name = w.name("mod")
    w.outside(
        f"{name} = ModuleType('{name}')\n{name}.n = {w.number(0, 4)}\n"
        f"{name}.scale = lambda v: v * 2",
        f"{name}.n = {w.number(-2, 7)}",
        f"{name}.scale = lambda v: v - 1",
    )
    w.add(f"{name}.n", "int", known=True)
    w.add(f"getattr({name}, 'n')", "int", known=True)
    w.facts.setdefault("functions", []).append((f"{name}.scale", 1))


def hidden_builtin(w: Writer) -> None:
    name = w.choose("abs", "max", "sum")
    w.changes.append(f"{name} = lambda *v, **n: 3")
    w.changes.append(f"globals().pop('{name}', None)")
    w.add(f"{name}([2, 1])" if name != "abs" else "abs(-2)", "int", known=True)


WORLD = {
    "a global number": (4, global_number),
    "a global flag": (1, global_flag),
    "a global text": (1, global_text),
    "a global list": (3, global_list),
    "a global dict": (3, global_dict),
    "a global array": (3, global_array),
    "nested containers": (1, global_mixture),
    "a global set": (1, global_set),
    "a global collection": (1, global_collection),
    "a module": (1, global_module),
    "a hidden builtin": (0.4, hidden_builtin),
}
