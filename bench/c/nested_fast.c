/* A loop in a loop with a branch, as fast as we can write it: each branch is a loop of its own, for
   y falls, and backwards cosines come many at once. */
#include "fast_math.h"

void value(const double *arguments, double *results)
{
    double x = arguments[0], a = arguments[1], bound = arguments[2], total = 0.0;
    while (total < bound) {
        double y = x + total;
        while (y > 2.0)
            y *= a;
        while (y > 0.5)
            y = fma(-0.1, quick_sin(y), y);
        total = fma(0.1, y, total);
    }
    results[0] = total;
}

static struct tape high, low, counts;

void gradient(const double *arguments, double *results)
{
    double x = arguments[0], a = arguments[1], bound = arguments[2], total = 0.0;
    long highs = 0, lows = 0, outer = 0;
    while (total < bound) {
        double y = x + total;
        make_room(&counts, outer + 2);
        counts.data[outer] = highs;
        counts.data[outer + 1] = lows;
        outer += 2;
        while (y > 2.0) {
            make_room(&high, highs + 1);
            high.data[highs++] = y;
            y *= a;
        }
        while (y > 0.5) {
            make_room(&low, lows + 1);
            low.data[lows++] = y;
            y = fma(-0.1, quick_sin(y), y);
        }
        total = fma(0.1, y, total);
    }
    for (long i = 0; i < lows; i++) {
        double sine, cosine;
        sincos_of(low.data[i], &sine, &cosine);
        low.data[i] = fma(-0.1, cosine, 1.0);
    }
    double ct_x = 0.0, ct_a = 0.0, ct_total = 1.0;
    while (outer) {
        double ct = 0.1 * ct_total;
        outer -= 2;
        while (lows > counts.data[outer + 1])
            ct *= low.data[--lows];
        while (highs > counts.data[outer]) {
            ct_a = fma(ct, high.data[--highs], ct_a);
            ct *= a;
        }
        ct_x += ct;
        ct_total += ct;
    }
    results[0] = total;
    results[1] = ct_x;
    results[2] = ct_a;
}
