"""The clock of the run-time library: `i64 wend.now()`, nanoseconds that never go back."""

from __future__ import annotations

import time

# Each module that reads the clock has a copy
NOW = f"""declare i32 @clock_gettime(i32, ptr)

define internal i64 @wend.now() {{
  %both = alloca [2 x i64]
  %done = call i32 @clock_gettime(i32 {time.CLOCK_MONOTONIC}, ptr %both)
  %seconds = load i64, ptr %both
  %rest.at = getelementptr i64, ptr %both, i64 1
  %rest = load i64, ptr %rest.at
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  ret i64 %now
}}"""
