"""Golden files: expected texts, renewed by `--update-golden` and reviewed as a diff."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "golden"


@dataclass(frozen=True)
class Golden:
    """Compares a text with a file of `tests/golden`."""

    update: bool

    def check(self, name: str, text: str) -> None:
        """The text is what the file `name` holds; with `--update-golden` it becomes that."""
        file = FOLDER / name
        text = text.rstrip() + "\n"
        if self.update:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        assert file.exists(), f"{file} is not there: run pytest --update-golden and review it"
        assert text == file.read_text(encoding="utf-8")
