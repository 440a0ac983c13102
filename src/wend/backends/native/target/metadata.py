"""LLVM metadata of a module: branch weights, parallel accesses and loop hints."""

from __future__ import annotations

from dataclasses import field

from wend.base.lazy.dataclass import dataclass

_WEIGHTS, _ACCESSES, _PARALLEL, _ROLLED, _INTERLEAVE = range(5)
# Interleave counts that hide the latency of an addition, and of a function evaluated on a vector
_INTERLEAVE_COUNTS = (2, 4)


@dataclass(eq=False, repr=False, slots=True)
class LoopMetadata:
    """Allocates metadata nodes as loops and accesses need them."""

    _loops: list[str] = field(default_factory=list)
    _has_accesses: bool = False

    def access(self) -> str:
        """Return the suffix of a load or store that is unordered across loop iterations."""
        self._has_accesses = True
        return f", !llvm.access.group !{_ACCESSES}"

    def parallel_accesses(self, interleave: int = 1) -> str:
        """Return the suffix of the back edge of a loop whose accesses are all parallel.

        It is not unrolled: a loop of few trips would be before it is vectorized.

        Args:
            interleave: how many vectors to process at once.
        """
        number = _INTERLEAVE + len(_INTERLEAVE_COUNTS) + len(self._loops)
        hint = "" if interleave == 1 else f", !{_INTERLEAVE + _INTERLEAVE_COUNTS.index(interleave)}"
        self._loops.append(f"!{number} = distinct !{{!{number}, !{_PARALLEL}, !{_ROLLED}{hint}}}")
        return f", !llvm.loop !{number}"

    def loop_definitions(self) -> dict[str, str]:
        """Return the definition of each loop's metadata, without its own number, by number."""
        definitions = (line.split(" = ") for line in self._loops)
        return {name[1:]: text.replace(name, "!") for name, text in definitions}

    def lines(self) -> list[str]:
        """Return the metadata definitions, for the end of the module."""
        definitions = [f'!{_WEIGHTS} = !{{!"branch_weights", i32 1048575, i32 1}}']
        if self._loops or self._has_accesses:
            definitions += [
                f"!{_ACCESSES} = distinct !{{}}",
                f'!{_PARALLEL} = !{{!"llvm.loop.parallel_accesses", !{_ACCESSES}}}',
                f'!{_ROLLED} = !{{!"llvm.loop.unroll.disable"}}',
                *(
                    f'!{_INTERLEAVE + k} = !{{!"llvm.loop.interleave.count", i32 {count}}}'
                    for k, count in enumerate(_INTERLEAVE_COUNTS)
                ),
                *self._loops,
            ]
        return definitions
