# A view by np.broadcast_to of an array that becomes traced: it kept the numbers from before.
def f(x):
    v = np.arange(3, dtype='f8')
    w = np.broadcast_to(v, (3, 3))
    v[1:] = np.sum(x)
    return v, w,


CALLS = [
    (np.array([1.0, 2.0], 'f8'),),
    (np.array([3.0, 2.0], 'f8'),),
]
ROUNDED = (0,)
