# AssertionError: call 0, interpreter: IndexError('too many indices for array: array is 0-dimensional, but 3
def f(x, e, k):
    n = x.shape[0]
    v1 = (2 // 2)
    for i2 in range(3):
        for i3 in range(k):
            v1[np.full((2, 3, 2, ), False)] = np.clip(np.full((), 0, 'i8'), -8, 8)
        for i4 in range(3):
            v5 = np.clip(np.full((), 0, 'f8'), -8, 8)
    return v1,


CALLS = [
    (
        np.array([0.126], 'f8').reshape((1,)),
        np.array([0.0], 'f8').reshape((1,)),
        0,
    ),
    (
        np.array([], 'f8').reshape((0,)),
        np.array([], 'f8').reshape((0,)),
        0,
    ),
]
ROUNDED = (0,)
