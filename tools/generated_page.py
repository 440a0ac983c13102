"""Pages of docs/ that a tool writes."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path


def write_or_check(page: Path, text: str) -> int:
    """Write the page; with --check only print what would change. Returns the exit status."""
    if "--check" not in sys.argv[1:]:
        page.write_text(text, encoding="utf-8")
        return 0
    before = page.read_text(encoding="utf-8") if page.exists() else ""
    lines = difflib.unified_diff(before.splitlines(), text.splitlines(), "written", "found")
    print("\n".join(lines))
    return int(before != text)
