"""wend functions inside PyTorch programs, and PyTorch functions inside wend programs."""

from wend.interop.torch.requirements import check_version as _check_version

_check_version()

from wend.interop.torch.as_module import as_module as as_module  # noqa: E402 - torch is checked first
from wend.interop.torch.as_torch import as_torch as as_torch  # noqa: E402
from wend.interop.torch.as_wend import as_wend as as_wend  # noqa: E402
