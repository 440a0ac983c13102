# AssertionError: forward mode: ShapeError('zero-size array to reduction operation max which has no identity
def f(x, e, e1, k, h):
    n = x.shape[0]
    def g2(a3, a4):
        return np.clip(np.searchsorted(np.sort(e), np.sort(np.broadcast_to(a4, (3, )), axis=0)), -8, 8)
    v5 = np.full((17, ), 0.5, 'f8')
    v6 = np.arange(3, dtype='f8')
    l7 = [np.broadcast_to(v6, (3, 3, ))]
    if np.all(np.broadcast_to(e, (3, n, )).astype('?')):
        return v5, v6,
    for i9, r8 in enumerate(v6.copy()):
        v5[1:] *= np.sin(np.sum(np.broadcast_to(r8, (2, )), axis=-1))
    for i10 in range(3):
        if np.max(e) < np.minimum(np.full((), 0, 'f8'), k):
            break
        v5[np.full((17, ), False)] = np.sin(np.full((), 0.5, 'f8'))
    v5 = v5
    return v5, v6,


CALLS = [
    (
        np.array([], 'f8').reshape((0,)),
        np.array([], 'f8').reshape((0,)),
        np.array([3, 1, 0, -2, -2, -4, -4, -4, -3, 3, 1, 4, 0, 1, 4, 2, 1], 'i8').reshape((17,)),
        0,
        np.int8(0),
    ),
    (
        np.array([], 'f8').reshape((0,)),
        np.array([], 'f8').reshape((0,)),
        np.array([0, 1, 4, -2, 3, 2, -4, -1, 3, 0, -4, 2, 2, 3, -3, -4, 3], 'i8').reshape((17,)),
        0,
        np.int8(0),
    ),
]
ROUNDED = (0,)
