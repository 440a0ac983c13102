"""Structures of pytrees as JSON, and pytrees of what JSON says about each leaf."""

from __future__ import annotations

import collections
import keyword
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from wend.base import trees
from wend.base.errors import LoadError, SaveError, explain
from wend.base.instances import (
    InstanceNode,
    InstanceStructure,
    is_ordinary_object,
    is_unregistered_class,
)
from wend.saving.fields import tagged
from wend.saving.literals import literal_from_json, literal_to_json
from wend.saving.loaded_record import LoadedRecord
from wend.trace.aliasing.rebuilt_containers import (
    PassedContainer,
    PythonNumber,
    ResultAndContainers,
    ReturnedObject,
    SharedAgain,
    object_of_outside,
)
from wend.trace.control.returned_constants import ReturnedConstant

LEAF = "*"
CONSTANT = "constant"  # the tag of a text or the like in a result
# Classes that files name: those that `wend.load` is given, by module and name
Classes = Mapping[str, type]


def class_name(cls: type) -> str:
    """Return how files name a class."""
    return f"{cls.__module__}.{cls.__qualname__}"


def tree_to_json(treedef: trees.TreeDef, what: str, leaves: Iterator[Any] | None = None) -> Any:
    """Return a structure as JSON.

    Args:
        treedef: the structure.
        what: its name for messages.
        leaves: what to write for each leaf; None: `"*"`.

    Raises:
        SaveError: a node of it is of a class that files cannot hold.
    """
    if treedef.is_leaf():
        return LEAF if leaves is None else next(leaves)
    kind: Any = treedef.type
    if kind is type(None):
        return None
    children = [tree_to_json(child, what, leaves) for child in treedef.children()]
    if kind in (tuple, list):
        return {kind.__name__: children}
    if kind in (dict, collections.OrderedDict):
        keys = [literal_to_json(key, f"a key of {what}") for key in treedef.entries()]
        return {
            "dict" if kind is dict else "ordered": [*map(list, zip(keys, children, strict=True))]
        }
    if kind is collections.deque:
        return {"deque": [trees.root_metadata(treedef), children]}
    if trees.is_namedtuple(kind):
        return {"namedtuple": [class_name(kind), list(kind._fields), children]}
    if kind is ReturnedConstant:
        return {CONSTANT: literal_to_json(trees.root_metadata(treedef), what)}
    if kind is ReturnedObject:
        outside = object_of_outside(trees.root_metadata(treedef))
        try:
            return {CONSTANT: literal_to_json(outside, what)}
        except SaveError:
            what = f"{what} holds a {type(outside).__name__} of outside, which a file cannot."
            cure = "return a new one, such as {**d} for a dict, or take it as an argument."
            raise SaveError(explain(what, cure=cure)) from None
    if kind is PythonNumber:
        return children[0]
    if kind is LoadedRecord:
        name, names, metadata = trees.root_metadata(treedef)
        return {"class": [name, list(names), literal_to_json(metadata, what), children]}
    if kind is PassedContainer and not trees.root_metadata(treedef)[1]:
        return children[0]  # a loaded function returns a new one
    if kind is ResultAndContainers and not treedef.child(1).num_children:
        return children[0]
    if kind is SharedAgain:
        what = f"{what} holds an object that holds itself, which a file cannot."
        raise SaveError(explain(what, cure="return its parts."))
    if kind in (PassedContainer, ResultAndContainers):
        what = f"{what}: it changes a list, dict or object of its arguments in place."
        raise SaveError(explain(what, cure="change a copy of it, and return that."))
    if kind is InstanceNode:
        structure = trees.root_metadata(treedef)
        return {"class": [class_name(structure.cls), list(structure.names), None, children]}
    if kind.__module__.partition(".")[0] in ("collections", "wend") or not children:
        raise SaveError(
            explain(
                f"{what} holds a {kind.__name__}, which a file cannot.",
                cure="use tuples, lists, dicts, dataclasses, or a class registered by "
                "wend.tree.register.",
            )
        )
    metadata = trees.root_metadata(treedef)
    names = trees.child_names(treedef) or [f"part{k}" for k in range(len(children))]
    return {
        "class": [
            class_name(kind),
            [str(name) for name in names],
            literal_to_json(metadata, f"the metadata of {kind.__name__} in {what}"),
            children,
        ]
    }


def tree_from_json(
    data: Any, where: str, classes: Classes, leaf: Callable[[Any], Any] = lambda _: LEAF
) -> Any:
    """Return a pytree of this structure.

    Args:
        data: the JSON.
        where: its place in the file, for messages.
        classes: the classes that it may name; of others there are records.
        leaf: makes a leaf of what JSON says about it.

    Raises:
        LoadError: the JSON is no structure.
    """
    try:
        return _tree(data, where, classes, leaf)
    except RecursionError:
        raise LoadError(f"{where} is nested too deeply") from None


