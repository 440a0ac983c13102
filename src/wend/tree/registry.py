"""Registration of classes whose instances are nodes of pytrees."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, overload

from wend.base import trees
from wend.base.errors import StructureError, TypeMismatchError, explain
from wend.base.instances import note_registered

C = TypeVar("C", bound=type)

# (node) -> its children and metadata, perhaps the names of the children
Flatten = Callable[[Any], Any]
# (metadata, children) -> node
Unflatten = Callable[[Any, Sequence[Any]], Any]


@overload
def register(cls: C, flatten: Flatten, unflatten: Unflatten) -> C: ...
@overload
def register(cls: C, *, static: Iterable[str] = ()) -> C: ...
@overload
def register(cls: None = None, *, static: Iterable[str] = ()) -> Callable[[C], C]: ...
def register(
    cls: Any = None,
    flatten: Flatten | None = None,
    unflatten: Unflatten | None = None,
    *,
    static: Iterable[str] = (),
) -> Any:
    """Make the instances of a class nodes of pytrees: arguments, results and carries may hold them.

    A dataclass needs no more; the decorator returns the class. `wend.register_pytree_node` is the
    same function, with the signature of `jax.tree_util.register_pytree_node`.

    Args:
        cls: the class; without it, a decorator is returned.
        flatten: takes an instance; returns `(children, metadata)`, or `(children, metadata, names)`
            with the names of the children. The metadata is part of the structure, compared by
            `==`.
        unflatten: takes the metadata and the children, which may be any objects; returns an
            instance.
        static: for a dataclass, the fields that are metadata; the others are children.

    Raises:
        TypeMismatchError: the class is no dataclass and there is no `flatten`, or it has no such
            field.
        StructureError: the class is registered already.

    Example:
        >>> import dataclasses, wend
        >>> @wend.tree.register(static=["unit"])
        ... @dataclasses.dataclass
        ... class Length:
        ...     value: float
        ...     unit: str
        >>> wend.tree.map(lambda x: 2 * x, Length(1.5, "m"))
        Length(value=3.0, unit='m')
    """
    if cls is None:
        return functools.partial(register, static=static)
    if not isinstance(cls, type):
        what = f"wend.tree.register takes a class, not {cls!r:.60}."
        raise TypeMismatchError(explain(what, cure="write wend.tree.register(static=[…])."))
    if flatten is None and unflatten is None:
        _register_dataclass(cls, static)
    elif flatten is None or unflatten is None or static:
        what = f"wend.tree.register of {cls.__name__}: flatten and unflatten belong together."
        raise TypeMismatchError(explain(what, cure="give both, without static; or neither."))
    else:
        _add(cls, flatten, unflatten)
    return cls


register_pytree_node = register


def _register_dataclass(cls: type, static: Iterable[str]) -> None:
    """Register a dataclass by its fields."""
    if not dataclasses.is_dataclass(cls):
        what = f"wend.tree.register of {cls.__name__}: it is no dataclass."
        cure = "make it one, or give functions: wend.tree.register(cls, flatten, unflatten)."
        raise TypeMismatchError(explain(what, cure=cure))
    names = [field.name for field in dataclasses.fields(cls)]
    metadata_names = tuple(static)
    for name in metadata_names:
        if name not in names:
            what = f"wend.tree.register of {cls.__name__}: static={name!r} is no field of it."
            raise TypeMismatchError(explain(what, cure=f"choose among {', '.join(names)}."))
    child_names = tuple([name for name in names if name not in metadata_names])

    def flatten(node: Any) -> tuple[Any, ...]:
        children = [getattr(node, name) for name in child_names]
        return children, tuple([getattr(node, name) for name in metadata_names]), child_names

    def unflatten(metadata: Sequence[Any], children: Sequence[Any]) -> Any:
        # Neither __init__ nor __post_init__ runs, which may not accept what stands for arrays.
        node = object.__new__(cls)
        for name, value in (
            *zip(child_names, children, strict=True),
            *zip(metadata_names, metadata, strict=True),
        ):
            object.__setattr__(node, name, value)
        return node

    _add(cls, flatten, unflatten, static=metadata_names)


def _add(
    cls: type, flatten: Flatten, unflatten: Unflatten, *, static: Sequence[str] | None = None
) -> None:
    """Register a class; `static` are the fields of a dataclass that are metadata."""
    try:
        trees.register_node(cls, flatten, unflatten, by_attributes=static is not None)
    except ValueError as error:
        what = f"wend.tree.register of {cls.__name__}: {error}"
        raise StructureError(explain(what, cure="register each class once.")) from None
    note_registered(cls, static)
