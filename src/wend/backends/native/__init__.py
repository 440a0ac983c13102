"""The native backend: graphs compiled to machine code by LLVM.

`import wend` imports this package, which loads LLVM's library: loading it at the first call would
make that call slow.
"""

import llvmlite.binding as _llvm  # noqa: F401
