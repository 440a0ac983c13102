"""`wend save`."""

from __future__ import annotations

import shlex

import wend
from tests.cli.test_show import folder
from wend.cli import main

__all__ = ["folder"]


def test_functions_of_a_file(folder, capsys):
    line = "save 'newton.py:root(2.0)' 'slope=newton.py:wend.grad(root)(2.0)' --out n.wend"
    assert main(shlex.split(line)) == 0
    assert capsys.readouterr().out == "n.wend: root, slope\n"
    m = wend.load("n.wend")
    assert m.slope(2.0) == wend.grad(m.root)(2.0)
    assert main(["show", "n.wend"]) == 0
    assert capsys.readouterr().out.startswith("root: 1 trace\n1. a float\n")
    assert main(["show", "n.wend:slope"]) == 0
    assert "graph grad_root" in capsys.readouterr().out


def test_mistakes_are_explained(folder, capsys):
    assert main(shlex.split("save newton.py:root(2.0) newton.py:root(2.0) --out n.wend")) == 1
    assert "To fix it: name it: wend save 'step=newton.py:root(2.0)'" in capsys.readouterr().err
    assert main(["save", "newton.py:root", "--out", "n.wend"]) == 1
    assert "needs arguments to be traced" in capsys.readouterr().err
    assert main(["show", "nothing.wend"]) == 1
    assert "No such file" in capsys.readouterr().err
