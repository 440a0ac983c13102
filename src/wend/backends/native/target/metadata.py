"""What LLVM is told about instructions beside what they do: metadata of a module."""

from __future__ import annotations

from dataclasses import dataclass, field

_WEIGHTS, _ACCESSES, _PARALLEL, _SEVERAL = range(4)
# So many vectors at once hide how long it takes to add one, or to compute a function of one.
_AT_ONCE = (2, 4)


@dataclass(eq=False, repr=False, slots=True)
class LoopMetadata:
    """Numbers notes as they are needed."""

    _loops: list[str] = field(default_factory=list)
    _has_accesses: bool = False

    def access(self) -> str:
        """Behind a read or write whose order among those of other trips of its loop is free."""
        self._has_accesses = True
        return f", !llvm.access.group !{_ACCESSES}"

    def parallel_accesses(self, at_once: int = 1) -> str:
        """Behind the branch that ends a trip of a loop all of whose accesses are such.

        `at_once`: how many vectors there are to be at once.
        """
        number = _SEVERAL + len(_AT_ONCE) + len(self._loops)
        more = "" if at_once == 1 else f", !{_SEVERAL + _AT_ONCE.index(at_once)}"
        self._loops.append(f"!{number} = distinct !{{!{number}, !{_PARALLEL}{more}}}")
        return f", !llvm.loop !{number}"

    def lines(self) -> list[str]:
        """The notes themselves, for the end of the module."""
        found = [f'!{_WEIGHTS} = !{{!"branch_weights", i32 1048575, i32 1}}']
        if self._loops or self._has_accesses:
            found += [
                f"!{_ACCESSES} = distinct !{{}}",
                f'!{_PARALLEL} = !{{!"llvm.loop.parallel_accesses", !{_ACCESSES}}}',
                *(
                    f'!{_SEVERAL + k} = !{{!"llvm.loop.interleave.count", i32 {count}}}'
                    for k, count in enumerate(_AT_ONCE)
                ),
                *self._loops,
            ]
        return found
