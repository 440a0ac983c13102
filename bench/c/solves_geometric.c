/* The same, for times of their own. */
#include "solves.c"
