/* Solves in the lanes of vectors. A lane that is done gives its result and takes the next element.
   The gradient keeps the steps of all lanes together, those that were not taken as of length 0, and
   goes back through them in as many trips as there were. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef __AVX512F__
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif
typedef double real __attribute__((vector_size(8 * LANES)));
typedef long mask __attribute__((vector_size(8 * LANES)));

static inline real where(mask test, real a, real b)
{
    return (real)((test & (mask)a) | (~test & (mask)b));
}

static inline real larger(real a, real b)
{
    a = (real)((mask)a & 0x7fffffffffffffff);
    b = (real)((mask)b & 0x7fffffffffffffff);
    return where(a > b, a, b);
}
#include "dopri_steps.h"

static const double RATES[4] = {0.55, 0.028, 0.8, 0.024}, START[2] = {34.0, 5.9};
enum { CHUNK = 256 }; /* elements whose steps stay in the cache */

struct begin {
    long trip, lane, element;
};

static struct step *tape;
static long room;

static inline long any(mask test)
{
    long some = 0;
    for (int lane = 0; lane < LANES; lane++)
        some |= test[lane];
    return some;
}

#if defined __AVX512F__ && defined __GLIBC__
#define vector_pow _ZGVeN8vv_pow
#elif defined __AVX2__ && defined __GLIBC__
#define vector_pow _ZGVdN4vv_pow
#endif

#ifdef vector_pow
real vector_pow(real, real); /* of libmvec */
#else
static inline real vector_pow(real x, real power)
{
    for (int lane = 0; lane < LANES; lane++)
        x[lane] = pow(x[lane], power[lane]);
    return x;
}
#endif

static inline real all(double x)
{
    return x + (real){0};
}

/* By what the next step is longer: 0.9 * error ** -0.2, and at most 5. */
static inline real growth(real square)
{
    real factor = 0.9 * vector_pow(where(square > 1e-18, square, all(1e-18)), all(-0.1));
    return where(factor < 5.0, factor, all(5.0));
}

/* Make room for one more step. */
static inline void make_room(long used)
{
    if (used < room)
        return;
    struct step *old = tape;
    room = room ? 2 * room : 256;
    tape = aligned_alloc(sizeof(real), room * sizeof *tape);
    memcpy(tape, old, used * sizeof *tape);
    free(old);
}

/* Solve for some elements; where `keep`, put steps on the tape. Returns how many trips there were. */
INLINE long solve(const double *scales, const double *times, long count, double *total,
                  struct begin *begins, int keep)
{
    long next = 0, trips = 0;
    real left = {0}, step = {0};
    mask live = {0};
    struct state at[STAGES] = {0}, k[STAGES] = {0};
    for (;;) {
        mask waits = ~(left > 0.0);
        if (any(waits & (live | (next < count ? -1L : 0L)))) {
            for (int lane = 0; lane < LANES; lane++) {
                if (!waits[lane])
                    continue;
                if (live[lane])
                    *total += at[0].y[lane] + at[0].z[lane];
                live[lane] = 0;
                if (next == count)
                    continue;
                if (keep)
                    begins[next] = (struct begin){trips, lane, next};
                at[0].y[lane] = START[0] * scales[next];
                at[0].z[lane] = START[1];
                left[lane] = times[next++];
                step[lane] = 0.1;
                live[lane] = -1;
            }
            k[0] = field(RATES, at[0]);
            if (!any(live))
                return trips;
        }
        real h = where(step < left, step, left);
        stages(RATES, h, STAGES, at, k);
        real square = square_of_error(h, at, k);
        mask taken = square <= 1.0;
        if (keep) {
            make_room(trips);
            tape[trips] = (struct step){at[0], where(taken, h, all(0.0))};
        }
        trips++;
        left = where(taken, left - h, left);
        step = h * where(taken, growth(square), all(0.5));
        at[0].y = where(taken, at[6].y, at[0].y);
        at[0].z = where(taken, at[6].z, at[0].z);
        k[0].y = where(taken, k[6].y, k[0].y);
        k[0].z = where(taken, k[6].z, k[0].z);
    }
}

void value(const double *arguments, double *results, long count)
{
    results[0] = 0.0;
    solve(arguments, arguments + count / 2, count / 2, results, 0, 0);
}

void gradient(const double *arguments, double *results, long count)
{
    long n = count / 2;
    struct begin begins[CHUNK];
    results[0] = 0.0;
    for (long first = 0; first < n; first += CHUNK) {
        long size = n - first < CHUNK ? n - first : CHUNK;
        long trips = solve(arguments + first, arguments + n + first, size, results, begins, 1);
        real unused[4] = {0};
        struct state ct = {all(1.0), all(1.0)};
        while (trips--) {
            pull_back(RATES, &tape[trips], &ct, unused);
            for (; size && begins[size - 1].trip == trips; size--) {
                struct begin begin = begins[size - 1];
                results[1 + first + begin.element] = START[0] * ct.y[begin.lane];
                ct.y[begin.lane] = ct.z[begin.lane] = 1.0;
            }
        }
    }
}
