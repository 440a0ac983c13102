"""The `modulus` op: the absolute value of a complex number whose parts are in registers.

Python's `abs` takes C's `hypot` for it, as here. The op `hypot` of graphs is computed without a
call and may differ from it in the last bit, on which the trips of a loop may depend.
"""

from __future__ import annotations

import numpy as np

from wend.ir.dtypes import FLOATS
from wend.ops.elementwise import elementwise

modulus = elementwise("modulus", np.hypot, FLOATS)
