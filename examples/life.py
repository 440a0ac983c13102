"""Conway's Game of Life until the board repeats itself: integers, slices, a data-dependent end."""

import numpy as np

import wend


def neighbours(board):
    """How many of the eight cells around each are alive; the board is a torus."""
    count = np.zeros_like(board)
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            if dy or dx:
                count = count + np.roll(board, (dy, dx), axis=(0, 1))
    return count


def live(board, most):
    """Play until nothing changes, or for `most` generations."""
    generation = 0
    while generation < most:
        count = neighbours(board)
        following = ((count == 3) | ((board == 1) & (count == 2))).astype(board.dtype)
        if np.array_equal(following, board):
            break
        board = following
        generation += 1
    return board, generation


def example_data(size=24, seed=1):
    """A random board."""
    return np.random.default_rng(seed).integers(0, 2, size=(size, size))


if __name__ == "__main__":
    board, generations = wend.function(live)(example_data(), 1000)
    print(f"after {generations} generations:")
    for row in board:
        print("".join("#" if cell else "." for cell in row))
