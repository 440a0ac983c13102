"""Pytrees: optree with None as an empty node and dict keys in Python's order (D18, D46)."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import optree

from wend.base.errors import NestingError
from wend.base.instances import (
    InstanceNode,
    InstanceStructure,
    StaticField,
    is_instance,
    is_ordinary_object,
    is_unregistered,
    structure_of,
)
from wend.base.keys import snapshot_of

Tree = Any
TreeDef = optree.PyTreeSpec

# A namespace of its own, in which dicts keep the order of their keys. What is registered globally
# is known in it. The manager is kept: closing it would sort the keys again.
_NAMESPACE = "wend"
_keeps_order = optree.dict_insertion_ordered(True, namespace=_NAMESPACE)
_keeps_order.__enter__()


def flatten(tree: Tree, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeDef]:
    """Return the leaves of a pytree from left to right, and its structure.

    The items of dicts stand in the order that they show.

    Args:
        tree: the pytree.
        is_leaf: which of its nodes are leaves, too.

    Raises:
        NestingError: it is a thousand levels deep, or contains itself.
    """
    try:
        leaves, treedef = optree.tree_flatten(tree, is_leaf, namespace=_NAMESPACE)
        if _holds_ordered(treedef):
            return _flatten_ordered(tree, is_leaf)
    except RecursionError:
        raise NestingError.of_tree() from None
    return leaves, treedef


def _holds_ordered(treedef: TreeDef) -> bool:
    """Return whether an OrderedDict is in a structure; no key of the user's is compared."""
    if treedef.num_nodes <= treedef.num_leaves + 1:  # the root holds leaves alone
        return treedef.type is OrderedDict
    nodes: Sequence[Any] = treedef.__getstate__()[0]  # type: ignore[index]  # as it is pickled
    return _ORDERED in [node[0] for node in nodes]


def _kind_of_ordered() -> Any:
    """Return what a pickled structure has for the node of an OrderedDict."""
    tree: Any = OrderedDict()
    state: Any = optree.tree_structure(tree).__getstate__()
    return state[0][-1][0]


_ORDERED = _kind_of_ordered()


def _flatten_ordered(
    tree: Tree, is_leaf: Callable[[Any], bool] | None
) -> tuple[list[Any], TreeDef]:
    """Return the leaves and structure of a pytree with OrderedDicts.

    optree takes their keys in the order in which they were added, which `move_to_end` leaves as it
    is.
    """

    def is_given(node: Any) -> bool:
        return is_leaf is not None and is_leaf(node)

    def is_part(node: Any) -> bool:
        return type(node) is OrderedDict or is_given(node)

    def flattened(part: Any) -> tuple[list[Any], TreeDef]:
        if type(part) is not OrderedDict or is_given(part):
            return [part], _LEAF
        items = {key: _flatten_ordered(item, is_leaf) for key, item in part.items()}
        specs = OrderedDict((key, spec) for key, (_, spec) in items.items())
        leaves = [leaf for leaves, _ in items.values() for leaf in leaves]
        return leaves, optree.treespec_ordereddict(specs, namespace=_NAMESPACE)

    parts, treedef = optree.tree_flatten(tree, is_part, namespace=_NAMESPACE)
    return _joined(treedef, [*map(flattened, parts)])


def _joined(treedef: TreeDef, parts: list[tuple[list[Any], TreeDef]]) -> tuple[list[Any], TreeDef]:
    """Return the leaves and structure of a pytree of which these parts are the leaves."""
    specs = iter([spec for _, spec in parts])
    joined = treedef.transform(None, lambda _: next(specs))
    return [leaf for leaves, _ in parts for leaf in leaves], joined


