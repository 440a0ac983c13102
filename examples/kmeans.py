"""k-means (Lloyd's algorithm) until no point changes its cluster: NumPy and one decorator."""

import numpy as np

import wend


def kmeans(points, centers):
    """Move `centers` to the means of the points nearest to them until nothing changes.

    Args:
        points: [n, d].
        centers: [k, d], where to start.

    Returns:
        The centers, the cluster of each point, and the number of rounds.
    """
    clusters = np.full(len(points), -1)
    rounds = 0
    while True:
        distances = ((points[:, None, :] - centers[None, :, :]) ** 2).sum(axis=-1)
        nearest = np.argmin(distances, axis=1)
        if np.all(nearest == clusters):
            break
        clusters = nearest
        members = (nearest[:, None] == np.arange(len(centers))).astype(float)
        centers = members.T @ points / members.sum(axis=0)[:, None]
        rounds += 1
    return centers, clusters, rounds


def example_data(n=300, seed=0):
    """Points around three centers, and three of them to start from."""
    rng = np.random.default_rng(seed)
    middles = np.array([[0.0, 0.0], [4.0, 1.0], [1.0, 5.0]])
    points = middles[rng.integers(3, size=n)] + rng.normal(size=(n, 2))
    return points, points[:3].copy()


if __name__ == "__main__":
    data = example_data()
    centers, _, rounds = wend.function(kmeans)(*data)
    print(f"{rounds} rounds; centers:\n{np.round(centers, 3)}")
    assert np.allclose(centers, kmeans(*data)[0])
