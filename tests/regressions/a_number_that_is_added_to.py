# An argument without axes is a number, which `+=` does not change in place.
def f(x):
    y = x
    y += np.full((), 0.5, 'f8')
    return y,


CALLS = [
    (np.array(3.0, 'f8'),),
    (np.array(1.0, 'f8'),),
]
ROUNDED = (0,)
