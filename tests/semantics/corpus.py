"""Programs kept in text files.

A program starts with `=== name`, or `=== name: refused words` where wend refuses it with these
words in the message. Below come the module's text, a line `---`, and one step a line.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.semantics.world import Program

ROOT = Path(__file__).parent / "programs"


def read(path: Path) -> Iterator[tuple[Program, str | None]]:
    """Yield the programs of a file, with the words of their refusal."""
    for block in path.read_text().split("\n=== ")[1:]:
        title, _, text = block.partition("\n")
        name, _, refusal = title.partition(": refused")
        source, _, steps = text.partition("\n---\n")
        program = Program(name.strip(), source, [s for s in steps.splitlines() if s.strip()])
        yield program, refusal.strip() if ": refused" in title else None
