"""Whether a program gives the same as plain NumPy, in every way that wend runs it.

Plain NumPy decides of values, of variables and of arguments that are changed; between native code
in strict mode and the interpreter every bit counts.
"""

from __future__ import annotations

from collections import Counter

import wend
from tests.fuzz.outcome import alike, are_alike, identical, is_large, outcome, raised_when_traced
from tests.fuzz.program import Program, RoughNumPy
from tests.fuzz.ways import COMPILED, WAYS, Ways

TOL, SINGLE_TOL = 1e-9, 1e-3


def check_values(program: Program, ways: Ways, seen: Counter) -> bool:
    """Whether every call has a result that could be compared.

    Raises:
        AssertionError: two ways differ.
    """
    plain, kept = program.plain()
    rough, roughly_kept = program.plain(RoughNumPy())
    function = wend.function(ways.fun)
    tol = SINGLE_TOL if program.is_single else TOL
    for count, args in enumerate(program.calls):
        expected, roughly = outcome(plain, kept, args), outcome(rough, roughly_kept, args)
        found = {way: ways.run(way, function, args) for way in WAYS}
        # Passes leave out what raises and is of no use; native code that of single elements, too.
        passing = [way for way in COMPILED if not isinstance(found[way], Exception)]
        if isinstance(expected, Exception) and passing:
            alike(found["eager"], expected, 0, f"call {count}, eager")
            assert {"strict", "native"} <= {*passing}, f"call {count}: {found}"
            seen["raises in plain Python alone"] += 1
            return False
        identical(found["strict"], found["interpreter"], f"call {count}, strict native code")
        later = found["interpreter"]
        is_another = isinstance(later, Exception) and not isinstance(later, wend.WendError)
        if isinstance(expected, Exception) and is_another and type(later) is not type(expected):
            # What raises first is of no use, so something later raises.
            alike(found["eager"], expected, 0, f"call {count}, eager")
            alike(found["native"], later, 0, f"call {count}, native")
            seen["raises something else in plain Python"] += 1
            return False
        if isinstance(expected, Exception):
            seen[f"raises {type(expected).__name__}"] += 1
        elif is_large(expected):
            seen["too large"] += 1
            return False
        if not args[0].size and raised_when_traced(found["native"]):
            # What has no items, and is known when traced, raises even where it does not run.
            assert raised_when_traced(found["interpreter"])
            seen["raises when traced"] += 1
            return False
        refused = [way for way, x in found.items() if isinstance(x, wend.WendError)]
        if refused:
            is_everywhere = len(refused) == len(WAYS)
            assert "eager" not in refused or is_everywhere, f"eager alone: {found['eager']!r}"
            assert {*COMPILED} <= {*refused}, f"{found}"
            seen[f"refused: {type(found['native']).__name__}"] += 1
            return False
        if not are_alike(roughly, expected, tol):
            seen["chaotic"] += 1  # to the bit the same in strict mode, and no further
            return False
        for way, results in found.items():
            alike(results, expected, tol, f"call {count}, {way}")
        if isinstance(expected, Exception):
            return False
    seen["values"] += 1
    return True
