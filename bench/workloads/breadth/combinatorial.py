"""Graphs, orders, sorts and plans."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.workload import Library, Program
from bench.workloads.breadth import integers, uniform, workload


def two_opt(lib: Library) -> Program:
    np = lib.np

    def program(places: Any) -> Any:
        n = len(places)
        d = np.zeros((n, n))
        for i in range(n):
            for j in range(n):
                x, y = places[i, 0] - places[j, 0], places[i, 1] - places[j, 1]
                d[i, j] = np.sqrt(x**2 + y**2)
        tour = np.arange(n)
        better = True
        while better:
            better = False
            for i in range(n - 2):
                for j in range(i + 2, n):
                    a, b, c, e = tour[i], tour[i + 1], tour[j], tour[(j + 1) % n]
                    if a != e and d[a, c] + d[b, e] < d[a, b] + d[c, e] - 1e-12:
                        low, high = i + 1, j
                        while low < high:
                            kept = tour[low]
                            tour[low] = tour[high]
                            tour[high] = kept
                            low += 1
                            high -= 1
                        better = True
        total = 0.0
        for i in range(n):
            total += d[tour[i], tour[(i + 1) % n]]
        return total

    return program


def kruskal(lib: Library) -> Program:
    np = lib.np

    def program(edges: Any, weights: Any) -> Any:
        parent = np.arange(5000)
        total = 0.0
        for k in range(len(weights)):
            a, b = edges[k, 0], edges[k, 1]
            while parent[a] != a:
                parent[a] = parent[parent[a]]
                a = parent[a]
            while parent[b] != b:
                parent[b] = parent[parent[b]]
                b = parent[b]
            if a != b:
                parent[a] = b
                total += weights[k]
        return total

    return program


def shortest_paths(lib: Library) -> Program:
    np = lib.np

    def program(lengths: Any) -> Any:
        d = lengths.copy()
        n = d.shape[0]
        for k in range(n):
            for i in range(n):
                for j in range(n):
                    by_k = d[i, k] + d[k, j]
                    if by_k < d[i, j]:
                        d[i, j] = by_k
        return np.sum(d)

    return program


def bellman_ford(lib: Library) -> Program:
    np = lib.np

    def program(sources: Any, targets: Any, lengths: Any) -> Any:
        d = np.full(200, 1e9)
        d[0] = 0.0
        changed = True
        while changed:
            changed = False
            for e in range(sources.shape[0]):
                here = d[sources[e]] + lengths[e]
                if here < d[targets[e]]:
                    d[targets[e]] = here
                    changed = True
        return np.sum(np.minimum(d, 100.0))

    return program


def pagerank(lib: Library) -> Program:
    np = lib.np

    def program(sources: Any, targets: Any) -> Any:
        n = 300
        degree = np.zeros(n)
        for e in range(sources.shape[0]):
            degree[sources[e]] += 1
        p, error = np.full(n, 1.0 / n), 1.0
        while error > 1e-10:
            q = np.full(n, 0.15 / n)
            for e in range(sources.shape[0]):
                q[targets[e]] += 0.85 * p[sources[e]] / degree[sources[e]]
            dangling = 0.0
            for i in range(n):
                if degree[i] == 0:
                    dangling += p[i]
            q = q + 0.85 * dangling / n
            error = np.sum(np.abs(q - p))
            p = q
        return np.sum(p * p)

    return program


def matrix_chain(lib: Library) -> Program:
    np = lib.np

    def program(sizes: Any) -> Any:
        n = sizes.shape[0] - 1
        cost = np.zeros((n, n), np.int64)
        for length in range(2, n + 1):
            for i in range(n - length + 1):
                j = i + length - 1
                best = np.int64(1 << 60)
                for k in range(i, j):
                    both = cost[i, k] + cost[k + 1, j]
                    here = both + sizes[i] * sizes[k + 1] * sizes[j + 1]
                    if here < best:
                        best = here
                cost[i, j] = best
        return cost[0, n - 1]

    return program


def heap_sort(lib: Library) -> Program:
    def program(x: Any) -> Any:
        a = x.copy()
        n = len(a)
        for start in range(n // 2 - 1, -1, -1):
            i = start
            while True:
                child = 2 * i + 1
                if child >= n:
                    break
                if child + 1 < n and a[child + 1] > a[child]:
                    child += 1
                if a[i] >= a[child]:
                    break
                kept = a[i]
                a[i] = a[child]
                a[child] = kept
                i = child
        for end in range(n - 1, 0, -1):
            kept = a[0]
            a[0] = a[end]
            a[end] = kept
            i = 0
            while True:
                child = 2 * i + 1
                if child >= end:
                    break
                if child + 1 < end and a[child + 1] > a[child]:
                    child += 1
                if a[i] >= a[child]:
                    break
                kept = a[i]
                a[i] = a[child]
                a[child] = kept
                i = child
        total = 0.0
        for i in range(n):
            total += i * a[i]
        return total

    return program


def radix_sort(lib: Library) -> Program:
    np = lib.np

    def program(x: Any) -> Any:
        a = x.copy()
        n = len(a)
        b = np.zeros(n, np.int64)
        for digit in range(4):
            count = np.zeros(17, np.int64)
            for i in range(n):
                count[((a[i] >> (4 * digit)) & 15) + 1] += 1
            for k in range(16):
                count[k + 1] += count[k]
            for i in range(n):
                d = (a[i] >> (4 * digit)) & 15
                b[count[d]] = a[i]
                count[d] += 1
            a, b = b, a
        total = 0
        for i in range(n):
            total += i * a[i]
        return total

    return program


def value_iteration(lib: Library) -> Program:
    np = lib.np

    def program(rewards: Any) -> Any:
        n, m = rewards.shape
        values, error = np.zeros((n, m)), 1.0
        while error > 1e-6:
            new = np.zeros((n, m))
            error = 0.0
            for i in range(n):
                for j in range(m):
                    best = values[max(i - 1, 0), j]
                    best = max(best, values[min(i + 1, n - 1), j])
                    best = max(best, values[i, max(j - 1, 0)])
                    best = max(best, values[i, min(j + 1, m - 1)])
                    new[i, j] = rewards[i, j] + 0.9 * best
                    error = max(error, abs(new[i, j] - values[i, j]))
            values = new
        return np.sum(values)

    return program


def value_iteration_at_once(lib: Library) -> Program:
    np = lib.np

    def program(rewards: Any) -> Any:
        def sweep(values: Any, _: Any) -> Any:
            v = np.pad(values, 1, mode="edge")
            rows = np.maximum(v[:-2, 1:-1], v[2:, 1:-1])
            columns = np.maximum(v[1:-1, :-2], v[1:-1, 2:])
            new = rewards + 0.9 * np.maximum(rows, columns)
            return new, np.max(np.abs(new - values))

        start = np.zeros_like(rewards), 1.0
        values, _ = lib.while_loop(lambda _, error: error > 1e-6, sweep, start, 1000)
        return np.sum(values)

    return program


WORKLOADS = [
    workload(
        "two_opt",
        "a tour of 40 places, shortened by exchanges of two legs",
        two_opt,
        None,
        (uniform(40, 2),),
        (uniform(7, 2),),
    ),
    workload(
        "kruskal",
        "the smallest tree of a graph of 5,000 nodes and 20,000 edges by Kruskal's method",
        kruskal,
        None,
        (integers(0, 5000, 20_000, 2), np.sort(uniform(20_000))),
        (integers(0, 100, 30, 2), np.sort(uniform(30))),
        (1,),
    ),
    workload(
        "shortest_paths",
        "all shortest paths among 50 nodes by Floyd and Warshall's method",
        shortest_paths,
        None,
        (uniform(50, 50),),
        (uniform(5, 5),),
    ),
    workload(
        "bellman_ford",
        "the shortest paths from one of 200 nodes over 1500 edges by Bellman and Ford's method",
        bellman_ford,
        None,
        (integers(0, 200, 1500), integers(0, 200, 1500, seed=1), uniform(1500)),
        (integers(0, 9, 30), integers(0, 9, 30, seed=1), uniform(30)),
    ),
    workload(
        "pagerank",
        "PageRank of 300 pages with 2000 links, to 1e-10",
        pagerank,
        None,
        (integers(0, 300, 2000), integers(0, 300, 2000, seed=1)),
        (integers(0, 300, 20), integers(0, 300, 20, seed=1)),
    ),
    workload(
        "matrix_chain",
        "the best order for a product of 40 matrices",
        matrix_chain,
        None,
        (integers(5, 50, 41),),
        (integers(5, 50, 6),),
    ),
    workload(
        "heap_sort",
        "heap sort of 20,000 numbers",
        heap_sort,
        None,
        (uniform(20_000),),  # fewer would teach the processor where each branch goes
        (uniform(9),),
    ),
    workload(
        "radix_sort",
        "radix sort of 1000 integers of 16 bits",
        radix_sort,
        None,
        (integers(0, 1 << 16, 1000),),
        (integers(0, 1 << 16, 9),),
    ),
    workload(
        "value_iteration",
        "value iteration over 20 × 20 cells, to 1e-6",
        value_iteration,
        value_iteration_at_once,
        (uniform(20, 20),),
        (uniform(3, 4),),
    ),
]
