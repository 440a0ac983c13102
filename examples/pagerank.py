"""PageRank by power iteration, until the ranks stand still."""

import numpy as np

import wend


def pagerank(links, damping=0.85, tolerance=1e-12):
    """The rank of every page.

    Args:
        links: [n, n], links[i, j] is 1 where page j links to page i.
        damping: the chance to follow a link.
        tolerance: stop when the ranks change by less in all.

    Returns:
        The ranks, and the number of rounds.
    """
    n = len(links)
    outgoing = links.sum(axis=0)
    flow = np.where(outgoing > 0, links / np.maximum(outgoing, 1), 1 / n)
    ranks = np.full(n, 1 / n)
    change, rounds = 1.0, 0
    while change > tolerance:
        new = damping * (flow @ ranks) + (1 - damping) / n
        change = np.abs(new - ranks).sum()
        ranks = new
        rounds += 1
    return ranks, rounds


def example_data(n=50, seed=0):
    """A random web."""
    return (np.random.default_rng(seed).random((n, n)) < 0.1).astype(float)


if __name__ == "__main__":
    links = example_data()
    ranks, rounds = wend.function(pagerank)(links)
    sensitivity = wend.grad(lambda d: pagerank(links, d)[0].max())(0.85)
    print(f"{rounds} rounds; the first page has {ranks.max():.4f}, d/d(damping) {sensitivity:.4f}")
