"""Golden files: expected texts, renewed by `--update-golden` and reviewed as a diff."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from wend.ir import Graph, parse, to_text, verify

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

    def check_pass(self, file: Path, run: Callable[[Graph], Graph]) -> None:
        """What a pass makes of the graph in a file is what stands there below `====`."""
        before, _, _ = file.read_text(encoding="utf-8").partition("====\n")
        graph = verify(parse(before.strip()))
        assert to_text(graph) == before.strip()
        after = verify(run(graph))
        self.check(f"{file.parent.name}/{file.name}", f"{before}====\n{to_text(after)}")
        assert to_text(graph) == before.strip(), "a pass never edits its input"
