"""`dataclass`, as the standard library's, for the hundred records that are made at each import.

There each method of each is compiled from text, and signatures are written for its docstring:
that is a third of the time of `import wend`. Here `__init__` is compiled, and what compares
records when it is first called.
"""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, field
from typing import TYPE_CHECKING, Any, NoReturn

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(
        cls: type | None = None,
        /,
        *,
        frozen: bool = False,
        slots: bool = False,
        weakref_slot: bool = False,
        eq: bool = True,
        repr: bool = True,
    ) -> Any:
        """Make a record of a class, as `dataclasses.dataclass` does: see there for the options.

        Fields may have defaults, `field(default_factory=…)` and `field(init=False)`; a record
        inherits none.

        Example:
            >>> from wend.base.records import dataclass
            >>> @dataclass(frozen=True, slots=True)
            ... class Point:
            ...     x: float
            ...     y: float = 0.0
            >>> Point(1.0), Point(1.0) == Point(1.0, 0.0)
            (Point(x=1.0, y=0.0), True)
        """

        def made(cls: type) -> type:
            specs = {name: cls.__dict__.get(name, MISSING) for name in cls.__annotations__}
            for name, spec in specs.items():
                if isinstance(spec, Field) and spec.default is MISSING:
                    delattr(cls, name)
            if slots:
                cls = _slotted(cls, [*specs], weakref_slot)
            cls.__init__ = _init(cls, specs, frozen, slots)
            cls.__match_args__ = tuple(_given(specs))
            cls.__dataclass_fields__ = _Fields(specs)
            if repr and "__repr__" not in cls.__dict__:
                cls.__repr__ = _repr
            if frozen:
                cls.__setattr__, cls.__delattr__ = _refuse_set, _refuse_delete
                cls.__getstate__, cls.__setstate__ = _state, _set_state
            if eq:
                mine = "".join(f"self.{name}, " for name in specs)
                same = f"({mine}) == ({mine.replace('self.', 'other.')})"
                is_same = f"{same} if other.__class__ is self.__class__ else NotImplemented"
                cls.__eq__ = _later(cls, "__eq__", f"def __eq__(self, other): return {is_same}")
                hashed = f"def __hash__(self): return hash(({mine}))"
                cls.__hash__ = _later(cls, "__hash__", hashed) if frozen else None
            return cls

        return made if cls is None else made(cls)


def _slotted(cls: type, names: list[str], is_weak: bool) -> type:
    """The class again, now with slots."""
    rest = {k: v for k, v in cls.__dict__.items() if k not in (*names, "__dict__", "__weakref__")}
    rest["__slots__"] = (*names, "__weakref__") if is_weak else tuple(names)
    made = type(cls)(cls.__name__, cls.__bases__, rest)
    made.__qualname__ = cls.__qualname__
    return made


def _given(specs: dict[str, Any]) -> list[str]:
    """The fields that `__init__` takes."""
    return [k for k, spec in specs.items() if not isinstance(spec, Field) or spec.init]


def _init(cls: type, specs: dict[str, Any], frozen: bool, slots: bool) -> Callable[..., None]:
    scope: dict[str, Any] = {"MISSING": MISSING}
    params, lines = ["self"], []
    for name in _given(specs):
        spec, value = specs[name], name
        default = spec.default if isinstance(spec, Field) else spec
        if isinstance(spec, Field) and spec.default_factory is not MISSING:
            scope[f"make_{name}"] = spec.default_factory
            params.append(f"{name}=MISSING")
            value = f"make_{name}() if {name} is MISSING else {name}"
        elif default is MISSING:
            params.append(name)
        else:
            scope[f"default_{name}"] = default
            params.append(f"{name}=default_{name}")
        if not frozen:
            lines.append(f" self.{name} = {value}")
        elif slots:
            scope[f"set_{name}"] = cls.__dict__[name].__set__
            lines.append(f" set_{name}(self, {value})")
        else:
            lines.append(f" self.__dict__[{name!r}] = {value}")
    if "__post_init__" in cls.__dict__:
        lines.append(" self.__post_init__()")
    text = "\n".join([f"def __init__({', '.join(params)}):", *(lines or [" pass"])])
    init = _compiled(cls, "__init__", text, scope)
    init.__annotations__ = {name: cls.__annotations__[name] for name in _given(specs)}
    return init


def _later(cls: type, name: str, text: str) -> Callable[..., Any]:
    """A method that is compiled when it is first called: most never are."""

    def first(self: Any, *others: Any) -> Any:
        setattr(cls, name, _compiled(cls, name, text, {}))
        return getattr(self, name)(*others)

    return first


def _compiled(cls: type, name: str, text: str, scope: dict[str, Any]) -> Callable[..., Any]:
    exec(text, scope)
    method: Callable[..., Any] = scope[name]
    method.__qualname__ = f"{cls.__qualname__}.{name}"
    return method


@reprlib.recursive_repr()
def _repr(self: Any) -> str:
    fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in type(self).__annotations__)
    return f"{type(self).__qualname__}({fields})"


def _refuse_set(self: Any, name: str, value: Any) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: Any, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in type(self).__annotations__]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(type(self).__annotations__, state, strict=True):
        object.__setattr__(self, name, value)


class _Fields:
    """What `dataclasses.fields` and `replace` read of a class, made when they do."""

    def __init__(self, specs: dict[str, Any]) -> None:
        self._specs = specs

    def __get__(self, instance: Any, owner: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, spec in self._specs.items():
            one: Any = spec if isinstance(spec, Field) else field(default=spec)
            one.name, one.type = name, owner.__annotations__[name]
            one._field_type = dataclasses._FIELD  # type: ignore[attr-defined]
            found[name] = one
        owner.__dataclass_fields__ = found
        return found