def _tree(data: Any, where: str, classes: Classes, leaf: Callable[[Any], Any]) -> Any:
    if data is None:
        return None
    if type(data) is not dict or not {*data} <= _TAGS:
        return leaf(data)
    tag, contents = tagged(data, where)
    if type(contents) is not list:
        raise LoadError(f"{where}: {contents!r:.40} is no list")

    def trees_of(items: Any) -> list[Any]:
        if type(items) is not list:
            raise LoadError(f"{where}: {items!r:.40} is no list")
        return [_tree(item, where, classes, leaf) for item in items]

    if tag in ("tuple", "list"):
        return tuple(trees_of(contents)) if tag == "tuple" else trees_of(contents)
    if tag in ("dict", "ordered"):
        return _dict(tag, contents, where, trees_of)
    if tag == "deque":
        length, items = _parts(contents, 2, where)
        if length is not None and (type(length) is not int or length < 0):
            raise LoadError(f"{where}: {length!r:.40} is no length")
        return collections.deque(trees_of(items), length)
    if tag == "namedtuple":
        name, fields, items = _parts(contents, 3, where)
        return _namedtuple(name, fields, trees_of(items), where, classes)
    name, names, metadata, items = _parts(contents, 4, where)
    return _instance(
        name, names, literal_from_json(metadata, where), trees_of(items), where, classes
    )


_TAGS = frozenset(["tuple", "list", "dict", "ordered", "deque", "namedtuple", "class"])


def _parts(contents: list[Any], count: int, where: str) -> list[Any]:
    if len(contents) != count:
        raise LoadError(f"{where}: {contents!r:.40} has not {count} parts")
    return contents


def _dict(
    tag: str, contents: list[Any], where: str, trees_of: Callable[[Any], list[Any]]
) -> dict[Any, Any]:
    if any(type(pair) is not list or len(pair) != 2 for pair in contents):
        raise LoadError(f"{where}: {contents!r:.40} are no keys with values")
    keys = [literal_from_json(key, where) for key, _ in contents]
    values = trees_of([value for _, value in contents])
    kind = dict if tag == "dict" else collections.OrderedDict
    try:
        items = kind(zip(keys, values, strict=True))
    except TypeError:
        raise LoadError(f"{where}: a list is no key") from None
    if len(items) < len(keys):
        raise LoadError(f"{where}: a key is listed twice")
    return items


def _namedtuple(name: Any, fields: Any, items: Sequence[Any], where: str, classes: Classes) -> Any:
    names = check_names(_list(fields, where), where)
    if type(name) is not str or len(names) != len(items) or any(x[0] == "_" for x in names):
        raise LoadError(f"{where}: {fields!r:.40} are no fields of {len(items)} values")
    known: Any = classes.get(name)
    if trees.is_namedtuple(known) and known._fields == tuple(names):
        return known(*items)
    (own_name,) = check_names([name.rpartition(".")[2]], where)
    return collections.namedtuple(own_name, names)(*items)


def _instance(
    name: Any, names: Any, metadata: Any, items: Sequence[Any], where: str, classes: Classes
) -> Any:
    names = check_names(_list(names, where), where)
    if type(name) is not str or len(names) != len(items):
        raise LoadError(f"{where}: {name!r:.40} has not the fields of {len(items)} values")
    if name not in classes:
        return LoadedRecord(name, names, items, metadata)
    try:
        if metadata is None and is_unregistered_class(classes[name]):
            instance = InstanceStructure(classes[name], tuple(names)).make(items)
            return InstanceNode(instance) if is_ordinary_object(instance) else instance
        return trees.make_node(classes[name], metadata, items)
    except LookupError:
        what = f"{where}: {name} is not registered."
        raise LoadError(explain(what, cure="register it by wend.tree.register.")) from None
    except (TypeError, ValueError, AttributeError) as error:
        raise LoadError(f"{where}: {name} does not take what was saved of it: {error}") from None


def _list(data: Any, where: str) -> list[Any]:
    if type(data) is not list:
        raise LoadError(f"{where}: {data!r:.40} is no list")
    return data


def is_attribute(name: Any) -> bool:
    """Return whether a name may be that of an attribute: it has no meaning for Python."""
    is_name = type(name) is str and name.isidentifier() and not keyword.iskeyword(name)
    return is_name and not name.startswith("__")


def check_names(names: Sequence[Any], where: str) -> list[str]:
    """Return names that are to be attributes.

    Raises:
        LoadError: one is no name, has a meaning for Python, or is listed twice.
    """
    for name in names:
        if not is_attribute(name):
            raise LoadError(f"{where}: {name!r:.40} is no name of an attribute")
    if len({*names}) < len(names):
        raise LoadError(f"{where}: a name is listed twice: {names!r:.60}")
    return list(names)
