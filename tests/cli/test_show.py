"""`wend show`."""

from __future__ import annotations

import shlex
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.helpers import lstm
from tests.helpers.golden import Golden
from wend.cli import main

PROGRAM = """\
import numpy as np
import wend

@wend.function
def root(a):
    x = a
    while np.abs(x * x - a) > 1e-12 * a:
        x = 0.5 * (x + a / x)
    return x
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "newton.py").write_text(PROGRAM)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shown(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(shlex.split(line)) == 0
    return capsys.readouterr().out


def test_alone_it_prints_the_graph_and_names_the_stages(
    folder: Path, golden: Golden, capsys: pytest.CaptureFixture[str]
) -> None:
    golden.check("cli/show.txt", shown("show 'newton.py:wend.grad(root)(2.0)'", capsys))


def test_each_stage_can_be_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown("show 'newton.py:root(2.0)'", capsys)
    names = text.rsplit("stages: ", 1)[1].split(";")[0].split(", ")
    assert {"graph", "hoist", "module", "optimized", "assembly"} <= {*names}
    whole = shown("show 'newton.py:root(2.0)' --stage all", capsys)
    for name in names:
        one = shown(f"show 'newton.py:root(2.0)' --stage {name}", capsys)
        assert one.split(":")[0].strip().split("\n")[0] == name
        assert one.strip() in whole


def test_stages_of_the_reference_end_in_python(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown("show 'newton.py:root(2.0)' --backend numpy --stage program", capsys)
    assert "while True" in text or "while " in text


def test_lines_are_those_of_the_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown("show 'newton.py:wend.grad(root)(2.0)' --stage cse", capsys)
    places = [line.rsplit("; ", 1)[1] for line in text.splitlines() if "; " in line]
    assert places.count("<wend show>:1") == 1  # what the backward pass starts from
    file = folder / "newton.py"
    assert {*places} == {"<wend show>:1", f"{file}:7", f"{file}:8"}


def test_a_picture_is_that_of_the_graph_that_runs(folder: Path) -> None:
    target = "newton.py:wend.grad(root)(2.0)"
    assert main(["show", target, "--svg", "all.svg"]) == 0
    assert main(["show", target, "--svg", "recorded.svg", "--stage", "graph"]) == 0
    last, first = (ET.fromstring(Path(name).read_text()) for name in ("all.svg", "recorded.svg"))
    classes = [{g.get("class") for g in root.iter() if g.get("class")} for root in (last, first)]
    assert "call" not in classes[0]
    assert "call" in classes[1]


def test_a_page_has_every_stage_and_the_source(folder: Path) -> None:
    assert main(["show", "newton.py:wend.grad(root)(2.0)", "--html", "root.html"]) == 0
    text = Path("root.html").read_text()
    for stage in ("as recorded", "as it runs", "hoist", "module", "optimized", "assembly"):
        assert f"<summary>{stage}" in text
    assert "while np.abs(x * x - a) &gt; 1e-12 * a:" in text
    assert "keeps `x` f64[], 8 bytes a trip of the loop at newton.py:7" in text
    assert "cli/target.py" not in text
    assert len(text) < 200_000


def test_the_page_of_a_recurrent_net_is_small(tmp_path: Path) -> None:
    arguments = "start(), np.ones((20, 4, 8)), np.ones((4, 4))"
    target = f"{lstm.__file__}:wend.grad(loss)({arguments})"
    assert main(["show", target, "--html", str(tmp_path / "lstm.html")]) == 0
    assert (tmp_path / "lstm.html").stat().st_size < 2_000_000


def test_an_error_of_the_program_has_its_lines_only(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", "newton.py:root('a')"]) == 1
    told = capsys.readouterr().err
    assert "newton.py" in told
    assert "TypeError" in told
    assert "src/wend" not in told


def test_an_error_of_wend_is_told_without_a_traceback(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", "newton.py:wend.grad(root)(np.ones(3, dtype=int))"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("NotDifferentiableError: ")
    assert "Traceback" not in told


def test_a_stage_that_is_not_there_is_refused_with_those_that_are(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", "newton.py:root(2.0)", "--stage", "nest"]) == 1
    told = capsys.readouterr().err
    assert "no stage 'nest'" in told
    assert "choose among graph, " in told
    assert "assembly" in told


def test_the_folder_of_a_file_is_looked_for_first(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["show", "newton.py:root(2.0)", "--html", "no/such/folder/a.html"])
    assert "no folder" in capsys.readouterr().err


def test_a_reader_that_stops_reading_is_no_error(folder: Path) -> None:
    import subprocess
    import sys

    line = f"{sys.executable} -m wend show 'newton.py:root(2.0)' --stage module | head -1"
    run = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
    assert run.stdout.startswith("module: ")
    assert run.stderr == ""
