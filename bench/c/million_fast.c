/* The same loop, for longer. */
#include "scalar_while_fast.c"
