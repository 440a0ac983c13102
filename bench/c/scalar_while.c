/* The loop as one would write it by hand: its value, and its gradient by a tape that grows by
   doubling and is kept from call to call. */
#include <math.h>
#include <stdlib.h>

void value(const double *arguments, double *results)
{
    double x = arguments[0], a = arguments[1], bound = arguments[2];
    while (x < bound)
        x = x + a * sin(x) * 1e-3 + 1e-3;
    results[0] = x;
}

static double *tape;
static long room;

void gradient(const double *arguments, double *results)
{
    double x = arguments[0], a = arguments[1], bound = arguments[2];
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
    results[0] = x;
    results[1] = ct;
    results[2] = ct_a;
}
