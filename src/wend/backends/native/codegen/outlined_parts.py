"""Parts of long functions as functions of their own, of which equal ones are shared."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import field

from wend.base.lazy.dataclass import dataclass

_LOOP = re.compile(r"(?<=!llvm\.loop !)(\d+)")
# Numbers that otherwise equal parts may differ in: the text before, the type, the number
_CONSTANT = re.compile(
    r"(= (?:getelementptr \w+, ptr \S+, (?=i64)|f(?:add|sub|mul|div) (?=double|float))"
    r"(i64|double|float) (?:%[\w.]+, )?)(\d+|0x[0-9A-F]+)\b"
)


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Part:
    """A range of lines as a function.

    Attributes:
        start: the position of its first line.
        stop: the position after its last line.
        slots: the positions of the lines that set up stack slots of its own.
        returns: its result type.
        params: its params, with types.
        body: its lines.
        args: what its caller passes, with types.
        results: the values that later code uses, with types.
        exits: the exits that it can leave to.
        stores_results: whether it stores the results where its last param points.
    """

    start: int
    stop: int
    slots: Sequence[int]
    returns: str
    params: str
    body: Sequence[str]
    args: Sequence[str]
    results: Sequence[tuple[str, str]]
    exits: Sequence[str]
    stores_results: bool

    @property
    def signature(self) -> str:
        """Its result type and its params."""
        return f"{self.returns}({self.params})"


@dataclass(eq=False, repr=False, slots=True)
class Parts:
    """The functions that parts became.

    Attributes:
        attributes: the attributes of the functions.
        loop_metadata: the definition of each loop's metadata, without its own number.
        lines: the definitions of the functions.
        count: how many these are.
    """

    attributes: str
    loop_metadata: Mapping[str, str]
    lines: list[str] = field(default_factory=list)
    count: int = 0

    def add(self, parts: Sequence[Part]) -> list[tuple[str, Sequence[str]]]:
        """Return the function of each part, and what to pass to it besides its arguments.

        Parts that are equal but for numbers are one function, with params for the numbers.
        """
        groups: dict[str, list[tuple[Part, list[str]]]] = defaultdict(list)
        for part in parts:
            text = "\n".join(part.body)
            skeleton = _LOOP.sub(lambda m: self.loop_metadata.get(m[1], m[1]), text)
            numbers = [match[3] for match in _CONSTANT.finditer(text)]
            groups[part.signature + _CONSTANT.sub(r"\1#", skeleton)].append((part, numbers))
        functions: dict[Part, tuple[str, Sequence[str]]] = {}
        for group in groups.values():
            columns = [*zip(*(numbers for _, numbers in group), strict=True)]
            varying = {k for k, column in enumerate(columns) if len({*column}) > 1}
            name = self._define(group[0][0], varying)
            for part, _ in group:
                functions[part] = (
                    name,
                    [
                        f"{match[2]} {match[3]}"
                        for k, match in enumerate(_CONSTANT.finditer("\n".join(part.body)))
                        if k in varying
                    ],
                )
        return [functions[part] for part in parts]

    def _define(self, part: Part, varying: Set[int]) -> str:
        """Define the function of a part with params for some of its numbers; return its name."""
        params, count = [part.params] if part.params else [], itertools.count()

        def param(match: re.Match[str]) -> str:
            k = next(count)
            if k not in varying:
                return match[0]
            params.append(f"{match[2]} %number{k}")
            return f"{match[1]}%number{k}"

        body = _CONSTANT.sub(param, "\n".join(part.body))
        head = f"{part.returns} @wend_outlined{self.count}({', '.join(params)})"
        self.lines += [f"define internal {head} noinline nounwind {self.attributes}{{", body, "}"]
        self.count += 1
        return f"@wend_outlined{self.count - 1}"
