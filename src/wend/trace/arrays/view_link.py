"""How a traced array shares memory with others: as a view, as a part, or as one of several."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from wend.base.errors import AliasError, StructureError, explain
from wend.base.source import Source, at, user_source
from wend.eager.dispatch import Staged, recorder
from wend.numpy import indexing, shaping
from wend.ops.shaping import reshape
from wend.trace.arrays.view_transforms import ViewTransform, is_repeated

if TYPE_CHECKING:
    from wend.trace.arrays.tracer import Tracer

CURE_OF_ALIASES = (
    "make them arrays of their own: y = np.where(test, x, z), or copy both before: "
    "x, y = x.copy(), y.copy()."
)
A = TypeVar("A", bound="ViewLink")


class ViewLink(Staged):
    """The aliases of a traced array.

    Attributes:
        may_aliases: the arrays that the result of a branch or loop may be.
        held_aliases: those of them that are also referenced elsewhere.
        changes_through_alias: whether an array that may be this one is changed.
        writeable: whether NumPy's array can be written to; None: in some runs only.
    """

    __slots__ = (
        *("_base", "_part", "_stale_since", "_views"),
        *("changes_through_alias", "held_aliases", "may_aliases", "writeable"),
    )
    _base: Tracer | np.ndarray | None  # the array that this is a view of
    _part: tuple[Tracer, Any] | None  # the array that this is a part of, and the key of the part
    _views: list[weakref.ref[Tracer]]
    _stale_since: Source | None  # where the base was changed after this view was taken
    may_aliases: tuple[Any, ...]
    held_aliases: tuple[Any, ...]
    changes_through_alias: bool
    writeable: bool | None

    def _start_unlinked(self) -> None:
        """Initialize as an array that is no view and has none."""
        self._base = self._part = self._stale_since = None
        self._views = []
        self.may_aliases = self.held_aliases = ()
        self.changes_through_alias = False
        self.writeable = True

    # Links
    def link_view(self: Any, base: Tracer | np.ndarray, *, may_copy: bool = False) -> None:
        """Record that this is a view of another array, traced or plain.

        `may_copy`: NumPy may return a copy instead, which depends on the order in memory.
        """
        is_base_view = isinstance(base, ViewLink) and base._base is not None
        self._base = base._base if is_base_view else base  # type: ignore[union-attr]
        writeable = base.writeable if isinstance(base, ViewLink) else base.flags.writeable
        if self.writeable and not writeable:
            self.writeable = None if may_copy else writeable
        if isinstance(self._base, ViewLink):
            self._base._views.append(weakref.ref(self))

    def link_part(self, whole: Tracer, key: Any) -> None:
        """Record that this is `whole[key]` or `key.of(whole)`: writes to it change the whole."""
        if self._base is None:
            self.link_view(whole)
        self._part = whole, key

    def relink_view(self, base: Tracer) -> None:
        """Record that this is a view of an array's present contents, and a part of no other."""
        self._base = self._part = self._stale_since = None
        self.link_view(base)

    def add_alias(self, other: Tracer) -> None:
        """Record that another array may be this one: it must not be read after this has changed."""
        self._views.append(weakref.ref(other))

    # Questions
    def base(self) -> Any:
        """Return the array that this is a view of, or itself."""
        whole: Any = self.whole()
        return whole if whole._base is None else whole._base

    def whole(self) -> Any:
        """Return the array that this is a part of, or itself."""
        return self if self._part is None else self._part[0].whole()

    def is_contiguous_vector(self) -> bool:
        """Return whether this is a vector, or one in another shape: any shape of it is a view."""
        if self._part is None or not isinstance(self._part[1], ViewTransform):
            return self.type.shape is not None and len(self.type.shape) < 2
        whole, transform = self._part
        return bool(transform.is_reshape() and whole.is_contiguous_vector())

    def is_contiguous(self: Any) -> bool | None:
        """Return whether the elements of a vector follow one another in memory; None if unknown."""
        if self.type.dims in ((0,), (1,)):
            return True
        if self._part is None:
            value = self.recording.mutations.first_value(self)
            if is_repeated(value) and self.type.is_static:
                return False
            is_new = self._base is None and value.node is not None and not value.node.regions
            return True if is_new else None
        whole, key = self._part
        if whole.type.rank != 1:
            return None
        key = key[0] if isinstance(key, tuple) and len(key) == 1 else key
        step = key.step if isinstance(key, slice) else 1
        if type(step) is int and step != 1:
            return False if self.type.is_static else None
        return whole.is_contiguous() if step in (None, 1) else None

    @property
    def is_stale(self) -> bool:
        """Whether its base has changed since it was taken."""
        return self._stale_since is not None

    def current(self: A) -> A:
        """Return this array as of here: a part of an array that has changed is taken again.

        Raises:
            AliasError: it is another view of such an array, or may be one.
        """
        if self._stale_since is None:
            return self
        if self._part is not None:
            whole, key = self._part
            part: A
            part = key.of(whole) if isinstance(key, ViewTransform) else indexing.getitem(whole, key)
            return part
        if self.held_aliases:
            raise AliasError(
                explain(
                    f"{self!r} may be, or hold, an array that was changed{at(self._stale_since)}, "
                    "so it would have changed too.",
                    cure="give it a .copy(): y = np.where(test, x, z), out.append(x.copy()).",
                )
            )
        raise AliasError(
            explain(
                f"{self!r} is a view of an array that was changed{at(self._stale_since)}, "
                "so it would have changed too.",
                cure="take a .copy() of the part before, or take the part again after.",
            )
        )

    # Changes in place (D7)
    def check_writeable(self, role: str = "assignment destination") -> None:
        """Raise NumPy's error if this is a read-only view.

        Args:
            role: what the array is, in NumPy's words.

        Raises:
            ValueError: it is read-only.
            AliasError: it is in some runs only.
        """
        if self.writeable is False:
            raise ValueError(f"{role} is read-only")
        if self.writeable is None:
            raise AliasError(
                explain(
                    f"{self!r} is changed in place{at(user_source())}, and only the run knows "
                    "whether it is a read-only view, as of np.broadcast_to.",
                    cure="change a copy: y = y.copy() before.",
                )
            )

    def set_shape(self: Any, shape: Any) -> None:
        """Set the shape, like `ndarray.shape`.

        Raises:
            AliasError: parts of the array are held, or it is a part of another.
            StructureError: it was made outside of the loop or branch that is recorded.
        """
        if recorder.get() is not self.recording:
            raise StructureError(
                explain(
                    f"the shape of {self!r} is set{at(user_source())}, in a loop or branch that "
                    "may not be run, or more than once.",
                    cure="make an array of that shape: y = x.reshape(shape).",
                )
            )
        views = [view for reference in self._views if (view := reference()) is not None]
        part = next((view for view in views if view._part is not None), None)
        new = shaping.reshape(self, shape)
        if self._part is not None:
            whole, key = self._part
            if isinstance(key, ViewTransform) and key.is_reshape() and new.type.is_static:
                self._part = whole, ViewTransform(reshape, {"shape": new.type.shape})
            else:
                part = self
        if part is not None:
            raise AliasError(
                explain(
                    f"the shape of {self!r} is set{at(user_source())}, and {part!r} is a part of "
                    "an array that has another shape then.",
                    cure="make a view: y = x.reshape(shape).",
                )
            )
        self.replace(new)

    def replace(self: Any, new: Tracer) -> None:
        """Take the value of another traced array, for everyone who holds this one (D7)."""
        recording: Any = recorder.get()
        if recording is None:
            raise self.leaked()
        if self._part is not None:
            whole, key = self._part
            is_current = self._stale_since is None and recording is self.recording
            if isinstance(key, ViewTransform):
                whole.replace(key.back(new, whole))
            else:
                whole[key] = new
            if not is_current:
                return  # in another region it is taken again, which has its own whole
            self._stale_since = None
            assert isinstance(self._base, ViewLink)
            self._base._views.append(weakref.ref(self))
        elif self._base is not None:
            raise AliasError(
                explain(
                    f"{self!r} is a view: changing it would change {self._base!r:.60} in NumPy.",
                    cure="change the array itself (x[2:5] += 1), or take a .copy() of the part.",
                )
            )
        elif not self.writeable:
            self.check_writeable()
        if self.held_aliases:
            raise AliasError(
                explain(
                    f"{self!r} is changed{at(user_source())}, and may be "
                    f"{self.held_aliases[0]!r:.80}, which is known only at run time; in "
                    "NumPy both would change.",
                    cure=CURE_OF_ALIASES,
                )
            )
        self.mark_may_aliases()
        recording.assign(self, recording.lift(new))
        self.mark_views()

    def mark_may_aliases(self) -> None:
        """Mark the arrays that this may be as changing with it."""
        for alias in self.may_aliases:
            if isinstance(alias, ViewLink) and not alias.changes_through_alias:
                alias.changes_through_alias = True
                alias.mark_may_aliases()

    def mark_views(self) -> None:
        """Mark the views of this array as stale, since it changes here.

        Views made in another branch are left alone: that branch has its own contents of the array.
        """
        source = user_source()
        recording: Any = recorder.get()
        views, self._views = self._views, []
        for reference in views:
            view = reference()
            if view is None:
                continue
            if recording is None or recording.is_within(view.recording):
                view._stale_since = source
                view.mark_views()
            else:
                self._views.append(reference)
