# KeyError: <value while.2: token>
class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b
def f(x, e, k, h):
    n = x.shape[0]
    def g1(a2, a3):
        if np.where(np.full((), True), np.full((), -1, 'f8'), np.full((), 3, 'f8')) < np.clip(np.sum(e[e > 2], dtype='f8'), -8, 8):
            return (np.copy(a3) % 7)
        return np.clip(np.copy(np.sort(np.max(np.broadcast_to(a3, (3, n, 3, )), axis=0), axis=1)), -8, 8)
    v4 = np.where(np.full((3, ), True), np.arange(3, dtype='i8'), np.arange(3, dtype='i8'))
    l5 = [np.broadcast_to(v4, (3, )).astype('i4')]
    for i7, r6 in enumerate(v4.copy()):
        if i7 < 1:
            break
        e[np.all(np.broadcast_to(e, (3, n, )).astype('?'), axis=-2)] = np.clip(np.broadcast_to(r6, ()).astype('f8'), -8, 8)
    e = np.copy(e)
    o8 = Pair(np.copy(np.take_along_axis(np.broadcast_to(e, (n, )), np.argsort(np.broadcast_to(e, (n, )), kind='stable'), axis=0)), np.copy(((1.5 + np.sin(np.broadcast_to(x, (n, )).astype('f4'))) ** np.sin(np.conj((2.0 + np.sin(np.full((n, ), -0.75, 'f4')) + np.complex64(1j) * np.broadcast_to(e, (n, )).astype('f4'))).imag))))
    for i9 in range(1):
        o8.a[0] = np.clip(o8.a[np.full((), 2, 'i8') % max(n, 1)], -8, 8)
        for i10 in range(n % 4, 0, -1):
            o8.b, o8.b = o8.b, o8.b
        l5.append(np.clip(np.where(np.full((1, ), True), np.sort(np.broadcast_to(v4, (3, )).astype('i4'), axis=0), np.where(np.full((), True), np.arange(3, dtype='i4'), np.broadcast_to(v4, (3, )).astype('i4'))), -8, 8))
        o8.b *= np.sin((np.sinh(np.sin(np.full((), 0.5, 'f4')))))
        o8.b = np.tanh(o8.b)
    for i12, r11 in enumerate(x.copy()):
        j13 = 0
        while j13 < np.int16(n) and np.clip((np.full((), 3, 'f8') * np.full((), 0, 'f8')), -8, 8) < (np.full((), 1, 'f8'), np.full((), 2, 'f8'))[n % 2]:
            j13 += 1
            v14 = np.clip(np.full((), 0, 'f8'), -8, 8)
            v4[-1] = ((np.broadcast_to(v14, (n, )).astype('i8')[np.full((), 0, 'i8') % max(n, 1)], np.broadcast_to(v14, ()).astype('i8'))[0] % 7)
        for i15 in range(k):
            e[-h] = np.clip(np.clip(np.sum(o8.a[o8.a > 0], dtype='f8'), -8, 8), -8, 8)
            l5.append((np.copy(np.broadcast_to(v4, (3, )).astype('i4')) % 7))
    l5 = np.stack(l5)
    return v4, l5,


CALLS = [
    (
        np.array([0.252, 0.136, 1.239, -0.032, -1.318, -0.009, 0.52], 'f8').reshape((7,)),
        np.array([0.0, 2.0, 4.0, -4.0, 4.0, 0.0, -1.0], 'f8').reshape((7,)),
        2,
        np.int8(3),
    ),
    (
        np.array([-0.159, 0.895, -0.181, -0.608, -0.223, -1.206, -0.626], 'f8').reshape((7,)),
        np.array([0.0, -2.0, 2.0, -4.0, -1.0, 3.0, 3.0], 'f8').reshape((7,)),
        2,
        np.int16(2),
    ),
]
ROUNDED = (0,)
