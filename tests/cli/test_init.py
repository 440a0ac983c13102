"""The command line of `python -m wend`."""

import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import wend
from wend.cli import demo, main


def test_alone_it_prints_help(capsys):
    assert main([]) == 0
    assert "demo" in capsys.readouterr().out


def test_the_console_script_is_this_function():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    module, _, name = project["scripts"]["wend"].partition(":")
    assert getattr(import_module(module), name) is main


def test_version(capsys):
    with pytest.raises(SystemExit) as leaving:
        main(["--version"])
    assert leaving.value.code == 0
    assert wend.__version__ in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "value", "complaint"),
    [
        ("--tol", "0", "between"),
        ("--tol", "nan", "between"),
        ("--tol", "small", "is not a number"),
        ("--out", "fit.jpeg2000", "does not end"),
        ("--out", "no/such/folder/fit.png", "no folder"),
        ("--backend", "abacus", "invalid choice"),
    ],
)
def test_wrong_options_are_told_before_anything_runs(option, value, complaint, capsys):
    with pytest.raises(SystemExit) as leaving:
        main(["demo", option, value])
    assert leaving.value.code == 2
    assert complaint in capsys.readouterr().err


def test_options_reach_the_demo(monkeypatch, tmp_path):
    calls = []
    monkeypatch.setattr(demo, "run", lambda **given: calls.append(given) or 0)
    file = tmp_path / "a.svg"
    assert main(["demo", "--tol", "1e-5", "--backend", "numpy", "--out", str(file)]) == 0
    assert main(["demo", "--no-plot"]) == 0
    assert calls == [
        {"tol": 1e-5, "backend": "numpy", "figure": file},
        {"tol": 1e-8, "backend": "native", "figure": None},
    ]
