"""Memory beyond `tape_keep` returns to the system, even below a block that stays in use."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PROGRAM = """
    import sys
    from pathlib import Path
    import numpy as np
    import wend

    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    blocks = []

    def note(x):
        blocks.append(bytes(100_000))
        return x

    @wend.grad
    def slope(x, n):
        k = 0
        while k < n:
            x = np.sin(x) * 1.01
            k += 1
        total = np.sum(x)
        return total + wend.py_function(note, wend.TensorSpec([]), wend.stop_gradient(total))

    wend.config(cache_dir="", tape_keep=int(sys.argv[1]))
    x = np.ones(4000)
    slope(x, np.int64(2))
    before = resident()
    slope(x, np.int64(6000))
    print(resident() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
@pytest.mark.parametrize("keep", [1 << 20, 1 << 30])
def test_memory_returns(keep: int, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(textwrap.dedent(PROGRAM))
    command = [sys.executable, str(file), str(keep)]
    growth = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    used = 6000 * 4000 * 8
    assert (growth < used // 4) == (keep < used)
