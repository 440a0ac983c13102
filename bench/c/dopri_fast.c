/* dopri.c with a power of our own. The stages are sums that wait for each other, and all of it stays
   in registers: there is little else to gain. */
#include "fast_math.h"
#define pow(x, power) quick_exp((power) * quick_log(x))
#include "dopri.c"
