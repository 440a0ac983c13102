"""`wend build`: functions as object files and C headers, for programs without Python."""

from wend.build.built import Built as Built
from wend.build.library import build as build
