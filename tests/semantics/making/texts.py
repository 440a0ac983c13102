"""Texts and effects: print, warnings, logging, f-strings, repr."""

from __future__ import annotations

from tests.semantics.making.expressions import array, boolean, integer, known_integer, real
from tests.semantics.making.writer import Writer


def _value(w: Writer) -> str:
    """Write an expression whose repr is the same in every way of running."""
    with w.restricted(scalar=False):
        return _plain(w, w.choose(integer, real, real)(w, 1))


def _plain(w: Writer, text: str) -> str:
    """Return `text`, or a name for it, without the signs that an f-string may not hold."""
    if not set(text) & set("'\"{}!"):
        return text
    name = w.name("v")
    w.write(f"{name} = {text}")
    return name


def printing(w: Writer) -> None:
    value, x, k = _value(w), _plain(w, real(w, 1)), _plain(w, integer(w, 1))
    w.write(
        w.choose(
            f"print({value})",
            f"print('{w.choose('v', 'a b')}', {value}, {boolean(w, 1)})",
            f"print(f'{{{value}}} and {{{x}:.2f}}')",
            f"print({value}, {w.number(0, 3)}, sep='{w.choose(';', '')}')",
            f"print({value}, end='.')",
            "print('here')",
            f"print([{value}])",
            f"print(({value}, 'a'), {{'k': {value}}})",
            f"print(str({value}) + '!')",
            f"print(repr({value}))",
            f"print('{{}}-{{:.1f}}'.format({value}, {x}))",
            f"print(format({x}, '.3f'))",
            f"print('a' * {known_integer(w)}, {value})",
            f"print(f'{{{value}!r:>8}}|')",
            f"print({array(w, 0)} * 1.0)",
            f"print(f'{{{x}:{w.choose('8.1f', '.2e', 'g', '+.1f', '<7', '010.3f', '%')}}}|')",
            f"print(f'{{{k}:{w.choose('03d', '+d', ',', 'x', '>5', 'b')}}}')",
            f"print('{{0}} {{0!r}} {{v:>6}}'.format({value}, v={x}))",
            f"print({boolean(w, 1)}, {boolean(w, 0)}, sep='/', flush=True)",
            f"print(*[{value}, {value}])",
        )
    )


def warning(w: Writer) -> None:
    value = _value(w)
    w.write(
        w.choose(
            f"warnings.warn('{w.choose('odd', 'even')}')",
            f"warnings.warn(f'value {{{value}}}', UserWarning)",
            f"warnings.warn('late', DeprecationWarning, stacklevel={w.number(1, 2)})",
        )
    )


def logged(w: Writer) -> None:
    value = _value(w)
    w.write(
        w.choose(
            f"logging.warning('%s', {value})",
            "logging.getLogger('app').warning('here')",
            f"logging.error(f'{{{value}}}')",
            f"logging.warning('%.2f and %d', {real(w, 1)}, {integer(w, 0)})",
        )
    )


def text(w: Writer) -> None:
    """Texts that Python knows during tracing."""
    name, k = w.name("s"), _plain(w, known_integer(w))
    source = w.pick(["str"])
    base = _plain(w, source.text if source else "'abc'")
    w.write(
        w.choose(
            f"{name} = {base} + str({k})",
            f"{name} = f'{{{base}}}-{{{k}:>3}}'",
            f"{name} = {base}.upper() * ({k} % 3)",
            f"{name} = ','.join([{base}, 'x'])",
            f"{name} = {base}[::-1].replace('a', 'zz')",
            f"{name} = '%s:%d' % ({base}, {k})",
        )
    )
    w.add(name, "str", known=True)
    w.add(f"len({name})", "int", known=True)
    w.add(f"({name} == 'abc0')", "bool", known=True)
    if w.chance(0.5):
        w.write(f"print({name})")


def shown(w: Writer) -> None:
    """An object that prints itself."""
    name, o, value = w.name("Shown"), w.name("o"), _value(w)
    with w.block(f"class {name}:"):
        w.write("def __init__(self, v):", "    self.v = v")
        w.write(f"def {w.choose('__repr__', '__str__')}(self):", "    return f'<{self.v}>'")
    w.write(f"{o} = {name}({value})")
    w.write(w.choose(f"print(str({o}))", f"print(f'{{{o}}}')", f"print('o', {o}.v)"))


def kept_text(w: Writer) -> None:
    """The text of a moment, printed after the value has changed."""
    variables = [s for s in w.of_kind("int", "float") if s.assigned and not s.scalar]
    if variables:
        name, v = w.name("s"), w.choose(*variables).text
        w.write(f"{name} = {w.choose(f'str({v})', f'f{chr(39)}<{{{v}}}>{chr(39)}')}")
        w.write(f"{v} = {v} + 1", f"print({name}, {v})")


STATEMENTS = {
    "print": (4, printing, True),
    "a warning": (1, warning, True),
    "logging": (1, logged, True),
    "a text": (1.5, text, False),
    "an object that prints itself": (0.7, shown, False),
    "a kept text": (0.8, kept_text, False),
}
