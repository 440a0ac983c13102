"""`wend build`."""

from __future__ import annotations

import shlex

from tests.cli.test_show import folder
from wend.cli import main

__all__ = ["folder"]


def test_files_and_their_functions(folder, capsys):
    line = "build newton.py:root --signature f64 --gradient --out lib --name newton_root"
    assert main(shlex.split(line)) == 0
    assert capsys.readouterr().out.split() == ["lib/newton_root.o", "lib/newton_root.h"]
    with open("lib/newton_root.h") as file:
        header = file.read()
    assert "int newton_root_gradient(newton_root_gradient_workspace *workspace, double a" in header
    assert main(shlex.split("build newton.py:root(2.0) --out lib")) == 0
    assert main(shlex.split("build newton.py:wend.grad(root) --signature f64 --out lib")) == 0
    assert capsys.readouterr().out.split()[-1] == "lib/grad_root.h"


def test_mistakes_are_explained(folder, capsys):
    for line, message in (
        ("build newton.py:root(2.0) --gradient", "--gradient needs a signature"),
        ("build newton.py:root --signature f63", "is no type"),
        ("build nothing.py:root --signature f64", "there is no file"),
        ("build newton.py:root --signature f64 --name double", "is no name in C"),
        ("build newton.py:root --signature f64 --target z80", "there is no code for z80"),
    ):
        assert main(shlex.split(line)) == 1
        assert message in capsys.readouterr().err
