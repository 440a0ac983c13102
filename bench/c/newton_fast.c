/* newton.c with an exp of our own. */
#include "fast_math.h"
#define exp quick_exp
#include "newton.c"
