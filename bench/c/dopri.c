/* Dormand and Prince's method as one would write it by hand. The gradient keeps the state and the
   length of every step that was taken, and computes the slopes in it again. */
#include <math.h>
#include <stdlib.h>
typedef double real;
#define larger(a, b) fmax(fabs(a), fabs(b))
#include "dopri_steps.h"

static struct step *tape;
static long room;

/* Solve; where `keep`, put the steps on the tape. Returns how many there are. */
INLINE long solve(const double *p, struct state *s, double left, int keep)
{
    double step = 0.1;
    long taken = 0;
    struct state at[STAGES], k[STAGES];
    at[0] = *s;
    k[0] = field(p, at[0]);
    while (left > 0.0) {
        double h = fmin(step, left);
        stages(p, h, STAGES, at, k);
        double square = square_of_error(h, at, k);
        if (square <= 1.0) {
            if (keep) {
                if (taken == room) {
                    room = room ? 2 * room : 256;
                    tape = realloc(tape, room * sizeof *tape);
                }
                tape[taken++] = (struct step){at[0], h};
            }
            left -= h;
            at[0] = at[6];
            k[0] = k[6];
            step = h * fmin(0.9 * pow(fmax(square, 1e-18), -0.1), 5.0);
        } else
            step = 0.5 * h;
    }
    *s = at[0];
    return taken;
}

void value(const double *arguments, double *results)
{
    struct state s = {arguments[4], arguments[5]};
    solve(arguments, &s, arguments[6], 0);
    results[0] = s.y + s.z;
}

void gradient(const double *arguments, double *results)
{
    struct state s = {arguments[4], arguments[5]}, ct = {1.0, 1.0};
    double by[4] = {0};
    long taken = solve(arguments, &s, arguments[6], 1);
    results[0] = s.y + s.z;
    while (taken--)
        pull_back(arguments, &tape[taken], &ct, by);
    for (int i = 0; i < 4; i++)
        results[1 + i] = by[i];
    results[5] = ct.y;
    results[6] = ct.z;
}
