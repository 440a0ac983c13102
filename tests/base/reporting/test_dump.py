"""The files that show what a graph becomes."""

from __future__ import annotations

import gc
import itertools
from pathlib import Path

import pytest

import wend
from wend.base.reporting import dump
from wend.ir.parser import parse
from wend.ir.printer import to_text


def folders(path: Path) -> list[str]:
    return sorted(folder.name for folder in path.iterdir())


def steps(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def square_plus(x: float) -> float:
    return x * 1.0 + (x + 2.0) * (x + 2.0)


@pytest.mark.parametrize(
    ("backend", "last"),
    [("numpy", ["program.py"]), ("native", ["module.ll", "optimized.ll", "assembly.s"])],
)
def test_each_pass_that_changes_the_graph_has_a_file(
    tmp_path: Path, backend: str, last: list[str]
) -> None:
    with wend.config(dump=str(tmp_path)):
        wend.function(square_plus, backend=backend)(2.0)
    (folder,) = tmp_path.iterdir()
    assert folder.name == "001-square_plus"
    found = steps(folder)
    assert [name[:3] for name in found] == [f"{k:02}-" for k in range(len(found))]
    assert found[0] == "00-graph.wir"
    assert {"algebra.wir", "cse.wir", "dce.wir"} <= {name[3:] for name in found}
    assert [name[3:] for name in found[-len(last) :]] == last
    for name in found:
        text = (folder / name).read_text()
        if name.endswith(".wir"):
            assert "test_dump.py:" in text
            assert parse(text).name == "square_plus"
        if name.endswith("optimized.ll"):
            assert "fmul" in text
    graphs = [(folder / name).read_text() for name in found if name.endswith(".wir")]
    assert all(a != b for a, b in itertools.pairwise(graphs))


def test_names_are_safe_and_folders_new(tmp_path: Path) -> None:
    name = "../a b/<c>:" + "d" * 300
    for _ in range(2):
        with wend.config(dump=str(tmp_path / "deep" / "er")):
            wend.function(lambda x: x + 1.0, name=name)(1.0)
    found = folders(tmp_path / "deep" / "er")
    assert [text[:14] for text in found] == ["001-a_b_c_dddd", "002-a_b_c_dddd"]
    assert max(map(len, found)) < 80


def test_a_name_without_letters_has_a_folder(tmp_path: Path) -> None:
    with wend.config(dump=str(tmp_path)):
        wend.function(lambda x: x + 1.0, name="δ / δ")(1.0)
    assert folders(tmp_path) == ["001-graph"]


def test_nothing_is_kept_of_graphs_that_are_gone(tmp_path: Path) -> None:
    gc.collect()
    before = len(dump._dumps)
    with wend.config(dump=str(tmp_path)):
        wend.function(lambda x: x - 1.0)(1.0)
    gc.collect()
    assert len(dump._dumps) == before


@pytest.mark.parametrize("folder", [False, True])
def test_who_watches_sees_what_files_would_hold(tmp_path: Path, folder: bool) -> None:
    square = wend.function(square_plus)
    with wend.config(dump=str(tmp_path) if folder else ""), dump.capture_stages() as watch:
        concrete = square.get_concrete_function(2.0)
        concrete.compiled.executable("native")
        wend.function(lambda x: x + 1.0)(1.0)
    stages = watch.stages(concrete.graph)
    assert [stage.step for stage in stages][-3:] == ["module", "optimized", "assembly"]
    for stage in stages:
        assert (stage.graph is not None) == (stage.suffix == "wir")
    assert to_text(stages[0].graph, sources=True) == stages[0].text
    if folder:
        files = sorted((tmp_path / folders(tmp_path)[0]).iterdir())
        assert [file.read_text() for file in files] == [f"{stage.text}\n" for stage in stages]
    assert watch.stages(square) == []


def test_nothing_is_seen_after_watching() -> None:
    with dump.capture_stages() as watch:
        pass
    concrete = wend.function(square_plus).get_concrete_function(2.0)
    assert watch.stages(concrete.graph) == []


def test_without_the_setting_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    wend.function(lambda x: x * 3.0)(1.0)
    assert not [*tmp_path.iterdir()]
