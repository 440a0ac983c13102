"""What the documents say is there is there, and what they show runs."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ROOT / "src" / "wend"


def rooms() -> set[str]:
    return {folder.name for folder in ROOMS.iterdir() if (folder / "__init__.py").exists()}


def test_the_architecture_page_names_exactly_the_rooms_there_are() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = re.findall(r"^\|\s*\d+ \| `(\w+)/` \|", page, re.MULTILINE)
    assert sorted(table) == sorted(rooms())


def test_files_that_the_architecture_page_says_to_read_first_exist() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\|\s*\d+ \| `(\w+)/` \|.*\| `(\w+\.py)` \|$", page, re.MULTILINE)
    assert len(rows) == len(rooms())
    assert [f"{room}/{file}" for room, file in rows if not (ROOMS / room / file).exists()] == []


def test_no_room_has_a_file_of_odds_and_ends() -> None:
    assert list(ROOMS.rglob("utils.py")) + list(ROOMS.rglob("misc.py")) == []


def test_the_miniature_holds() -> None:
    runpy.run_path(str(ROOT / "docs" / "miniature.py"))["check"]()


@pytest.mark.parametrize(
    "name", ["README.md", "docs/adding-an-op.md", "docs/quickstart.md", "docs/errors.md"]
)
def test_links_lead_somewhere(name: str) -> None:
    page = ROOT / name
    links = re.findall(r"\]\(([^)#]+?)\)", page.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (page.parent / link).exists()] == []


PAGES = [
    "docs/quickstart.md",
    "docs/from-numpy.md",
    "docs/from-jax.md",
    "docs/from-scipy.md",
    "docs/implicit.md",
]


@pytest.mark.parametrize("name", PAGES)
def test_the_code_of_the_pages_runs(name: str, tmp_path: Path) -> None:
    page = (ROOT / name).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert blocks
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks), encoding="utf-8")
    subprocess.run([sys.executable, "-W", "error", str(script)], check=True, cwd=tmp_path)


def test_import_is_light() -> None:
    code = (
        "import sys, wend; "
        "heavy = {'scipy', 'matplotlib', 'rich', 'decimal', 'wend.backends.native.jit.llvm'}; "
        "heavy &= set(sys.modules); "
        "assert not heavy, heavy; "
        "assert 'llvmlite.binding' in sys.modules"  # else the first call would wait for it
    )
    subprocess.run([sys.executable, "-c", code], check=True)
