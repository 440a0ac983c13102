"""The operations whose errors handlers of captured code catch: a test comes before them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from operator import and_, or_
from typing import Any, NamedTuple

import numpy as np

from wend.capture.stage.raises import is_handled_here
from wend.eager import raising
from wend.eager.dispatch import apply
from wend.ir.graph import Node
from wend.ops import indexing, linalg, parts, reducing, updating
from wend.ops.loop_counters import as_integer
from wend.ops.raising import leading_axes
from wend.ops.shapes import known_position
from wend.trace.recording.recording import Recording, current
from wend.trace.state.templates import Text

Failure = tuple[Callable[[], Any], type[BaseException], Callable[[], str]]


def _of_positions(
    recording: Recording, node: Node, pairs: Iterable[tuple[int, Any]]
) -> Iterator[Failure]:
    """Yield the failures of positions along axes of the first operand of a node."""
    array, dims = recording.wrap(node.operands[0]), node.operands[0].tensor.dims
    for axis, position in pairs:
        if known_position(as_integer(position), dims[axis]) is None:
            yield _Position(recording.wrap(position), axis, array).failure()


class _Position(NamedTuple):
    """Positions along an axis of an array."""

    index: Any
    axis: int
    array: Any

    @property
    def size(self) -> Any:
        """The size of the axis, which is recorded only where a handler asks for it."""
        return self.array.shape[self.axis]

    def failure(self) -> Failure:
        return self.any_outside, IndexError, self.text

    def outside(self) -> Any:
        return (self.index < -self.size) | (self.index >= self.size)

    def any_outside(self) -> Any:
        return self.outside() if self.index.type.shape == () else self.outside().any()

    def text(self) -> str:
        """Return the text of NumPy's error, which names the first position."""
        index = self.index
        if index.type.shape != ():
            index = index.reshape(-1)[self.outside().reshape(-1).argmax()]
        middle = f" is out of bounds for axis {self.axis} with size "
        return Text.of(("index ", (index, None, ""), middle, (self.size, None, "")))


def _of_leading_axes(start: int) -> Callable[[Recording, Node], Iterator[Failure]]:
    """Return the failures of an operation with positions on the leading axes."""

    def failures(recording: Recording, node: Node) -> Iterator[Failure]:
        moved = node.operands[0].node
        if moved is not None and moved.op.name == "transpose":
            return iter(())  # NumPy names another axis
        return _of_positions(recording, node, leading_axes(start)(node))

    return failures


def _of_parts(start: int) -> Callable[[Recording, Node], Iterator[Failure]]:
    """Return the failures of an operation on a part of an array."""
    return lambda recording, node: _of_positions(recording, node, parts.at_entries(start)(node))


def _of_empty_axes(text: str) -> Callable[[Recording, Node], Iterator[Failure]]:
    """Return the failure of a reduction of nothing to something."""

    def failures(recording: Recording, node: Node) -> Iterator[Failure]:
        array, attrs = recording.wrap(node.operands[0]), node.attrs
        axes = attrs["axes"] if "axes" in attrs else (attrs["axis"],)

        def is_empty() -> Any:
            sizes = array.shape
            others = [n != 0 for k, n in enumerate(sizes) if k not in axes and "axes" in attrs]
            return reduce(and_, others, reduce(or_, [sizes[axis] == 0 for axis in axes]))

        yield is_empty, ValueError, lambda: text

    return failures


_NO_IDENTITY = "zero-size array to reduction operation {} which has no identity"
_EMPTY_SEQUENCE = "attempt to get {} of an empty sequence"


def _of_factors(factors: str, text: str) -> Callable[[Recording, Node], Iterator[Failure]]:
    """Return the failure of an operation that factors its first operand."""

    def failures(recording: Recording, node: Node) -> Iterator[Failure]:
        a = recording.wrap(node.operands[0])
        yield (
            lambda: ~apply(linalg.has_factors, a, factors=factors),
            np.linalg.LinAlgError,
            lambda: text,
        )

    return failures


_FAILURES = {
    indexing.gather: _of_leading_axes(1),
    updating.scatter_set: _of_leading_axes(2),
    indexing.scatter_add: _of_leading_axes(2),
    parts.take_part: _of_parts(1),
    parts.set_part: _of_parts(2),
    parts.add_part: _of_parts(2),
    reducing.reduce_max: _of_empty_axes(_NO_IDENTITY.format("maximum")),
    reducing.reduce_min: _of_empty_axes(_NO_IDENTITY.format("minimum")),
    reducing.argmax: _of_empty_axes(_EMPTY_SEQUENCE.format("argmax")),
    reducing.argmin: _of_empty_axes(_EMPTY_SEQUENCE.format("argmin")),
    linalg.solve: _of_factors("lu", "Singular matrix"),
    linalg.cholesky: _of_factors("cholesky", "Matrix is not positive definite"),
}


def divert_errors(recording: Recording, node: Node) -> bool:
    """Lead the runs in which a node raises an error to its handler; return whether there is one."""
    if not is_handled_here() or node.op not in _FAILURES or recording is not current():
        return False
    if not node.op.errors_of(node):
        return False
    failures = _FAILURES[node.op](recording, node)
    return sum(raising.divert(*failure) for failure in failures) > 0  # each of them
