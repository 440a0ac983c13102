"""Pictures in the documents are those of today's graphs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).parents[2]


def test_the_picture_of_the_readme_is_that_of_its_program() -> None:
    command = [sys.executable, str(ROOT / "tools" / "pictures.py"), "--check"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"run tools/pictures.py and look at it\n{run.stdout}{run.stderr}"


def test_pages_show_all_pictures() -> None:
    images = ROOT / "docs" / "images"
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    for image in images.iterdir():
        ET.fromstring(image.read_text(encoding="utf-8"))
        assert f"images/{image.name}" in text