def flatten_deep(
    tree: Tree, *, keeps_static: bool = False, with_objects: bool = False
) -> tuple[list[Any], TreeDef]:
    """Return leaves and structure with dataclasses and attrs classes as nodes, too.

    Captured code keeps their instances whole, as objects that it may change: `flatten`. At the
    boundary of a function they are pytrees.

    Args:
        tree: the pytree.
        keeps_static: whether texts, functions and classes in fields of instances are parts of
            the structure; else they are leaves.
        with_objects: whether instances of ordinary classes are nodes, too, as in results.

    Raises:
        NestingError: it is a thousand levels deep, or contains itself.
    """

    def is_node(leaf: Any) -> bool:
        return is_instance(leaf) or (with_objects and is_ordinary_object(leaf))

    leaves, treedef = flatten(tree)
    if not any(map(is_node, leaves)):
        return leaves, treedef

    def flattened(leaf: Any) -> tuple[list[Any], TreeDef]:
        if not is_node(leaf):
            return [leaf], _LEAF
        fields = InstanceNode(leaf, keeps_static=keeps_static)
        return flatten_deep(fields, keeps_static=keeps_static, with_objects=with_objects)

    try:
        parts = [*map(flattened, leaves)]
    except RecursionError:
        raise NestingError.of_tree() from None
    return _joined(treedef, parts)


def unflatten(treedef: TreeDef, leaves: Sequence[Any]) -> Tree:
    """Put leaves back into a structure."""
    return optree.tree_unflatten(treedef, leaves)


def register_node(
    cls: type,
    flatten_node: Callable[[Any], Any],
    unflatten_node: Callable[[Any, Any], Any],
    *,
    by_attributes: bool = False,
) -> None:
    """Make the instances of a class nodes; see `wend.tree.register`.

    Args:
        cls: the class.
        flatten_node: returns the children and metadata of a node, perhaps names of the children.
        unflatten_node: makes a node of metadata and children.
        by_attributes: whether the names are those of attributes, for paths.

    Raises:
        ValueError: the class is registered already.
    """
    entry_type = optree.GetAttrEntry if by_attributes else optree.AutoEntry
    optree.register_pytree_node(
        cls, flatten_node, unflatten_node, path_entry_type=entry_type, namespace=_NAMESPACE
    )


register_node(InstanceNode, InstanceNode.flattened, InstanceStructure.make, by_attributes=True)
register_node(StaticField, lambda x: ((), x), lambda x, _: x.value)
_LEAF = flatten(0)[1]


def make_node(cls: type, metadata: Any, children: Sequence[Any]) -> Any:
    """Return an instance of a registered class.

    Raises:
        LookupError: the class is not registered.
    """
    entry = optree.register_pytree_node.get(cls, namespace=_NAMESPACE)
    if entry is None:
        raise LookupError(cls)
    return entry.unflatten_func(metadata, tuple(children))


def root_metadata(treedef: TreeDef) -> Any:
    """Return the metadata of the root of a structure: dict keys, or those of a registered class."""
    return treedef.__getstate__()[0][-1][2]  # type: ignore[index]  # as it is pickled


def child_names(treedef: TreeDef) -> Sequence[Any] | None:
    """Return the names that a registered class gives the children of the root, if it does."""
    names: Sequence[Any] | None = treedef.__getstate__()[0][-1][3]  # type: ignore[index]
    return names


def flatten_up_to(treedef: TreeDef, tree: Tree) -> list[Any]:
    """Return the subtrees of `tree` that stand where `treedef` has its leaves.

    Raises:
        ValueError: `tree` is not as deep as `treedef` somewhere.
    """
    if not _has_instances(treedef):
        return treedef.flatten_up_to(tree)
    if treedef.is_leaf():
        return [tree]
    structure = root_metadata(treedef)
    if isinstance(structure, StaticField):
        return []  # of gradients, for one, this is None
    if not isinstance(structure, InstanceStructure):
        parts = treedef.one_level().flatten_up_to(tree)  # type: ignore[union-attr]
    elif type(tree) is structure.cls and structure_of(tree) == structure:
        parts, *_ = InstanceNode(tree).flattened()
    else:
        raise ValueError(f"{structure} expected, not {type(tree).__name__}")
    pairs = zip(treedef.children(), parts, strict=True)
    return [leaf for child, part in pairs for leaf in flatten_up_to(child, part)]


