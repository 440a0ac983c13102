"""What programs over arrays are written with, for libraries that are like NumPy."""

from __future__ import annotations

from typing import Any


def like_numpy(np: Any, **others: Any) -> dict[str, Any]:
    """Return the functions of a module that is like NumPy, and some that systems have by names of
    their own; `others` replace them.
    """
    return {
        "np": np,
        "helper": lambda function: function,
        "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
        "rows": lambda x: x.shape[0],
        "range": range,
        "take": lambda x, rows: x[rows],
        "solve": np.linalg.solve,
        "numbers": lambda x: x.astype(np.float64),
        "lower": written,
        **others,
    }


def below(size: int) -> Any:
    """Return rows and columns of what is below the diagonal, row by row."""
    import numpy as np

    return np.tril_indices(size, -1)


def written(entries: Any, size: int) -> Any:
    """Return matrices of which each row of `entries` is what is below the diagonal."""
    import numpy as np

    rows, columns = below(size)
    found = np.zeros((entries.shape[0], size, size))
    found[:, rows, columns] = entries
    return found


def places(size: int) -> Any:
    """Return for each place of a matrix which number of a row of `entries` it is, from 1 on; above
    the diagonal 0.
    """
    import numpy as np

    found = np.zeros((size, size), np.int64)
    found[below(size)] = np.arange(1, size * (size - 1) // 2 + 1)
    return found
