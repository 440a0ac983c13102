/* A loop in a loop with a branch, as one would write it by hand. */
#include <math.h>
#include <stdlib.h>

void value(const double *arguments, double *results)
{
    double x = arguments[0], a = arguments[1], bound = arguments[2], total = 0.0;
    while (total < bound) {
        double y = x + total;
        while (y > 0.5)
            y = y > 2.0 ? y * a : y - 0.1 * sin(y);
        total += 0.1 * y;
    }
    results[0] = total;
}

static double *tape;
static long *ends;
static long tape_room, ends_room;

void gradient(const double *arguments, double *results)
{
    double x = arguments[0], a = arguments[1], bound = arguments[2], total = 0.0;
    long trips = 0, outer = 0;
    while (total < bound) {
        double y = x + total;
        if (outer == ends_room) {
            ends_room = ends_room ? 2 * ends_room : 1024;
            ends = realloc(ends, ends_room * sizeof *ends);
        }
        ends[outer++] = trips;
        while (y > 0.5) {
            if (trips == tape_room) {
                tape_room = tape_room ? 2 * tape_room : 1024;
                tape = realloc(tape, tape_room * sizeof *tape);
            }
            tape[trips++] = y;
            y = y > 2.0 ? y * a : y - 0.1 * sin(y);
        }
        total += 0.1 * y;
    }
    double ct_x = 0.0, ct_a = 0.0, ct_total = 1.0;
    while (outer--) {
        double ct = 0.1 * ct_total;
        while (trips > ends[outer]) {
            double y = tape[--trips];
            if (y > 2.0) {
                ct_a += ct * y;
                ct *= a;
            } else
                ct -= 0.1 * ct * cos(y);
        }
        ct_x += ct;
        ct_total += ct;
    }
    results[0] = total;
    results[1] = ct_x;
    results[2] = ct_a;
}