def _has_instances(treedef: TreeDef) -> bool:
    """Return whether instances of dataclasses or attrs classes, or their fields, are nodes."""
    nodes: Sequence[Any] = treedef.__getstate__()[0]  # type: ignore[index]  # as it is pickled
    return any(type(part) in (InstanceStructure, StaticField) for _, _, part, *_ in nodes)


def leaves_under(treedef: TreeDef, cls: type, start: int = 0) -> list[int]:
    """Return the indices of the leaves that stand in nodes of a class, at any depth."""
    if treedef.type is cls:
        return [*range(start, start + treedef.num_leaves)]
    indices = []
    for child in treedef.children():
        indices += leaves_under(child, cls, start)
        start += child.num_leaves
    return indices


def is_same_structure(treedef: TreeDef, other: TreeDef) -> bool:
    """Return whether two structures are the same; dict keys 1 and 1.0 differ."""
    return treedef == other and metadata_key(treedef) == metadata_key(other)


def is_similar_structure(treedef: TreeDef, other: TreeDef) -> bool:
    """Return whether two structures are the same but for the classes of equal named tuples."""
    if is_same_structure(treedef, other):
        return True
    kinds: tuple[Any, Any] = treedef.type, other.type
    are_alike = kinds[0] is kinds[1] or all(map(is_namedtuple, kinds))
    if not are_alike or treedef.num_children != other.num_children:
        return False
    if kinds[0] is not kinds[1]:
        names = [(kind.__name__, kind._fields) for kind in kinds]
        if names[0] != names[1]:
            return False
    elif snapshot_of(root_metadata(treedef)) != snapshot_of(root_metadata(other)):
        return False
    pairs = zip(treedef.children(), other.children(), strict=True)
    return all(is_similar_structure(a, b) for a, b in pairs)


