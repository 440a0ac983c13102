"""Looking at a function while it runs: where it stops, and what takes the time."""

from wend.debug.profiling import profile as profile
from wend.debug.stopping import breakpoint as breakpoint
