"""Random numbers as functions of a key: the same in plain Python, in a trace and in a loop.

A key is an array, u64[2]. Draw from a key only once: `split` it to get more keys, or `fold_in` a
number.

    >>> import wend
    >>> key = wend.random.key(0)
    >>> for_weights, for_noise = wend.random.split(key)
    >>> wend.random.normal(for_noise, (2, 3)).shape
    (2, 3)

Signatures follow `jax.random`, dtypes follow NumPy. `Generator` keeps a key in a `Variable` and has
the methods of `numpy.random.Generator`.
"""

from wend.random.choices import bernoulli as bernoulli
from wend.random.choices import categorical as categorical
from wend.random.choices import choice as choice
from wend.random.choices import permutation as permutation
from wend.random.floats import exponential as exponential
from wend.random.floats import gumbel as gumbel
from wend.random.floats import normal as normal
from wend.random.floats import uniform as uniform
from wend.random.generator import Generator as Generator
from wend.random.integers import randint as randint
from wend.random.keys import bits as bits
from wend.random.keys import fold_in as fold_in
from wend.random.keys import key as key
from wend.random.keys import split as split
