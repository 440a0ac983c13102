"""Writes docs/images/: pictures of the programs of the README and of docs/lowering.md.

python tools/pictures.py          writes them
python tools/pictures.py --check  says whether they are up to date
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import tempfile
from pathlib import Path

from generated_page import write_or_check

import wend
from wend.cli.target import concrete_of
from wend.passes.pipeline import OPTIMIZE, run_passes

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"


def gradient_of_a_loop() -> str:
    """The gradient of the README's first program, as it runs."""
    recorded = _concrete("README.md", "newton.py", "wend.grad(root)(2.0)").graph
    return f"{run_passes(recorded, OPTIMIZE).to_svg()}\n"


def dataflow() -> str:
    """The loop of docs/lowering.md, lowered."""
    return f"{wend.lower(_concrete('docs/lowering.md', 'example.py', 'double(1.0)')).to_svg()}\n"


def _concrete(page: str, name: str, call: str) -> wend.ConcreteFunction:
    """The function that is called, traced in a file with the first program of a page."""
    found = re.search(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        file = Path(folder) / name
        file.write_text(found[1], encoding="utf-8")
        return concrete_of(f"{file}:{call}")


if __name__ == "__main__":
    pictures = {"gradient-of-a-loop.svg": gradient_of_a_loop, "dataflow.svg": dataflow}
    sys.exit(max(write_or_check(IMAGES / name, draw()) for name, draw in pictures.items()))
