# AssertionError: forward mode: AliasError('for at <program 6061>:16: `v3` may be another array, depending o
def f(x, e, k, h):
    n = x.shape[0]
    def g1(a2):
        return np.sin(np.full((), 0.5, 'f8'))
    v3 = np.minimum(np.full((3, ), 0, 'i8'), np.full((1, ), 0, 'i8'))
    j4 = 0
    while True:
        j4 += 1
        if j4 > 3:
            break
        v5 = ~np.full((n, ), False)
        t6 = (np.clip(((np.full((3, ), 0, 'i8') // 2) // 2), -8, 8), v3)
        v3, v3 = t6
        if np.full((), 0, 'f8') < np.clip(np.sum(e[e > 0], dtype='f8'), -8, 8):
            break
        for i7 in range(3):
            np.add.at(v3, np.full((2, ), 0, 'i8') % max(3, 1), np.clip(np.full((), 0, 'i8'), -8, 8))
            v3 = np.clip(v3, -8, 8)
    return v3,


CALLS = [
    (
        np.array([], 'f8').reshape((0,)),
        np.array([], 'f8').reshape((0,)),
        0,
        np.int8(0),
    ),
    (
        np.array([], 'f8').reshape((0,)),
        np.array([], 'f8').reshape((0,)),
        0,
        np.int8(0),
    ),
]
ROUNDED = (0,)
