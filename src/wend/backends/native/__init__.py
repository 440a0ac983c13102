"""The native backend: scalar programs as machine code, by LLVM.

LLVM's library is loaded with this package, and this with wend: it takes longer than the first
call should.
"""

import llvmlite.binding as _llvm  # noqa: F401
