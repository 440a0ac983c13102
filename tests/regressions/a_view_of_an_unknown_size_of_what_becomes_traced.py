# Views of a size that the run tells, of an array that becomes traced: they kept old numbers.
def f(x):
    n = x.shape[0]
    v = np.full((3,), 0, 'i4')
    w = v[:n]
    v[1:] = 1
    u = np.full((3,), 2.0, 'f8')
    part = u[n - 2:]
    part += x[0]
    return w, u, part,


CALLS = [
    (np.array([1.0, 2.0], 'f8'),),
    (np.array([3.0, 2.0, 1.0], 'f8'),),
]
ROUNDED = (0,)
