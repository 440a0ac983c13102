"""Random bits of small arrays as arithmetic on words, so that keys stay in registers.

The rounds are those of `rt/philox.py`, which writes words to memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wend.backends.native.rt.philox import MULTIPLIERS, ROUNDS, WEYL
from wend.backends.native.target.small_arrays import size
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import rewrite_nodes, with_operands
from wend.ops import elementwise
from wend.ops.build import Build
from wend.ops.control import while_
from wend.ops.random import UINT64, random_bits

# The most words that are drawn in registers: two blocks of the cipher
_MAX_WORDS, _WORDS_OF_BLOCK = 8, 4
# The most blocks of loops that become arithmetic, 140 operations each
_MAX_BLOCKS = 8


def expand_draws(graph: Graph) -> Graph:
    """Write draws of up to 8 words as arithmetic, in regions too."""
    if random_bits not in graph.ops:
        return graph
    b = Build(graph.name)

    def expand(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        if _is_short(node):
            b.nodes, b.source = nodes, node.source
            return [_draw(b, node, *operands[:2])]
        nodes.append(with_operands(node, operands, list(map(expand_draws, node.regions))))
        return nodes[-1].results

    return rewrite_nodes(graph, expand)


def expand_draws_in_loops(graph: Graph) -> Graph:
    """Write the short draws of loops as arithmetic, if they are few: a trip waits for its key."""
    if random_bits not in graph.ops:
        return graph
    words = (size(node.results[0].type) for node in _short_draws(graph))
    blocks = sum(-(-count // _WORDS_OF_BLOCK) for count in words)
    return _expanded_in_loops(graph) if 0 < blocks <= _MAX_BLOCKS else graph


def _expanded_in_loops(graph: Graph) -> Graph:
    def expand(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        inner = expand_draws if node.op is while_ else _expanded_in_loops
        nodes.append(with_operands(node, operands, list(map(inner, node.regions))))
        return nodes[-1].results

    return rewrite_nodes(graph, expand)


def _short_draws(graph: Graph, *, is_in_loop: bool = False) -> Iterator[Node]:
    """Yield the short draws in loops."""
    for node in graph.nodes:
        if is_in_loop and _is_short(node):
            yield node
        for region in node.regions:
            yield from _short_draws(region, is_in_loop=is_in_loop or node.op is while_)


def _is_short(node: Node) -> bool:
    if node.op is not random_bits:
        return False
    type = node.results[0].tensor
    return type.is_static and 0 < size(type) <= _MAX_WORDS


def _draw(b: Build, node: Node, key: Value, counter: Value) -> Value:
    """Return the words of the blocks after a counter."""
    keys, words = _words(b, key), _words(b, counter)
    count = size(node.results[0].type)
    drawn: list[Value] = []
    while len(drawn) < count:
        words = _following(b, words)
        drawn += _encrypt(b, keys, words)
    shape = tuple(dim for dim in node.results[0].tensor.dims if isinstance(dim, int))
    return b.from_elements(drawn[:count], shape) if shape else drawn[0]


def _words(b: Build, x: Value) -> list[Value]:
    return [b.gather(x, b.integer(k)) for k in range(size(x.type))]


def _following(b: Build, words: Sequence[Value]) -> list[Value]:
    """Return the next number of 256 bits."""
    following, carry = [], b.constant(1, UINT64)
    for word in words:
        following.append(b.add(word, carry))
        carry = b.cast(b.lt(following[-1], carry), UINT64)
    return following


def _encrypt(b: Build, key: Sequence[Value], counter: Sequence[Value]) -> list[Value]:
    """Return the words of a block."""
    factors = [b.constant(x, UINT64) for x in MULTIPLIERS]
    steps = [b.constant(x, UINT64) for x in WEYL]
    for number in range(ROUNDS):
        if number:
            key = [b.add(x, step) for x, step in zip(key, steps, strict=True)]
        products = [*zip(counter[::2], factors, strict=True)]
        low = [b.mul(*pair) for pair in products]
        high = [b.emit(elementwise.mul_high, *pair) for pair in products]
        mixed = [
            _xor(b, _xor(b, x, odd), word)
            for x, odd, word in zip(high[::-1], counter[1::2], key, strict=True)
        ]
        counter = [mixed[0], low[1], mixed[1], low[0]]
    return [*counter]


def _xor(b: Build, x: Value, y: Value) -> Value:
    return b.emit(elementwise.bit_xor, x, y)
