/* Steps of Dormand and Prince's method for Lotka and Volterra's equations. A `real` is a double or
   a vector of them, and `larger` gives the larger of two absolute values. */
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

#define INLINE static inline __attribute__((always_inline))

struct state {
    real y, z;
};

INLINE struct state field(const double *p, struct state s)
{
    return (struct state){(p[0] - p[1] * s.z) * s.y, (p[3] * s.y - p[2]) * s.z};
}

/* Where the slopes of a step of length h are taken, and the slopes; the first is given. */
INLINE void stages(const double *p, real h, int count, struct state *at, struct state *k)
{
#pragma GCC unroll 8
    for (int i = 1; i < count; i++) {
        real y = {0}, z = {0};
#pragma GCC unroll 8
        for (int j = 0; j < i; j++) {
            y += A[i][j] * k[j].y;
            z += A[i][j] * k[j].z;
        }
        at[i] = (struct state){at[0].y + h * y, at[0].z + h * z};
        k[i] = field(p, at[i]);
    }
}

/* The square of how many times too large the error of a step is. */
INLINE real square_of_error(real h, const struct state *at, const struct state *k)
{
    real y = {0}, z = {0};
#pragma GCC unroll 8
    for (int i = 0; i < STAGES; i++) {
        y += E[i] * k[i].y;
        z += E[i] * k[i].z;
    }
    y *= h / (TOL + TOL * larger(at[0].y, at[6].y));
    z *= h / (TOL + TOL * larger(at[0].z, at[6].z));
    return 0.5 * (y * y + z * z);
}

struct step {
    struct state from;
    real h;
};

/* From the cotangent of where a step ends to that of where it begins; adds those of the rates. */
INLINE void pull_back(const double *p, const struct step *step, struct state *ct, real *by)
{
    real h = step->h;
    struct state at[STAGES], k[STAGES], ct_at[STAGES], sum = *ct;
    at[0] = step->from;
    k[0] = field(p, at[0]);
    stages(p, h, STAGES - 1, at, k);
#pragma GCC unroll 8
    for (int i = STAGES - 2; i >= 0; i--) {
        real y = A[6][i] * ct->y, z = A[6][i] * ct->z;
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
    *ct = sum;
}
