"""Names, attributes, items and results that are one of several texts."""

from __future__ import annotations

from tests.semantics.making.expressions import boolean, integer, real
from tests.semantics.making.writer import Writer

_TEXTS = ("low", "mid", "high")


def _loop(w: Writer) -> tuple[str, str]:
    """Return the opening of a loop, often one of more trips than Python runs, and its item."""
    i = w.name("i")
    if (found := w.pick(["array"])) and w.chance(0.3):
        return f"for {i} in {found.text}:", f"{i} "
    return f"for {i} in range({w.choose(integer(w, 0) + ' % 5', '3', '70', '80')}):", f"({i} % 7)"


def _text(w: Writer) -> str:
    return repr(w.choose(*_TEXTS))


def _test(w: Writer, place: str, item: str) -> str:
    """Return a test of the state, of the item, or of both."""
    of_state = w.choose(
        f"{place} == {_text(w)}",
        f"{place} != {_text(w)}",
        f"{place} in ({_text(w)}, {_text(w)})",
        f"{_text(w)} == {place}",
    )
    of_item = w.choose(f"{item} > {real(w, 0)}", f"{item} < 2", boolean(w, 1))
    return w.choose(of_state, of_item, f"{of_state} and {of_item}", f"{of_item} or {of_state}")


def _change(w: Writer, place: str, item: str) -> list[str]:
    """Return statements that may change the state."""
    table = "{'low': 'mid', 'mid': 'high', 'high': 'low'}"
    return w.choose(
        [f"if {_test(w, place, item)}:", f"    {place} = {_text(w)}"],
        [
            f"if {_test(w, place, item)}:",
            f"    {place} = {_text(w)}",
            f"elif {_test(w, place, item)}:",
            f"    {place} = {_text(w)}",
        ],
        [f"{place} = {_text(w)} if {_test(w, place, item)} else {_text(w)}"],
        [f"{place} = {table}[{place}]"],
        [f"{place} = {table}[{place}] if {_test(w, place, item)} else {place}"],
    )


def _use(w: Writer, place: str, item: str) -> list[str]:
    """Return statements of the loop that read the state."""
    return w.choose(
        [f"if {_test(w, place, item)}:", f"    print({place}, {item})"],
        [f'print(f"{{{place}}} {{{place}:>6}} {{{place}!r}}")'],
        [f"assert len({place}) < 5, {place}"],
        [],
        [],
    )


def _read(w: Writer, place: str) -> None:
    """Read the state when it is set."""
    name = w.name("v")
    w.write(
        w.choose(
            f"{name} = 1.0 if {place} == {_text(w)} else 2.5",
            f"{name} = {{'low': 0.5, 'mid': 1.0, 'high': 2.0}}[{place}]",
            f"{name} = {{'low': 0.5}}.get({place}, -1.0)",
            f"{name} = len({place}) * 0.5",
            f"{name} = 1.5 if 'i' in {place} or {place}.startswith('l') else 0.0",
        )
    )
    w.add(name, "float", assigned=True, scalar=True)
    if w.chance(0.3):
        w.write(f'print({place}, f"{{{place}!r:>8}}", [{place}], "%s" % {place})')
    if w.chance(0.1):
        w.write(f"{w.name('v')} = {{'low': 1, 'mid': 2}}[{place}]")  # KeyError


def machine(w: Writer) -> None:
    """A name, an attribute or an item that is the state of a machine."""
    owner, (opening, item) = w.name("state"), _loop(w)
    made, place = w.choose(
        (_text(w), owner),
        (_text(w), owner),
        (f"SimpleNamespace(v={_text(w)}, n=0)", f"{owner}.v"),
        (f"{{'v': {_text(w)}, 'n': 0}}", f"{owner}['v']"),
    )
    w.write(f"{owner} = {made}")
    with w.block(opening, staged=True):
        w.write(*_change(w, place, item))
        w.write(*_use(w, place, item))
        if place != owner and w.chance(0.5):
            w.write(f"{place.replace('v', 'n')} += 1")
        if w.chance(0.5):
            w.write(*_change(w, place, item))
        if w.chance(0.2):
            w.write(f"if {place} == {_text(w)}:", "    break")
    _read(w, place)
    if place == owner:
        w.add(place, "str", assigned=True)


def labels(w: Writer) -> None:
    """A list of labels, and how many there are of each."""
    name, counts, (opening, item) = w.name("labels"), w.name("counts"), _loop(w)
    label, v = w.name("label"), w.name("v")
    w.write(f"{name} = {w.choose('[]', '[' + _text(w) + ']')}")
    w.write(f"{counts} = {{'low': 0, 'mid': 0, 'high': 0}}")
    with w.block(opening, staged=True):
        w.write(f"{label} = {_text(w)}")
        w.write(*_change(w, label, item))
        w.write(f"{counts}[{label}] += 1")
        with w.block(f"if {_test(w, label, item)}:"):
            w.write(f"{name}.append({w.choose(label, _text(w), label)})")
    w.write(f"{v} = {name}.count('mid') * 0.5 + {counts}['high']")
    if w.chance(0.3):
        w.write(f"{v} += 1.0 if {name} and {name}[-1] == 'low' else 2.0")
    w.add(v, "float", assigned=True, scalar=True)


def result(w: Writer) -> None:
    """A function that returns a text, called in a loop."""
    name, (opening, item), v, last = w.name("grade"), _loop(w), w.name("v"), w.name("g")
    with w.block(f"def {name}(u, limit=2):"):
        w.write("if u > limit:", f"    return {_text(w)}")
        w.write(w.choose("elif u < 0:", "if u < 0.5:"), f"    return {_text(w)}")
        w.write(f"return {_text(w)}")
    w.write(f"{v}, {last} = 0.0, {w.choose('None', _text(w))}")
    with w.block(opening, staged=True):
        w.write(f"{last} = {name}({item} - {real(w, 0)} % 4)")
        w.write(f"if {last} == {_text(w)}:", f"    {v} += 0.5")
    w.add(v, "float", assigned=True, scalar=True)
    if w.chance(0.5):
        w.write(f"print({last})")


STATEMENTS = {
    "a text state": (1.5, machine, True),
    "labels": (1.2, labels, True),
    "a text as a result": (1, result, True),
}
