# AssertionError: call 0, interpreter: OverflowError('Python int too large to convert to C long'), not Index
V4 = Variable(np.full((3, ), 0, 'f8'))
def f(x, e, e1, e2, e3, k, h):
    n = x.shape[0]
    def g5(a6):
        if not (np.full((), 0, 'f8') < 0):
            return np.clip(np.minimum(np.minimum(np.full((), 0, 'f8'), k), 2), -8, 8)
        return np.clip(np.clip(np.clip(np.full((), 0, 'f8').astype('f2') + np.full((), 0, 'f8').astype('f2'), -8, 8).astype('f8').astype('f2') + np.minimum(np.full((), 0, 'f8'), np.full((), 0, 'f8')).astype('f2'), -8, 8).astype('f8'), -8, 8)
    v7 = np.where(np.full((1, 3, ), False), np.broadcast_to(e3, (n, 3, )).astype('f8'), np.broadcast_to(e3, (n, 3, )).astype('f8'))
    l8 = [np.clip(np.broadcast_to(e3, (3, )).astype('f8').astype('f2') + np.broadcast_to(e3, (3, )).astype('f8').astype('f2'), -8, 8).astype('f8')]
    o9 = {'a': np.full((3, n, ), 0, 'f8'), 'b': np.full((3, 3, ), 0.5, 'f8')[np.full((), 0, 'i8') % 3]}
    t10 = (np.take(np.take(np.broadcast_to(o9['b'], (3, 3, )), np.full((3, ), 0, 'i8') % 3, axis=0), np.minimum(np.broadcast_to(e3, (n, )), k) % 3, axis=0), v7)
    v7, v7 = t10
    v7[(np.full((n, 3, ), 0, 'f8') < np.full((n, 3, ), -1, 'f8'))] = np.broadcast_to(e2, ()).astype('f8')
    j11 = 0
    while True:
        j11 += 1
        if j11 > np.int16(n):
            break
        l8.append(np.clip(np.copy((np.where(np.broadcast_to(e3, (3, )).astype('?'), np.broadcast_to(e2, (3, )).astype('f8'), np.broadcast_to(e3, (3, )).astype('f8')), np.broadcast_to(e2, (3, )).astype('f8'))[-h]), -8, 8))
        if k % 2 == 0:
            break
        t12 = (np.tanh(np.copy((1.0 / (1.0 + np.exp(-np.full((n, 3, 3, ), 1.25, 'f8')[:, :, e3 % 3]))))), v7)
        v7, v7 = t12
        for i13 in range(0, k % 3, 2):
            l8.append(np.clip(np.copy((np.abs(np.broadcast_to(e2, (3, )).astype('f8')) if (np.clip(np.sum(o9['a'][o9['a'] > 1], dtype='f8'), -8, 8) < np.min(o9['a']) or k > 0) else np.clip(np.cumsum(np.arange(3, dtype='f8'), axis=0, dtype='f8'), -8, 8))), -8, 8))
        j14 = 0
        while True:
            j14 += 1
            if j14 > 0:
                break
            o9['a'] = np.clip(np.copy(o9['a']), -8, 8)
    for i16, r15 in enumerate(v7.copy()):
        for i18, r17 in enumerate(o9['b'].copy()):
            o9['b'][np.broadcast_to(e2, (3, )).astype('?')] = np.sin(((r17 + r17) if e[-h] < g5(np.broadcast_to(e3, (n, )).astype('f8')) else (r17 - r17)))
            o9['b'][k % 3] = np.sin((np.sqrt(1.0 + r17 * r17)))
        if np.broadcast_to(e2, ()).astype('f8') < np.maximum(k, np.broadcast_to(e2, ()).astype('f8')):
            continue
        for i19 in range(0, k % 3, 2):
            o9['b'][(np.broadcast_to(e3, (3, )).astype('f8') == np.broadcast_to(e3, ()).astype('f8'))] = np.sin(np.power((1.5 + np.sin(np.broadcast_to(e3, ()).astype('f8'))), np.broadcast_to(e3, ()).astype('f8')))
            o9['b'] -= np.tanh((np.broadcast_to(e3, (1, )).astype('f8') if not np.any(np.broadcast_to(e2, (3, )).astype('?'), axis=-1) else np.broadcast_to(e2, (1, )).astype('f8')))
            o9['b'] = np.tanh(o9['b'])
            if k % 2 == 0:
                return v7, o9['a'], o9['b'],
            V4.assign(np.sin(np.copy(r15)))
    return v7, o9['a'], o9['b'],


CALLS = [
    (
        np.array([0.913, -0.109, -0.323, -0.077, -1.197, -0.116, 0.069, -0.399, -0.109, 0.186, -0.739, 1.081, -0.14, -1.267, 0.412, 1.377, -1.07, -0.215, -0.96, 0.519, -2.028, -2.287, -1.718, -0.805, -0.741, -1.394, 0.721, -0.333, -2.683, -0.157, -0.46, 0.267, 0.25], 'f8').reshape((33,)),
        np.array([0.0, -1.0, -1.0, 4.0, 1.0, 1.0, -3.0, 4.0, 2.0, 2.0, -2.0, -2.0, -4.0, -1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 0.0, 3.0, -3.0, -3.0, 1.0, -1.0, -2.0, -4.0, -4.0, 2.0, -2.0, 1.0, 1.0, -2.0], 'f8').reshape((33,)),
        np.array([-4], 'i8').reshape(()),
        np.array([-2], 'i8').reshape(()),
        np.array([4], 'i8').reshape(()),
        1,
        np.uint64(1),
    ),
    (
        np.array([0.693, 1.657, -1.323, 0.322, 0.631, -0.753, 0.932, 0.885, 0.457, -2.066, 0.161, 0.824, 1.183, -1.603, -0.004, -1.707, -1.137, -1.781, 0.186], 'f8').reshape((19,)),
        np.array([2.0, -1.0, 1.0, 1.0, 0.0, 4.0, -1.0, 0.0, 1.0, 0.0, 3.0, 1.0, 3.0, 1.0, -2.0, -3.0, -1.0, 2.0, 1.0], 'f8').reshape((19,)),
        np.array([3], 'i8').reshape(()),
        np.array([1], 'i8').reshape(()),
        np.array([-2], 'i8').reshape(()),
        0,
        np.int16(1),
    ),
    (
        np.array([-1.706, 1.05, -1.037], 'f8').reshape((3,)),
        np.array([-4.0, -3.0, -2.0], 'f8').reshape((3,)),
        np.array([-4], 'i8').reshape(()),
        np.array([-2], 'i8').reshape(()),
        np.array([-1], 'i8').reshape(()),
        0,
        np.uint8(2),
    ),
]
ROUNDED = (0,)
