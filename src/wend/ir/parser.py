"""The parser of the text that `printer` writes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from wend.base.errors import ParseError
from wend.base.source import Source
from wend.ir.dtypes import LONG_NAMES
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import TABLE, Op
from wend.ir.printer import region_name
from wend.ir.types import (
    HOST,
    TOKEN,
    Dim,
    ListType,
    MaybeType,
    ResourceType,
    Symbol,
    TensorType,
    Type,
)

_SOURCE = re.compile(r"(.*):(\d{1,9})(?: @([\w.\-/]+))?")  # file, line, scope
_TOKENS = re.compile(
    r"""(?P<space>[ \t]+)
    |(?P<source>;[^\n]*)
    |(?P<newline>\n)
    |(?P<string>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")
    |(?P<number>-?(?:inf|nan)(?!\w)|-?\d+(?:\.\d*)?(?:e[+-]?\d+)?)
    |(?P<value>%\d+)
    |(?P<side>@\d+)
    |(?P<word>[^\W\d]\w*)
    |(?P<mark>\.\.\.|[(){}\[\]<>,:=?])""",
    re.VERBOSE,
)


# Regions, types and tuples may be nested this deep: Python's stack has room for that.
MAX_NESTING = 200
_ESCAPE = re.compile(r"\\(x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "'": "'", '"': '"'}


def parse(
    text: str,
    *,
    table: Sequence[Any] = (),
    ops: Mapping[str, Op] = TABLE,
    named: Mapping[str, Graph] | None = None,
    symbol: Callable[[str], Symbol] = Symbol,
) -> Graph:
    """Parse a graph.

    Args:
        text: the output of `to_text`.
        table: the entries that the text refers to as `@0`, `@1`, …
        ops: the operations by name.
        named: the regions of which the text has the name only.
        symbol: makes the dimension symbol of a name in the text.

    Raises:
        ParseError: the text is not a graph; the message holds the line.
    """
    return _Parser(text, table, ops, named or {}, symbol).whole()


class _Parser:
    def __init__(
        self,
        text: str,
        table: Sequence[Any],
        ops: Mapping[str, Op],
        named: Mapping[str, Graph],
        symbol: Callable[[str], Symbol],
    ) -> None:
        self.lines = text.split("\n")
        self.tokens = list(self._split(text))
        self.position = 0
        self.table = table
        self.ops = ops
        self.named = named
        self.symbol = symbol
        self.depth = 0
        self.values: dict[str, Value] = {}

    def _split(self, text: str) -> Any:
        line, position = 1, 0
        while position < len(text):
            match = _TOKENS.match(text, position)
            if match is None:
                raise ParseError(f"line {line}: cannot read {text[position : position + 20]!r}")
            position = match.end()
            kind = match.lastgroup
            if kind == "newline":
                line += 1
            elif kind != "space":
                yield kind, match.group(), line
        yield "end", "", line

    # tokens
    def fail(self, expected: str) -> ParseError:
        _, text, line = self.tokens[self.position]
        return ParseError(
            f"line {line}: expected {expected}, found {text!r}\n  {self.lines[line - 1].strip()}"
        )

    def kind(self) -> str:
        return str(self.tokens[self.position][0])

    def peek(self, text: str) -> bool:
        return bool(self.tokens[self.position][1] == text)

    def take(self, kind: str) -> str:
        if self.kind() != kind:
            raise self.fail(f"a {kind}")
        self.position += 1
        return str(self.tokens[self.position - 1][1])

    def expect(self, *texts: str) -> None:
        for text in texts:
            if not self.peek(text):
                raise self.fail(repr(text))
            self.position += 1

    def accept(self, text: str) -> bool:
        if self.peek(text):
            self.position += 1
            return True
        return False

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Refuse what is nested too deeply."""
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise self.fail(f"at most {MAX_NESTING} levels")
        yield
        self.depth -= 1

    def integer(self) -> int:
        text = self.take("number")
        if not text.isdecimal() or len(text) > 19:
            raise ParseError(f"{text:.40} is no size or count")
        return int(text)

    # graphs
    def whole(self) -> Graph:
        self.expect("graph")
        graph = self.graph(self.name())
        if self.kind() != "end":
            raise self.fail("the end")
        return graph

    def name(self) -> str:
        if self.kind() == "string":
            return _unquoted(self.take("string"))
        return self.take("word")

    def graph(self, name: str) -> Graph:
        self.expect("(")
        params = []
        while not self.accept(")"):
            number = self.take("value")
            self.expect(":")
            params.append(self.define(number, Value(self.type())))
            self.accept(",")
        captures = self.integer() if self.accept("captures") else 0
        if captures > len(params):
            raise self.fail(f"at most {len(params)} captures")
        self.expect("{")
        nodes = []
        while not self.accept("return"):
            nodes.append(self.node())
        results = self.operands("}")
        return Graph(
            name,
            tuple(params),
            tuple(nodes),
            tuple(results),
            tuple(params[len(params) - captures :]),
        )

    def define(self, number: str, value: Value) -> Value:
        if number in self.values:
            raise ParseError(f"{number} is defined twice")
        self.values[number] = value
        return value

    def operands(self, end: str) -> list[Value]:
        operands = []
        while not self.accept(end):
            number = self.take("value")
            if number not in self.values:
                raise ParseError(f"{number} is used before it is defined")
            operands.append(self.values[number])
            self.accept(",")
        return operands

    def node(self) -> Node:
        numbers, types = [], []
        while not self.accept("="):
            numbers.append(self.take("value"))
            self.expect(":")
            types.append(self.type())
            self.accept(",")
        op_name = self.take("word")
        if op_name not in self.ops:
            raise ParseError(f"there is no operation called {op_name!r}")
        op = self.ops[op_name]
        self.expect("(")
        operands = self.operands(")")
        attrs = {}
        if self.accept("{"):
            while not self.accept("}"):
                key = self.take("word")
                self.expect("=")
                if key in attrs:
                    raise ParseError(f"{op_name} has two attrs called {key}")
                attrs[key] = self.attr()
                self.accept(",")
        source = self.source()
        regions: list[Graph] = []
        while self.kind() == "word" and self.is_region(op, len(regions)):
            regions.append(self.region())
        node = Node(op, operands, attrs, regions, types, source)
        for number, result in zip(numbers, node.results, strict=True):
            self.define(number, result)
        return node

    def region(self) -> Graph:
        """Parse a region, or take the one that the text refers to: `callee is g3`."""
        label = self.take("word")
        if not self.accept("is"):
            with self.nested():
                return self.graph(label)
        name = self.take("word")
        if name not in self.named:
            raise ParseError(f"there is no graph called {name!r}")
        return self.named[name]

    def is_region(self, op: Op, index: int) -> bool:
        is_open = bool(op.regions) and op.regions[-1].endswith("*")
        return (is_open or index < len(op.regions)) and self.peek(region_name(op, index))

    def source(self) -> Source | None:
        if self.kind() != "source":
            return None
        text = self.take("source")[1:].strip()
        match = _SOURCE.fullmatch(text)
        if match is None:
            raise ParseError(f"{text.rpartition(':')[2]:.40} is no line number")
        file, line, scope = match.groups("")
        return Source(file, int(line), "", scope)

    # types
    def type(self) -> Type:
        word = self.take("word")
        if word in ("token", "host"):
            return TOKEN if word == "token" else HOST
        if word in ("list", "maybe", "ref"):
            self.expect("<")
            with self.nested():
                inner = self.type()
            self.expect(">")
            if word == "list":
                return ListType(inner)
            if word == "maybe":
                return MaybeType(inner)
            if not isinstance(inner, TensorType):
                raise self.fail("an array's type in ref<…>")
            return ResourceType(inner)
        return self.tensor_type(word)

    def tensor_type(self, word: str) -> TensorType:
        if word not in LONG_NAMES:
            raise ParseError(f"there is no dtype called {word!r}")
        self.expect("[")
        if self.accept("..."):
            self.expect("]")
            return TensorType(LONG_NAMES[word], None)
        dims: list[Dim] = []
        while not self.accept("]"):
            is_number = self.kind() == "number"
            dims.append(self.integer() if is_number else self.symbol(self.take("word")))
            self.accept(",")
        return TensorType(LONG_NAMES[word], tuple(dims))

    # attrs
    def attr(self) -> Any:
        match self.kind():
            case "string":
                return _unquoted(self.take("string"))
            case "number":
                return _number(self.take("number"))
            case "side":
                return self.side(self.take("side"))
            case "word":
                return self.word_attr()
        if self.accept("("):
            items = []
            with self.nested():
                while not self.accept(")"):
                    items.append(self.attr())
                    self.accept(",")
            return tuple(items)
        self.expect(":")
        is_dtype = self.tokens[self.position][1] in LONG_NAMES
        if is_dtype and self.tokens[self.position + 1][1] != "[":
            return LONG_NAMES[self.take("word")]
        return self.type()

    def word_attr(self) -> Any:
        word = self.take("word")
        if word in ("None", "True", "False"):
            return {"None": None, "True": True, "False": False}[word]
        if word == "complex" and self.accept("("):
            real = _number(self.take("number"))
            self.expect(",")
            imag = _number(self.take("number"))
            self.expect(")")
            return complex(real, imag)
        if self.peek("["):
            return self.array(self.tensor_type(word))
        return self.symbol(word)

    def array(self, type: TensorType) -> np.ndarray:
        self.expect("<")
        numbers = []
        while not self.accept(">"):
            numbers.append(self.attr())
        try:
            array = np.array(numbers, type.dtype).reshape(type.dims)  # type: ignore[arg-type]
        except (ValueError, TypeError, OverflowError) as error:
            raise ParseError(f"an array of {type}: {error}") from None
        array.flags.writeable = False
        return array

    def side(self, reference: str) -> Any:
        index = int(reference[1:10])
        if len(reference) > 10 or index >= len(self.table):
            raise ParseError(
                f"the text refers to {reference:.20}, the side table has {len(self.table)}"
            )
        return self.table[index]


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _unquoted(token: str) -> str:
    """Return the text that `repr` has quoted."""

    def unescaped(match: re.Match[str]) -> str:
        code = match[1]
        if code in _ESCAPED:
            return _ESCAPED[code]
        if len(code) == 1 or int(code[1:], 16) > 0x10FFFF:
            raise ParseError(f"cannot read {match[0]!r} in a string")
        return chr(int(code[1:], 16))

    return _ESCAPE.sub(unescaped, token[1:-1])
