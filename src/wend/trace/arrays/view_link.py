"""How a traced array shares memory with others: as a view, as a part, or as one of several."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from wend.base.errors import AliasError, explain
from wend.base.source import Source, at, user_source
from wend.eager.dispatch import Staged, recorder
from wend.numpy import indexing
from wend.trace.arrays.view_transforms import ViewTransform

if TYPE_CHECKING:
    from wend.trace.arrays.tracer import Tracer

CURE_OF_ALIASES = "let it be an array of its own: y = np.where(test, x, z), or y = y.copy() before."
A = TypeVar("A", bound="ViewLink")


class ViewLink(Staged):
    """The aliases of a traced array.

    Attributes:
        origins: of what a branch or loop returns, the arrays that it may be.
        choices: those of them that somebody else holds.
        changes_through_alias: whether something that may be this array is changed.
    """

    __slots__ = (
        *("_base", "_part", "_stale_since", "_views"),
        *("changes_through_alias", "choices", "origins"),
    )
    _base: Tracer | np.ndarray | None  # the array that this is a view of
    _part: tuple[Tracer, Any] | None  # the array that this is a part of, and the key of the part
    _views: list[weakref.ref[Tracer]]
    _stale_since: Source | None  # where the base was changed after this view was taken
    origins: tuple[Any, ...]
    choices: tuple[Any, ...]
    changes_through_alias: bool

    def _start_unlinked(self) -> None:
        """Be an array of its own."""
        self._base = self._part = self._stale_since = None
        self._views = []
        self.origins = self.choices = ()
        self.changes_through_alias = False

    # Links
    def look_at(self: Any, base: Tracer | np.ndarray) -> None:
        """Note that this is a view of another array, or of one that Python knows."""
        is_view_itself = isinstance(base, ViewLink) and base._base is not None
        self._base = base._base if is_view_itself else base  # type: ignore[union-attr]
        if isinstance(self._base, ViewLink):
            self._base._views.append(weakref.ref(self))

    def become_part(self, whole: Tracer, key: Any) -> None:
        """Note that this is `whole[key]`, or `key.of(whole)`: changing it changes the whole."""
        if self._base is None:
            self.look_at(whole)
        self._part = whole, key

    def become_view_of(self, base: Tracer) -> None:
        """Note that this is a view of all of an array as it is now, and no part of another."""
        self._base = self._part = self._stale_since = None
        self.look_at(base)

    def watch(self, other: Tracer) -> None:
        """Note that another array may be this one: it must not be read when this has changed."""
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

    def current(self: A) -> A:
        """Return this array as it is here: a part of an array that has changed is taken again.

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
        if self.choices:
            raise AliasError(
                explain(
                    f"{self!r} may be, or hold, an array that was changed{at(self._stale_since)}, "
                    "so it would have changed too.",
                    cure="let it have a .copy(): y = np.where(test, x, z), out.append(x.copy()).",
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
    def replace(self: Any, new: Tracer) -> None:
        """Take the value of another traced array, for everyone who holds this one (D7)."""
        recording: Any = recorder.get()
        if recording is None:
            raise self.leaked()
        if self._part is not None:
            whole, key = self._part
            is_current = self._stale_since is None and recording is self.recording
            if isinstance(key, ViewTransform):
                whole.replace(key.back(new, whole.type))
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
        if self.choices:
            raise AliasError(
                explain(
                    f"{self!r} is changed{at(user_source())}, and may be {self.choices[0]!r:.80}, "
                    "which only the run tells; in NumPy both would change.",
                    cure=CURE_OF_ALIASES,
                )
            )
        self.mark_origins()
        recording.assign(self, recording.lift(new))
        self.mark_views()

    def mark_origins(self) -> None:
        """Note that the arrays that this may be change with it."""
        for origin in self.origins:
            if isinstance(origin, ViewLink) and not origin.changes_through_alias:
                origin.changes_through_alias = True
                origin.mark_origins()

    def mark_views(self) -> None:
        """Note that this array changes here: its views must be taken again.

        Not those that were made in another branch, which has left this one's array as it was.
        """
        where = user_source()
        recording: Any = recorder.get()
        views, self._views = self._views, []
        for reference in views:
            view = reference()
            if view is None:
                continue
            if recording is None or recording.is_in(view.recording):
                view._stale_since = where
                view.mark_views()
            else:
                self._views.append(reference)