def is_namedtuple(cls: Any) -> bool:
    """Return whether a class is one of named tuples."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")


def metadata_key(treedef: TreeDef) -> Hashable:
    """Return a key of what `==` of structures compares too coarsely: dict keys and metadata."""
    nodes: Sequence[Any] = treedef.__getstate__()[0]  # type: ignore[index]  # as it is pickled
    return tuple(
        [
            snapshot_of(part)
            for _, _, part, *_ in nodes
            if part is not None and not _is_compared_well(part)
        ]
    )


def _is_compared_well(part: Any) -> bool:
    """Return whether a part of a structure is a class, or dict keys that are all texts."""
    if type(part) is list:
        return all(type(key) is str for key in part)
    return isinstance(part, (type, InstanceStructure, StaticField))


def numbered(treedef: TreeDef) -> Tree:
    """Return the structure with its leaves numbered from 0, for `pytree_codegen`."""
    return unflatten(treedef, range(treedef.num_leaves))


def children(tree: Tree) -> list[tuple[Any, Tree]] | None:
    """Return the children of a node with their keys, indices or names; None for a leaf."""
    tree = InstanceNode(tree) if is_unregistered(tree) else tree
    parts, treedef = flatten(tree, lambda node: node is not tree)
    if treedef.is_leaf():
        return None
    kind: Any = treedef.type
    names = kind._fields if is_namedtuple(kind) else treedef.entries()
    return list(zip(names, parts, strict=True))


def tree_map(fun: Callable[..., Any], tree: Tree, *others: Tree) -> Tree:
    """Apply `fun` to each leaf of `tree`, and the matching leaves of `others`."""
    leaves, treedef = flatten(tree)
    columns = [leaves, *[treedef.flatten_up_to(other) for other in others]]
    return unflatten(treedef, [fun(*parts) for parts in zip(*columns, strict=True)])


def map_deep(fun: Callable[..., Any], tree: Tree, *others: Tree) -> Tree:
    """Apply `fun` to each leaf of `flatten_deep`, and the parts of `others` that stand there."""
    leaves, treedef = flatten_deep(tree)
    columns = [leaves, *[flatten_up_to(treedef, other) for other in others]]
    return unflatten(treedef, [fun(*parts) for parts in zip(*columns, strict=True)])


def map_parts(cls: type | tuple[type, ...], fun: Callable[[Any], Any], tree: Tree) -> Tree:
    """Apply `fun` to the leaves of a tree, among which instances of a class count."""
    leaves, treedef = flatten(tree, lambda x: isinstance(x, cls))
    return unflatten(treedef, [*map(fun, leaves)])


def paths(treedef: TreeDef, root: str = "") -> list[str]:
    """Return the path of every leaf as Python would write it: `carry['h'][0]`."""
    return [root + accessor.codify("") for accessor in treedef.accessors()]


def described(tree: Tree) -> str:
    """Return the structure of a pytree for messages: `{'h': *, 'n': (*, *)}`."""
    return structure_text(flatten_deep(tree)[1])


def structure_text(treedef: TreeDef) -> str:
    """Return a structure for messages: `{'h': *, 'n': (*, *)}`."""
    text = str(treedef).removeprefix("PyTreeSpec(").removesuffix(")")
    text = text.removesuffix(f", namespace={_NAMESPACE!r}")
    return _INSTANCE.sub(r"\1([", _STATIC.sub(r"\1", text))


_STATIC = re.compile(r"CustomTreeNode\(StaticField\[(.*?)\], \[\]\)")
_INSTANCE = re.compile(r"CustomTreeNode\(InstanceNode\[(\w+)\], \[")


def first_difference(expected: Tree, actual: Tree, root: str = "") -> str | None:
    """Return where two pytrees first differ in structure, by path; None if they do not.

    The order of dict keys is part of the structure.
    """
    expected_node, actual_node = children_of(expected), children_of(actual)
    if expected_node is None and actual_node is None:
        return None
    if expected_node is None or actual_node is None or type(expected) is not type(actual):
        return f"{root or 'the value'}: {_kind(expected)} against {_kind(actual)}"
    expected_children, actual_children = dict(expected_node), dict(actual_node)
    for entry, child in expected_children.items():
        if entry not in actual_children:
            return f"{root}{entry} is missing"
        inner = first_difference(child, actual_children[entry], root + entry)
        if inner:
            return inner
    for entry in actual_children:
        if entry not in expected_children:
            return f"{root}{entry} is not expected"
    if [*expected_children] != [*actual_children]:
        return f"{root or 'the value'}: {_order(expected)} against {_order(actual)}"
    return None


def first_reordered(expected: Tree, actual: Tree, root: str = "") -> str | None:
    """Return where the same dict keys are first in another order, by path; None if nowhere."""
    expected_node, actual_node = children_of(expected), children_of(actual)
    if not expected_node or not actual_node:
        return None
    expected_children, actual_children = dict(expected_node), dict(actual_node)
    if expected_children.keys() != actual_children.keys():
        return None
    if [*expected_children] != [*actual_children]:
        return f"{root} is {_order(actual)}, not {_order(expected)}"
    for entry, child in expected_children.items():
        inner = first_reordered(child, actual_children[entry], root + entry)
        if inner:
            return inner
    return None


def _order(tree: Tree) -> str:
    return f"a {type(tree).__name__} in the order {', '.join(map(repr, tree)):.60}"


_NUMBERS = (bool, int, float, complex)


def children_of(tree: Tree) -> list[tuple[str, Tree]] | None:
    """Return the children of a node with the ends of their paths, or None for a leaf."""
    if type(tree) in _NUMBERS:
        return None
    if type(tree) in (list, tuple):
        return [(f"[{k}]", node) for k, node in enumerate(tree)]
    tree = InstanceNode(tree) if is_unregistered(tree) else tree
    nodes, treedef = flatten(tree, lambda node: node is not tree)
    if treedef.is_leaf():
        return None
    return list(zip(paths(treedef), nodes, strict=True))


def _kind(tree: Tree) -> str:
    if tree is None:
        return "None"
    if children_of(tree) is None:
        return "an array or number"
    return f"a {type(tree).__name__}"
