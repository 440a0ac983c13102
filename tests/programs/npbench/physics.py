"""Bodies under gravity, quantum transport, scattering, X-rays."""

from __future__ import annotations

import numpy as np

from tests.programs.npbench.kernel import Kernel


def acceleration(pos, mass, G, softening):
    x, y, z = pos[:, 0:1], pos[:, 1:2], pos[:, 2:3]
    dx, dy, dz = x.T - x, y.T - y, z.T - z
    inv_r3 = dx**2 + dy**2 + dz**2 + softening**2
    inv_r3[inv_r3 > 0] = inv_r3[inv_r3 > 0] ** -1.5
    return np.hstack([G * (d * inv_r3) @ mass for d in (dx, dy, dz)])


def energy(pos, vel, mass, G):
    kinetic = 0.5 * np.sum(mass * vel**2)
    x, y, z = pos[:, 0:1], pos[:, 1:2], pos[:, 2:3]
    dx, dy, dz = x.T - x, y.T - y, z.T - z
    inv_r = np.sqrt(dx**2 + dy**2 + dz**2)
    inv_r[inv_r > 0] = 1.0 / inv_r[inv_r > 0]
    potential = G * np.sum(np.triu(-(mass * mass.T) * inv_r, 1))
    return kinetic, potential


def nbody(mass, pos, vel, N, Nt, dt, G, softening):
    vel -= np.mean(mass * vel, axis=0) / np.mean(mass)
    acc = acceleration(pos, mass, G, softening)
    KE = np.ndarray(Nt + 1, dtype=np.float64)
    PE = np.ndarray(Nt + 1, dtype=np.float64)
    KE[0], PE[0] = energy(pos, vel, mass, G)
    t = 0.0
    for i in range(Nt):
        vel += acc * dt / 2.0
        pos += vel * dt
        acc = acceleration(pos, mass, G, softening)
        vel += acc * dt / 2.0
        t += dt
        KE[i + 1], PE[i + 1] = energy(pos, vel, mass, G)
    return KE, PE


def contour_integral(NR, NM, slab_per_bc, Ham, int_pts, Y):
    P0 = np.zeros((NR, NM), dtype=np.complex128)
    P1 = np.zeros((NR, NM), dtype=np.complex128)
    for z in int_pts:
        Tz = np.zeros((NR, NR), dtype=np.complex128)
        for n in range(slab_per_bc + 1):
            zz = np.power(z, slab_per_bc / 2 - n)
            Tz += zz * Ham[n]
        if NR == NM:
            X = np.linalg.inv(Tz)
        else:
            X = np.linalg.solve(Tz, Y)
        if abs(z) < 1.0:
            X = -X
        P0 += X
        P1 += z * X
    return P0, P1


def scattering_self_energies(neigh_idx, dH, G, D, Sigma):
    for k in range(G.shape[0]):
        for E in range(G.shape[1]):
            for q in range(D.shape[0]):
                for w in range(D.shape[1]):
                    for i in range(D.shape[-2]):
                        for j in range(D.shape[-1]):
                            for a in range(neigh_idx.shape[0]):
                                for b in range(neigh_idx.shape[1]):
                                    if E - w >= 0:
                                        dHG = G[k, E - w, neigh_idx[a, b]] @ dH[a, b, i]
                                        dHD = dH[a, b, j] * D[q, w, a, b, i, j]
                                        Sigma[k, E, a] += dHG @ dHD


def azimint_naive(data, radius, npt):
    rmax = radius.max()
    res = np.zeros(npt, dtype=np.float64)
    for i in range(npt):
        r1 = rmax * i / npt
        r2 = rmax * (i + 1) / npt
        in_ring = np.logical_and((r1 <= radius), (radius < r2))
        res[i] = data[in_ring].mean()
    return res


def azimint_hist(data, radius, npt):
    histu = np.histogram(radius, npt)[0]
    histw = np.histogram(radius, npt, weights=data)[0]
    return histw / histu


def _bodies(rng, dtype):
    n = 5
    mass = 20.0 * np.ones((n, 1), dtype) / n
    pos, vel = rng.normal(size=(2, n, 3)).astype(dtype)
    return mass, pos, vel, n, 6, 0.05, 1.0, 0.1


def _complex(rng, *shape):
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


def _contour(rng, dtype):
    NR, NM, slabs = 4, 3, 2
    points = np.exp(2j * np.pi * (np.arange(4) + 0.5) / 4) * np.array([0.7, 1.4, 0.8, 1.2])
    return NR, NM, slabs, _complex(rng, slabs + 1, NR, NR), points, _complex(rng, NR, NM)


def _contour_square(rng, dtype):
    NR, _, slabs, Ham, points, _ = _contour(rng, dtype)
    return NR, NR, slabs, Ham, points, _complex(rng, NR, NR)


def _scattering(rng, dtype):
    kz, energies, qz, frequencies, axes, atoms, neighbours, size = 2, 3, 2, 2, 2, 3, 2, 2
    index = rng.integers(0, atoms, size=(atoms, neighbours)).astype(np.int32)
    return (
        index,
        _complex(rng, atoms, neighbours, axes, size, size),
        _complex(rng, kz, energies, atoms, size, size),
        _complex(rng, qz, frequencies, atoms, neighbours, axes, axes),
        np.zeros((kz, energies, atoms, size, size), np.complex128),
    )


def _rings(rng, dtype):
    return rng.random(200).astype(dtype), rng.random(200).astype(dtype), 7


KERNELS = [
    # The energies take the root of a body's distance from itself: NaN, as in JAX
    Kernel(nbody, _bodies, smooth=False),
    Kernel(contour_integral, _contour),
    Kernel(scattering_self_energies, _scattering),
    Kernel(azimint_naive, _rings),
    Kernel(azimint_hist, _rings),
]
