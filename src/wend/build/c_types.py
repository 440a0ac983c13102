"""The types of C for dtypes, and the names that C's functions and parameters may not have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np


class CType(NamedTuple):
    """A type of C.

    Attributes:
        name: its name.
        alignment: of a field of this type, in bytes.
        parts: how many of them are one element: two of a complex number.
    """

    name: str
    alignment: int
    parts: int = 1


C_TYPES: Mapping[np.dtype, CType] = {
    np.dtype(np.bool_): CType("bool", 1),
    **{
        np.dtype(f"{sign}int{bits}"): CType(f"{sign}int{bits}_t", bits // 8)
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
    np.dtype(np.float32): CType("float", 4),
    np.dtype(np.float64): CType("double", 8),
    np.dtype(np.complex64): CType("float", 4, 2),
    np.dtype(np.complex128): CType("double", 8, 2),
}
_WORDS = """
    workspace state auto bool break case char class const continue default delete do double else
    enum explicit export extern false float for friend goto if inline int int8_t int16_t int32_t
    int64_t long main mutable namespace new operator private protected public register restrict
    return short signed sizeof static struct switch template this throw true try typedef typename
    uint8_t uint16_t uint32_t uint64_t union unsigned using virtual void volatile while
"""
RESERVED = frozenset(_WORDS.split())
_MATH = """
    acos acosh asin asinh atan atan2 atanh cabs carg cbrt ceil cexp cimag clog conj copysign cos
    cosh cpow creal csin csqrt erf erfc exp exp10 exp2 expm1 fabs fdim floor fma fmax fmin fmod
    frexp gamma hypot ilogb j0 j1 jn ldexp lgamma llrint llround log log10 log1p log2 logb lrint
    lround modf nan nearbyint nextafter nexttoward pow remainder remquo rint round scalb scalbln
    scalbn significand sin sincos sinh sqrt tan tanh tgamma trunc y0 y1 yn
"""
_SYSTEM = """
    abort abs accept access alarm aligned_alloc atexit atof atoi atol bcmp bcopy bind bsearch bzero
    calloc chdir chmod clock close connect ctime daemon difftime div dup environ errno execv exit
    fclose feof fflush fgets fopen fork fprintf fputs fread free fscanf fseek ftell fwrite getc
    getenv getpid gets getw gmtime index ioctl kill labs ldiv link listen localtime longjmp malloc
    mblen memchr memcmp memcpy memmove memset mkdir mktime nice open pause perror pipe poll printf
    putc putenv puts putw qsort raise rand random read realloc recv remove rename rewind rindex
    rmdir scanf select send setbuf setjmp setenv shutdown signal sleep snprintf socket sprintf srand
    srandom sscanf stat stderr stdin stdout strcat strchr strcmp strcpy strdup strlen strncpy strstr
    strtod strtok strtol sync syscall system tee time times tmpfile truncate umask uname ungetc
    unlink usleep vfork vprintf wait wcslen write
"""
# What programs in C link with: a function of that name would take the place of the library's.
LIBRARY = frozenset([*(x + end for x in _MATH.split() for end in ("", "f", "l")), *_SYSTEM.split()])
