"""Debugging and profiling of functions while they run."""

from wend.debug.profiling import profile as profile
from wend.debug.stopping import breakpoint as breakpoint
