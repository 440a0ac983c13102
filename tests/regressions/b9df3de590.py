# AssertionError: call 0, interpreter: IndexError('index 3 is out of bounds for axis 0 with size 3'), not Va
def f(x, e, x1, e2, k, h):
    n = x.shape[0]
    v3 = np.full((0, ), 0, 'i8')
    v4 = np.broadcast_to(x1, (3, ))
    v5 = np.full((3, ), 0, 'f8')
    o6 = {'a': np.minimum(np.full((), 0, 'f8'), k), 'b': np.full((), 0.5, 'f8')}
    v4[k] = o6['b']
    return v3, v4, v5, o6['a'], o6['b'],


CALLS = [
    (
        np.array([0.126], 'f8').reshape((1,)),
        np.array([0.0], 'f8').reshape((1,)),
        np.float64(0.64),
        np.array([-2.0, -4.0, -4.0, -3.0, 3.0], 'f8').reshape((5,)),
        3,
        np.int8(0),
    ),
    (
        np.array([], 'f8').reshape((0,)),
        np.array([], 'f8').reshape((0,)),
        np.float64(0.362),
        np.array([0.0, 1.0, 4.0, 2.0, 1.0], 'f8').reshape((5,)),
        0,
        np.int8(0),
    ),
]
ROUNDED = (0, 2)
