"""Marks in texts: invisible, and whole or nothing."""

import pytest

from wend.base.marked_text import has_marks, mark, split_marks, without_marks


def test_marks_survive_being_joined():
    text = f"a{mark('<x>', 7)}b{mark('<y>', 120)}"
    assert has_marks(text)
    assert split_marks(text) == ["a", ("<x>", 7), "b", ("<y>", 120)]
    assert without_marks(text) == "a<x>b<y>"


@pytest.mark.parametrize("text", ["", "plain", "straße, 東京, 🏴"])
def test_texts_without_marks(text):
    assert not has_marks(text)
    assert split_marks(text) == ([text] if text else [])
    assert without_marks(text) == text


def test_a_part_of_a_mark_is_found():
    text = mark("<x>", 12)
    for part in (text[:-1], text[1:], text[:1], text[-1:]):
        assert has_marks(part)
        with pytest.raises(ValueError, match="not whole"):
            split_marks(part)
