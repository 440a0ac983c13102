"""Checks of a run: the first that fails, in program order, is raised after the run.

A program of XLA cannot stop. It carries the number of the first check that has failed, and the
words of the numbers that its message shows; loops end when there is one. Behind them are words for
the numbers of the elements of nested `vmap`s that compute by themselves what has failed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Graph, Node
from wend.ir.types import TensorType
from wend.ops.effects import checked, error_note, raise_if
from wend.ops.reducing import reduce_max, reduce_min
from wend.ops.shaping import broadcast_shapes
from wend.runtime.partial_writes import ELEMENT, attach_contents, outside

# Raises the error of a check, from the values that it has kept
Raise: TypeAlias = Callable[[Sequence[Any]], Any]

_LEAST_WORDS, _MOST_WORDS = 8, 64
# Of more maps around each other the inner ones are noted
_MOST_ELEMENTS = 4


@dataclass(frozen=True, slots=True)
class RunCheck:
    """One check.

    Attributes:
        node: the node that it belongs to.
        fail: raises its error.
        types: dtype and shape of each value that it keeps.
    """

    node: Node
    fail: Raise
    types: Sequence[tuple[np.dtype, tuple[int, ...]]]

    def raise_from(self, words: np.ndarray) -> NoReturn:
        """Raise the error, from the words that the run has kept."""
        values, start = [], 0
        words, elements = words[:-_MOST_ELEMENTS], words[-_MOST_ELEMENTS:]
        for dtype, shape in self.types:
            count = _words(dtype, shape)
            raw = words[start : start + count]
            start += count
            wide = dtype if dtype.itemsize >= 4 else np.dtype(_WIDE[dtype.kind])
            if len(raw) < count:
                raw = np.zeros(count, np.uint32)
            values.append(raw.view(wide).astype(dtype).reshape(shape)[()])
        try:
            with np.errstate(all="ignore"):
                self.fail(values)
        except BaseException as error:
            if self.node.source is not None:
                error.add_note(error_note(self.node))
            numbers = [int(x) - 1 for x in elements if x]
            attach_contents(
                error, {outside(ELEMENT, k): x for k, x in enumerate(reversed(numbers))}
            )
            raise
        raise AssertionError(f"the check of {self.node!r} failed in the run only")


def may_reduce_nothing(node: Node) -> bool:
    """Return whether a node reduces what may have no elements, and has no result then."""
    if node.op not in (reduce_max, reduce_min):
        return False
    dims = node.operands[0].tensor.dims
    return any(not isinstance(dims[axis], int) for axis in node.attrs["axes"])


# Operations whose errors show their operands
_SHOW_OPERANDS = {raise_if, checked, broadcast_shapes}

# What holds numbers of less than a word
_WIDE = {"b": "u4", "i": "i4", "u": "u4", "f": "f4"}


def _words(dtype: np.dtype, shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=int)) * max(dtype.itemsize // 4, 1)


def word_count(graph: Graph) -> int:
    """Return how many words the messages of a graph's checks need, up to a limit."""
    count = _LEAST_WORDS
    for node in graph.walk():
        tensors = [v.type for v in node.operands if isinstance(v.type, TensorType)]
        if node.op in _SHOW_OPERANDS and all(t.is_static for t in tensors):
            count = max(count, sum(_words(t.dtype, t.dims) for t in tensors))  # type: ignore[arg-type, misc]
    return min(count, _MOST_WORDS)


def encode(values: Sequence[Any], count: int) -> Any:
    """Return the words of some values, cut or filled up to so many, and of no element."""
    if not values:
        return jnp.zeros(count + _MOST_ELEMENTS, jnp.uint32)
    parts = []
    for value in values:
        x = jnp.asarray(value).reshape(-1)
        if x.dtype.itemsize < 4:
            x = x.astype(_WIDE[x.dtype.kind])
        if x.dtype.kind == "c":
            x = jnp.stack([x.real, x.imag], axis=-1)
        parts.append(jax.lax.bitcast_convert_type(x, jnp.uint32).reshape(-1))
    words = jnp.concatenate(parts)[:count]
    return jnp.pad(words, (0, count + _MOST_ELEMENTS - words.shape[0]))


def with_elements(words: Any, numbers: Sequence[Any]) -> Any:
    """Return words with the numbers of elements, each of a map around the next."""
    shown = [jnp.asarray(number, jnp.uint32) + 1 for number in numbers[-_MOST_ELEMENTS:]]
    return words.at[words.shape[0] - len(shown) :].set(jnp.stack(shown))


def has_elements(words: Any) -> Any:
    """Return whether words tell the number of an element."""
    return words[-1] != 0
