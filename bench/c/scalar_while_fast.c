/* The loop as fast as we can write it. Trips wait for each other by way of sin, so forwards that is
   made for a short wait; backwards sin and cos come from the tape, many at once. */
#include "fast_math.h"

enum { BLOCK = 64 };

void value(const double *arguments, double *results)
{
    double x = arguments[0], a = arguments[1] * 1e-3, bound = arguments[2];
    while (x < bound)
        x = fma(a, quick_sin(x), x + 1e-3);
    results[0] = x;
}

static struct tape tape;

void gradient(const double *arguments, double *results)
{
    double x = arguments[0], a = arguments[1] * 1e-3, bound = arguments[2];
    long trips = 0;
    while (x < bound) {
        make_room(&tape, trips + 1);
        tape.data[trips++] = x;
        x = fma(a, quick_sin(x), x + 1e-3);
    }
    double ct = 1.0, ct_a = 0.0, sines[BLOCK], cosines[BLOCK];
    for (long end = trips; end > 0;) {
        long size = end < BLOCK ? end : BLOCK, start = end - size;
        for (long i = 0; i < size; i++)
            sincos_of(tape.data[start + i], &sines[i], &cosines[i]);
        for (long i = size; i--;) {
            ct_a = fma(ct, sines[i], ct_a);
            ct = fma(ct, a * cosines[i], ct);
        }
        end = start;
    }
    results[0] = x;
    results[1] = ct;
    results[2] = 1e-3 * ct_a;
}
