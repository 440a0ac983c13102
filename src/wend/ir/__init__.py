"""The graph: types, operations, builder, printer, parser, verifier."""

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
