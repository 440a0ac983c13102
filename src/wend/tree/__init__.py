"""Pytrees: nested tuples, lists, dicts and registered classes, as functions take and return them.

None is a node without leaves, dicts keep the order of their keys, and whatever is no node is a
leaf.
"""

from wend.tree.nodes import flatten as flatten
from wend.tree.nodes import leaves as leaves
from wend.tree.nodes import map as map
from wend.tree.nodes import structure as structure
from wend.tree.nodes import unflatten as unflatten
from wend.tree.registry import register as register
