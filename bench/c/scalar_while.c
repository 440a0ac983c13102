/* The loop of bench/scalar_while.py as one would write it by hand: its value, and its gradient
   by a tape that grows by doubling and is kept from call to call. */
#include <math.h>
#include <stdlib.h>

double value(double x, double a, double bound)
{
    while (x < bound)
        x = x + a * sin(x) * 1e-3 + 1e-3;
    return x;
}

static double *tape;
static long room;

double gradient(double x, double a, double bound, double *by_x, double *by_a)
{
    long trips = 0;
    while (x < bound) {
        if (trips == room) {
            room = room ? 2 * room : 1024;
            tape = realloc(tape, room * sizeof *tape);
        }
        tape[trips++] = x;
        x = x + a * sin(x) * 1e-3 + 1e-3;
    }
    double ct = 1.0, ct_a = 0.0;
    while (trips--) {
        double scaled = ct * 1e-3, old = tape[trips];
        ct_a += scaled * sin(old);
        ct += scaled * a * cos(old);
    }
    *by_x = ct;
    *by_a = ct_a;
    return x;
}
