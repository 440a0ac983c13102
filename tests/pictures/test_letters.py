"""Texts of pictures."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from wend.pictures import letters


@given(st.text())
def test_what_is_escaped_is_xml(text: str) -> None:
    found = ET.fromstring(f"<a b='{letters.escaped(text)}'>{letters.escaped(text)}</a>").text or ""
    assert len(found) <= len(text)


def test_marks_of_xml_are_text() -> None:
    text = '<lambda> & "x" \']]>'
    assert ET.fromstring(f"<a>{letters.escaped(text)}</a>").text == text


def test_wide_letters_are_twice_as_wide() -> None:
    assert letters.width("温度") == letters.width("abcd")
    assert letters.width("ab", 10.0) == 12.04


def test_a_text_is_cut_to_one_line() -> None:
    assert letters.cut("a\n b", 10) == "a b"
    assert letters.cut("abcdef", 4) == "abc…"
