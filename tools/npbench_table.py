"""Writes docs/npbench.md: NPBench's kernels, and what wend does with each.

python tools/npbench_table.py          writes the page
python tools/npbench_table.py --check  says whether it is up to date
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from generated_page import write_or_check  # noqa: E402
from tests.programs.npbench import checks  # noqa: E402
from tests.programs.npbench.catalogue import FAMILIES, KERNELS  # noqa: E402
from tests.programs.npbench.kernel import Kernel  # noqa: E402

PAGE = ROOT / "docs" / "npbench.md"
HEAD = """# NPBench's kernels

Written by `tools/npbench_table.py`, which runs every kernel; do not edit.

[NPBench](https://github.com/spcl/npbench) is a collection of 54 NumPy programs: PolyBench, weather
stencils, layers of neural nets, and programs from physics. They are typed here
(`tests/programs/npbench/`) from their published definitions, in the way they are written there:
arguments updated in place, `range` loops, slices with loop variables. Each is compiled by one
decorator, and compared with NumPy in what it returns and in what it leaves in its arguments.

{passing} of {all} pass.

- **status**: `passes` under `@wend.function`; *with … static*: under
  `@wend.function(static_argnames=…)`, for Python needs these numbers while it records.
- **loops**: how many loops its graph holds, each once however many trips it makes.
- **gradient**: of a weighted sum of all results, in all floating arguments, against central
  differences; `–` where the results have none to compare with.
"""


def holds(check: Callable[..., None], *args: Any) -> bool:
    """Whether a check finds no fault."""
    try:
        check(*args)
    except Exception as error:  # noqa: BLE001 - any failure is an answer here
        print(f"{args[0]}: {type(error).__name__}: {error}", file=sys.stderr)
        return False
    return True


def passes(kernel: Kernel) -> bool:
    """Whether it gives what NumPy gives, in all its dtypes."""
    return not kernel.refused and all(
        holds(checks.check_values, kernel, dtype) for dtype in kernel.dtypes
    )


def row(kernel: Kernel, is_passing: bool) -> str:
    """One line of the table."""
    if kernel.refused:
        is_refused = holds(checks.check_refusal, kernel)
        status = f"refused: {kernel.refused}" if is_refused else "FAILS"
        return f"| `{kernel}` | {', '.join(kernel.dtypes)} | {status} | – | – |"
    status = "passes" if is_passing else "FAILS"
    if kernel.static:
        status += f" with {checks.listed(kernel.static)} static"
    gradient = "–"
    if kernel.smooth:
        gradient = "yes" if holds(checks.check_gradient, kernel) else "no"
    loops = checks.loop_nodes(kernel) if is_passing else "–"
    return f"| `{kernel}` | {', '.join(kernel.dtypes)} | {status} | {loops} | {gradient} |"


def page() -> str:
    """The text of the page."""
    passing = {str(kernel): passes(kernel) for kernel in KERNELS}
    parts = [HEAD.format(passing=sum(passing.values()), all=len(KERNELS))]
    for family, module in FAMILIES.items():
        parts.append(f"\n## {family}\n")
        parts.append("| kernel | dtypes | status | loops | gradient |\n|---|---|---|--:|---|")
        parts += [row(kernel, passing[str(kernel)]) for kernel in module.KERNELS]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page()))
