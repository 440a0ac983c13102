"""The error for tapes that are used out of order."""

from wend.base.errors import WendError


class TapeError(WendError, RuntimeError):
    """A `GradientTape` is used in an order, or in a recording, that it does not allow."""
