"""wend functions inside JAX programs, and JAX functions inside wend programs.

Both directions differentiate: each side asks the other for derivatives, to any order.
"""

from wend.backends.jax.requirements import check_version as _check_version

_check_version("wend.interop.jax")

from wend.interop.jax.as_jax import as_jax as as_jax  # noqa: E402 - jax must be checked first
from wend.interop.jax.as_wend import as_wend as as_wend  # noqa: E402
