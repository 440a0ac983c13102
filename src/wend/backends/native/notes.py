"""What LLVM is told about instructions beside what they do: metadata of a module."""

from __future__ import annotations

from dataclasses import dataclass, field

_WEIGHTS, _ACCESSES, _PARALLEL = 0, 1, 2


@dataclass(eq=False, repr=False, slots=True)
class Notes:
    """Numbers notes as they are needed."""

    _loops: list[int] = field(default_factory=list)
    _has_accesses: bool = False

    def access(self) -> str:
        """Behind a read or write whose order among those of other trips of its loop is free."""
        self._has_accesses = True
        return f", !llvm.access.group !{_ACCESSES}"

    def any_order(self) -> str:
        """Behind the branch that ends a trip of a loop all of whose accesses are such."""
        self._loops.append(_PARALLEL + 1 + len(self._loops))
        return f", !llvm.loop !{self._loops[-1]}"

    def lines(self) -> list[str]:
        """The notes themselves, for the end of the module."""
        found = [f'!{_WEIGHTS} = !{{!"branch_weights", i32 1048575, i32 1}}']
        if self._loops or self._has_accesses:
            found += [
                f"!{_ACCESSES} = distinct !{{}}",
                f'!{_PARALLEL} = !{{!"llvm.loop.parallel_accesses", !{_ACCESSES}}}',
                *(f"!{k} = distinct !{{!{k}, !{_PARALLEL}}}" for k in self._loops),
            ]
        return found
