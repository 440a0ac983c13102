"""Texts in lists that grow in loops: the list holds their numbers in a vocabulary."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TypeVar

from wend.base import refusals, trees
from wend.base.context_values import scoped
from wend.base.errors import StructureError, explain
from wend.base.source import at, user_source
from wend.trace.recording.arguments import is_array_leaf
from wend.trace.state.text_choice import (
    ReturnedText,
    TextChoice,
    is_choice,
    is_option,
    is_text,
    selected,
)

T = TypeVar("T")

NUMBER_TEXTS = "number the texts, and print them by a tuple: LOW, HIGH = 0, 1."


# The texts that a trace has appended to lists of which items were read before
_later_texts: ContextVar[list[Any] | None] = ContextVar("wend_later_texts", default=None)


def allow_later_texts(trace: Callable[[], T]) -> T:
    """Return what a trace returns; one that appends texts too late is made with them at first."""
    if _later_texts.get() is not None:  # the trace of a caller is made again, if need be
        return trace()
    texts: list[Any] = []
    with scoped(_later_texts, texts):
        while True:
            count = len(texts)
            try:
                return trace()
            except Exception as error:
                if len(texts) == count or not refusals.is_refusal(error):
                    raise
                refusals.forget(error)


class Vocabulary:
    """The texts that a list may hold; more are added as they are appended.

    Attributes:
        texts: the texts; their numbers are their positions.
        is_read: whether an item was read, which may be any of the texts that were known then.
    """

    def __init__(self) -> None:
        self.texts: list[Any] = [*(_later_texts.get() or ())]
        self.is_read = False

    def number_of(self, text: Any, *, is_searched: bool = False) -> Any:
        """Return the number of a text, or of a choice of texts; -1 if no item can be it.

        Args:
            text: the text.
            is_searched: whether the list is only searched for it.

        Raises:
            StructureError: an item was read before, which could not have been this text.
        """
        if isinstance(text, TextChoice):
            number_of = functools.partial(self.number_of, is_searched=is_searched)
            return selected(text.index, [*map(number_of, text.options)])
        for number, known in enumerate(self.texts):
            if type(known) is type(text) and known == text:
                return number
        if self.is_read and is_searched:
            return -1
        if self.is_read:
            if (later := _later_texts.get()) is not None:
                later.append(text)
            raise StructureError(
                explain(
                    f"{text!r:.40} is appended{at(user_source())} to a list of texts, of which an "
                    "item was read before.",
                    cure=NUMBER_TEXTS,
                )
            )
        self.texts.append(text)
        return len(self.texts) - 1


class ListedText:
    """A text in an item of a list."""

    def __init__(self, number: Any, vocabulary: Vocabulary) -> None:
        self.number, self.vocabulary = number, vocabulary


trees.register_node(
    ListedText, lambda x: ((x.number,), x.vocabulary), lambda texts, x: ListedText(x[0], texts)
)


def holds_text(x: Any) -> bool:
    """Return whether a part of an item, or of what an item gives, is a text."""
    return isinstance(x, (ListedText, TextChoice, str))


def is_item(x: Any) -> bool:
    """Return whether a value may be an item of a traced list: arrays, numbers and texts."""
    leaves, _ = trees.flatten(x, is_choice)
    return bool(leaves) and all(
        is_array_leaf(leaf) or is_choice(leaf) or is_option(leaf) for leaf in leaves
    )


def vocabulary_of(treedef: trees.TreeDef) -> Vocabulary | None:
    """Return the vocabulary of the items of a list; None of one without texts."""
    if treedef.is_leaf():
        return None
    vocabularies: list[Vocabulary] = []

    def note(x: Any) -> None:
        if isinstance(x, ListedText):
            vocabularies.append(x.vocabulary)

    trees.map_parts(ListedText, note, trees.numbered(treedef))
    return vocabularies[0] if vocabularies else None


def with_numbers(
    item: Any,
    vocabulary: Vocabulary | None,
    *,
    is_example: bool = False,
    is_searched: bool = False,
) -> Any:
    """Return an item with numbers in place of its texts; those of an example stand for any."""
    if vocabulary is None:
        return item

    def numbered(x: Any) -> Any:
        if is_choice(x) and is_example:
            numbers = [*map(vocabulary.number_of, x.options)]
            return ListedText(numbers[0], vocabulary)
        if is_choice(x) or is_text(x):
            return ListedText(vocabulary.number_of(x, is_searched=is_searched), vocabulary)
        return x

    return trees.map_parts(TextChoice, numbered, item)


def with_texts(item: Any) -> Any:
    """Return an item that is read with choices in place of the numbers."""

    def text_of(x: Any) -> Any:
        if not isinstance(x, ListedText):
            return x
        x.vocabulary.is_read = True
        return TextChoice(x.number, tuple(x.vocabulary.texts))

    return trees.map_parts(ListedText, text_of, item)


def returned_item(treedef: trees.TreeDef) -> trees.TreeDef:
    """Return the structure of an item as a result has it, which the run rebuilds."""

    def returned(x: Any) -> Any:
        return ReturnedText(x.number, tuple(x.vocabulary.texts)) if type(x) is ListedText else x

    return trees.flatten(trees.map_parts(ListedText, returned, trees.numbered(treedef)))[1]


def listed_item(treedef: trees.TreeDef) -> trees.TreeDef:
    """Return the structure of an item of a list that a call has returned to its caller's trace."""
    vocabulary = Vocabulary()

    def listed(x: Any) -> Any:
        if type(x) is not ReturnedText:
            return x
        vocabulary.texts = [*x.options]
        return ListedText(0, vocabulary)

    return trees.flatten(trees.map_parts(ReturnedText, listed, trees.numbered(treedef)))[1]


def holds_texts(item: trees.TreeDef) -> bool:
    """Return whether a structure that a result has for an item has texts."""
    return bool(trees.leaves_under(item, ReturnedText))


def text_of(x: Any) -> Any:
    """Return the text that a number of Python stands for in the item of a result."""
    return x.options[x.index] if isinstance(x, ReturnedText) else x
