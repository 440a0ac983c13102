/* Dormand and Prince's method as one would write it by hand. The gradient keeps the state and the
   length of every step that was taken, and computes the slopes in it again. */
#include <math.h>
#include <stdlib.h>

enum { STAGES = 7 };
static const double TOL = 1e-8;

static const double A[STAGES][STAGES - 1] = {
    {0},
    {1.0 / 5},
    {3.0 / 40, 9.0 / 40},
    {44.0 / 45, -56.0 / 15, 32.0 / 9},
    {19372.0 / 6561, -25360.0 / 2187, 64448.0 / 6561, -212.0 / 729},
    {9017.0 / 3168, -355.0 / 33, 46732.0 / 5247, 49.0 / 176, -5103.0 / 18656},
    {35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84},
};
static const double E[STAGES] = {71.0 / 57600,      0,          -71.0 / 16695, 71.0 / 1920,
                                 -17253.0 / 339200, 22.0 / 525, -1.0 / 40};

struct state {
    double y, z;
};

static inline struct state field(const double *p, struct state s)
{
    return (struct state){(p[0] - p[1] * s.z) * s.y, (p[3] * s.y - p[2]) * s.z};
}

/* Where the slopes of a step of length h are taken, and the slopes; the first is given. */
static inline __attribute__((always_inline)) void
stages(const double *p, double h, int count, struct state *at, struct state *k)
{
#pragma GCC unroll 8
    for (int i = 1; i < count; i++) {
        double y = 0.0, z = 0.0;
#pragma GCC unroll 8
        for (int j = 0; j < i; j++) {
            y += A[i][j] * k[j].y;
            z += A[i][j] * k[j].z;
        }
        at[i] = (struct state){at[0].y + h * y, at[0].z + h * z};
        k[i] = field(p, at[i]);
    }
}

struct step {
    struct state from;
    double h;
};

static struct step *tape;
static long room;

/* Solve; where `keep`, put the steps on the tape. Returns how many there are. */
static inline __attribute__((always_inline)) long
solve(const double *p, struct state *s, double left, int keep)
{
    double step = 0.1;
    long taken = 0;
    struct state at[STAGES], k[STAGES];
    at[0] = *s;
    k[0] = field(p, at[0]);
    while (left > 0.0) {
        double h = fmin(step, left), y = 0.0, z = 0.0;
        stages(p, h, STAGES, at, k);
#pragma GCC unroll 8
        for (int i = 0; i < STAGES; i++) {
            y += E[i] * k[i].y;
            z += E[i] * k[i].z;
        }
        y *= h / (TOL + TOL * fmax(fabs(at[0].y), fabs(at[6].y)));
        z *= h / (TOL + TOL * fmax(fabs(at[0].z), fabs(at[6].z)));
        double square = 0.5 * (y * y + z * z); /* of how many times too large the error is */
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
    const double *p = arguments;
    struct state s = {arguments[4], arguments[5]}, ct = {1.0, 1.0};
    double by[4] = {0};
    long taken = solve(p, &s, arguments[6], 1);
    results[0] = s.y + s.z;
    while (taken--) {
        double h = tape[taken].h;
        struct state at[STAGES], k[STAGES], ct_at[STAGES], sum = ct;
        at[0] = tape[taken].from;
        k[0] = field(p, at[0]);
        stages(p, h, STAGES - 1, at, k);
#pragma GCC unroll 8
        for (int i = STAGES - 2; i >= 0; i--) {
            double y = A[6][i] * ct.y, z = A[6][i] * ct.z;
#pragma GCC unroll 8
            for (int j = i + 1; j < STAGES - 1; j++) {
                y += A[j][i] * ct_at[j].y;
                z += A[j][i] * ct_at[j].z;
            }
            y *= h;
            z *= h;
            struct state u = at[i];
            by[0] += y * u.y;
            by[1] -= y * u.y * u.z;
            by[2] -= z * u.z;
            by[3] += z * u.y * u.z;
            ct_at[i].y = y * (p[0] - p[1] * u.z) + z * p[3] * u.z;
            ct_at[i].z = z * (p[3] * u.y - p[2]) - y * p[1] * u.y;
            sum.y += ct_at[i].y;
            sum.z += ct_at[i].z;
        }
        ct = sum;
    }
    for (int i = 0; i < 4; i++)
        results[1 + i] = by[i];
    results[5] = ct.y;
    results[6] = ct.z;
}
