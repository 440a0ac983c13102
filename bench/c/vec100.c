/* A vector that shrinks, as one would write it by hand; the compiler makes vectors of tanh. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 100 };

static double sum(const double *v)
{
    double total = 0.0;
    for (int i = 0; i < N; i++)
        total += v[i];
    return total;
}

void value(const double *arguments, double *results)
{
    const double *b = arguments + N;
    double v[N], bound = arguments[2 * N];
    memcpy(v, arguments, sizeof v);
    while (v[0] > bound)
        for (int i = 0; i < N; i++)
            v[i] = tanh(v[i] * b[i]);
    results[0] = sum(v);
}

static double *tape;
static long room;

void gradient(const double *arguments, double *results)
{
    const double *b = arguments + N;
    double bound = arguments[2 * N], *ct = results + 1, *ct_b = results + 1 + N;
    long trips = 0;
    if (room == 0)
        tape = malloc((room = 64) * N * sizeof *tape);
    memcpy(tape, arguments, N * sizeof *tape);
    while (tape[trips * N] > bound) {
        if (++trips == room)
            tape = realloc(tape, (room *= 2) * N * sizeof *tape);
        const double *restrict old = tape + (trips - 1) * N;
        double *restrict new = tape + trips * N;
        for (int i = 0; i < N; i++)
            new[i] = tanh(old[i] * b[i]);
    }
    results[0] = sum(tape + trips * N);
    for (int i = 0; i < N; i++) {
        ct[i] = 1.0;
        ct_b[i] = 0.0;
    }
    for (; trips; trips--) {
        const double *new = tape + trips * N, *old = new - N;
        for (int i = 0; i < N; i++) {
            double scaled = ct[i] * (1.0 - new[i] * new[i]);
            ct_b[i] += scaled * old[i];
            ct[i] = scaled * b[i];
        }
    }
}
