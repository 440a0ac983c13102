"""Whether a program gives the same as plain NumPy, in every way that wend runs it.

Plain NumPy decides of values, of variables and of arguments that are changed; between native code
in strict mode and the interpreter every bit counts.
"""

from __future__ import annotations

from collections import Counter

import wend
from tests.fuzz.outcome import alike, are_alike, identical, is_large, outcome, raised_when_traced
from tests.fuzz.program import Program, RoughNumPy
from tests.fuzz.share import Share
from tests.fuzz.ways import Ways

TOL, SINGLE_TOL = 1e-9, 1e-3


def check_values(program: Program, ways: Ways, share: Share, seen: Counter) -> bool:
    """Whether every call has a result that could be compared.

    Raises:
        AssertionError: two ways differ.
    """
    plain, kept = program.plain()
    rough, roughly_kept = program.plain(RoughNumPy())
    tol = SINGLE_TOL if program.is_single else TOL
    for count, args in enumerate(program.calls):
        expected, roughly = outcome(plain, kept, args), outcome(rough, roughly_kept, args)
        together = ("eager", "interpreter", *share.values)
        found = {way: ways.run(way, ways.function, args) for way in together}
        later, compiled = found["interpreter"], {way: found[way] for way in share.values}
        # Passes leave out what raises and is of no use; native code that of single elements, too.
        passing = [x for x in (later, *compiled.values()) if not isinstance(x, Exception)]
        if isinstance(expected, Exception) and passing:
            alike(found["eager"], expected, 0, f"call {count}, eager")
            raising = [way for way, x in compiled.items() if isinstance(x, Exception)]
            assert not raising, f"call {count}: {found}"
            seen["raises in plain Python alone"] += 1
            return False
        if "strict" in compiled:
            identical(compiled["strict"], later, f"call {count}, strict native code")
        is_another = isinstance(later, Exception) and not isinstance(later, wend.WendError)
        if isinstance(expected, Exception) and is_another and type(later) is not type(expected):
            # What raises first is of no use, so something later raises.
            alike(found["eager"], expected, 0, f"call {count}, eager")
            for way, x in compiled.items():
                alike(x, later, 0, f"call {count}, {way}")
            seen["raises something else in plain Python"] += 1
            return False
        if isinstance(expected, Exception):
            seen[f"raises {type(expected).__name__}"] += 1
        elif is_large(expected):
            seen["too large"] += 1
            return False
        if not args[0].size and raised_when_traced(later):
            # What has no items, and is known when traced, raises even where it does not run.
            assert all(map(raised_when_traced, compiled.values())), f"{found}"
            seen["raises when traced"] += 1
            return False
        refused = [way for way, x in found.items() if isinstance(x, wend.WendError)]
        if refused:
            is_everywhere = len(refused) == len(found)
            assert "eager" not in refused or is_everywhere, f"eager alone: {found['eager']!r}"
            assert {"interpreter", *compiled} <= {*refused}, f"{found}"
            seen[f"refused: {type(later).__name__}"] += 1
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
