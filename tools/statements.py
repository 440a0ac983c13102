"""Count the statements and lines of the source by package: `python tools/statements.py [ROOT]`.

A statement is a node of Python's `ast.stmt`, docstrings apart. ROOT is another checkout.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path


def statements(text: str) -> int:
    """Return the number of statements that are no docstrings."""
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt)]
    return sum(not _is_docstring(node) for node in nodes)


def _is_docstring(node: ast.stmt) -> bool:
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_text and isinstance(node.value.value, str)


def main() -> None:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1]) / "src" / "wend"
    counts, lines, files = Counter[str](), Counter[str](), Counter[str]()
    for file in sorted(root.rglob("*.py")):
        package = file.relative_to(root).parts[0].removesuffix(".py")
        text = file.read_text(encoding="utf-8")
        counts[package] += statements(text)
        lines[package] += text.count("\n")
        files[package] += 1
    print(f"{'package':<12} {'files':>6} {'statements':>11} {'lines':>8}")
    for package in sorted(counts):
        print(f"{package:<12} {files[package]:>6} {counts[package]:>11,} {lines[package]:>8,}")
    print(f"{'all':<12} {files.total():>6} {counts.total():>11,} {lines.total():>8,}")


if __name__ == "__main__":
    main()
