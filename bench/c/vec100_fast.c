/* vec100.c with a tanh of our own, of which the compiler makes vectors. */
#include "fast_math.h"
#define tanh quick_tanh
#include "vec100.c"
