"""Writes docs/images/: pictures of the README's program.

python tools/pictures.py          writes them
python tools/pictures.py --check  says whether they are up to date
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from generated_page import write_or_check

from wend.cli.target import concrete_of
from wend.passes.pipeline import OPTIMIZE, run_passes

ROOT = Path(__file__).resolve().parents[1]
IMAGE = ROOT / "docs" / "images" / "gradient-of-a-loop.svg"


def picture() -> str:
    """The gradient of the README's first program, as it runs."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"```python\n(.*?)```", readme, re.DOTALL)
    assert found is not None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "newton.py"
        file.write_text(found[1], encoding="utf-8")
        recorded = concrete_of(f"{file}:wend.grad(root)(2.0)").graph
        return f"{run_passes(recorded, OPTIMIZE).to_svg()}\n"


if __name__ == "__main__":
    sys.exit(write_or_check(IMAGE, picture()))
