"""The graph: types, operations, builder, printer, parser, verifier."""

import typing as _typing

from wend.ir.builder import Builder as Builder
from wend.ir.canonical import digest as digest
from wend.ir.canonical import equal as equal
from wend.ir.graph import Graph as Graph
from wend.ir.graph import Node as Node
from wend.ir.graph import Value as Value
from wend.ir.op import TABLE as TABLE
from wend.ir.op import Op as Op
from wend.ir.parser import parse as parse
from wend.ir.printer import to_text as to_text
from wend.ir.rewrite import lift as lift
from wend.ir.types import ListType as ListType
from wend.ir.types import MaybeType as MaybeType
from wend.ir.types import ResourceType as ResourceType
from wend.ir.types import Symbol as Symbol
from wend.ir.types import TensorType as TensorType
from wend.ir.types import TokenType as TokenType
from wend.ir.verify import verify as verify

if _typing.TYPE_CHECKING:
    from wend.passes.case_of import case_of as case_of
    from wend.passes.while_from import while_from as while_from
else:

    def __getattr__(name: str) -> object:
        # Imported on first use: they emit operations, which are of a higher layer.
        from importlib import import_module

        if name in ("case_of", "while_from"):
            return getattr(import_module(f"wend.passes.{name}"), name)
        raise AttributeError(f"module 'wend.ir' has no attribute {name!r}")
