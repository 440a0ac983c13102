"""Looking at a function while it runs: `wend.debug.breakpoint()`."""

from wend.debug.stopping import breakpoint as breakpoint
