"""The record that says how native code computes one element of an elementwise operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.target.kinds import REGISTERS, Kind
from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Node

# (low, node, kind of the operands, operands) -> result; for `select`, the kind of its choices
EmitElement: TypeAlias = Callable[..., str]


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Element:
    """How one element of an elementwise operation is computed.

    Attributes:
        emit: Emits the instructions and returns the register of the result.
        kinds: The kinds of dtype it supports, such as `"fiub"`.
        is_supported: Whether it can compute a given node of one of these kinds.
        takes_vectors: Whether the instructions compute vectors as well, lane by lane.
        loop_function: The function of `math/` that computes it in loops.
    """

    emit: EmitElement
    kinds: str
    is_supported: Callable[[Node], bool] = lambda node: True
    takes_vectors: bool = False
    loop_function: str | None = None

    def supports(self, node: Node) -> bool:
        """Return whether it can compute what a node computes."""
        dtypes = [value.tensor.dtype for value in (*node.operands, *node.results)]
        has_supported_dtypes = kind_of(node).dtype.kind in self.kinds and all(
            dtype in REGISTERS for dtype in dtypes
        )
        return has_supported_dtypes and self.is_supported(node)


def kind_of(node: Node) -> Kind:
    """Return the kind of a node's operands; for `select`, that of its choices."""
    return Kind(node.operands[-1].tensor.dtype)


def instruction(
    real: str | None = None, integer: str | None = None, flag: str | None = None
) -> Element:
    """Return an instruction with the type {t} of suffix {s} and the operands {x} and {y}.

    It may also have the constants {zero} and {one}.
    """
    texts = {"f": real, "i": integer, "u": integer, "b": flag}

    def emit(low: Lowering, node: Node, kind: Kind, *operands: str) -> str:
        text = texts[kind.dtype.kind]
        assert text is not None
        x, y = operands[0], operands[-1]
        zero, one = kind.literal(0), kind.literal(1)
        return low.w.define(text.format(t=kind.text, s=kind.suffix, x=x, y=y, zero=zero, one=one))

    kinds = "".join(k for k, text in texts.items() if text is not None)
    return Element(emit, kinds, takes_vectors=True)
